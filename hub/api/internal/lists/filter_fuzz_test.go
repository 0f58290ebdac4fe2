package lists

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// FuzzFilter looks for a filter that panics, or is refused with anything but an invalid argument, or spends more than it may.
func FuzzFilter(f *testing.F) {
	for _, text := range []string{
		`workload.namespace == "shop" && workload.placement.spot_actual < workload.placement.spot_wanted`,
		`workload.state in ["MOVING", "WAITING"] || workload.waits.exists(w, w.kind == "DRY" && now - w.since > duration("10m"))`,
		`workload.name.matches("^a.*b$")`, `workload == workload`, `[1, 2].map(a, a * 2)[0] > 1`, `{"a": workload}["a"].kind != ""`,
		`dyn(workload).state == 3`, `type(workload) == type(now)`, "\x00", `workload.pods[-1].slot == 1`,
	} {
		f.Add(text)
	}
	workload := &plimsollv1.Workload{
		Cluster: "prod", Namespace: "shop", Kind: "Deployment", Name: "cart", State: plimsollv1.WorkloadState_WORKLOAD_STATE_MOVING,
		Placement: &plimsollv1.Placement{Replicas: 10, SpotWanted: 7, SpotActual: 6},
		Waits:     []*plimsollv1.Wait{{Kind: plimsollv1.WaitKind_WAIT_KIND_DRY, Since: timestamppb.Now()}},
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 2048 { // as the .proto file has it
			return
		}
		compiled, err := WorkloadFilters.Compile(text)
		if err == nil && compiled != nil {
			_, _, err = compiled.Passes(t.Context(), workload)
			if spent := compiled.Spent(); spent > 2*maxItemCost {
				t.Errorf("%q spent %d", text, spent)
			}
		}
		if err != nil && status.Code(err) != codes.InvalidArgument {
			t.Errorf("%q: %v", text, err)
		}
	})
}

// FuzzOrder looks for an order_by that panics, or is refused with anything but an invalid argument.
func FuzzOrder(f *testing.F) {
	for _, text := range []string{"attempts desc, key.name", "next_try_at", "state,", "key.key", "last_started_at.seconds"} {
		f.Add(text)
	}
	object := &plimsollv1.ObjectState{}
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := ParseOrder(text, object.ProtoReflect().Descriptor())
		if err != nil && status.Code(err) != codes.InvalidArgument {
			t.Errorf("%q: %v", text, err)
		}
		if rank := keys.Rank(object); len(rank) != len(keys) {
			t.Errorf("%q: %v", text, rank)
		}
	})
}
