package lists

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// FuzzReadMask looks for a read_mask that panics, is refused with anything but an invalid argument, or shows what it does not name.
func FuzzReadMask(f *testing.F) {
	for _, paths := range []string{"name", "placement.replicas,placement", "pods.name,pods.slot", "waits.since.seconds", "name.x", ".", "placement..", "explanation", "\x00"} {
		f.Add(paths)
	}
	workload := &plimsollv1.Workload{
		Cluster: "prod", Name: "cart", Placement: &plimsollv1.Placement{Replicas: 10}, Pods: []*plimsollv1.Pod{{Name: "cart-0", Ready: true}}, Explanation: []string{"x"},
	}
	f.Fuzz(func(t *testing.T, paths string) {
		shown, err := parseMask(&fieldmaskpb.FieldMask{Paths: strings.Split(paths, ",")}, workload.ProtoReflect().Descriptor())
		if err != nil {
			if status.Code(err) != codes.InvalidArgument {
				t.Errorf("%q: %v", paths, err)
			}
			return
		}
		left := proto.CloneOf(workload)
		shown.prune(left.ProtoReflect())
		if left.GetCluster() != "" && !strings.Contains(paths, "cluster") || left.GetPlacement() != nil && !strings.Contains(paths, "placement") {
			t.Errorf("%q shows %v", paths, left)
		}
	})
}
