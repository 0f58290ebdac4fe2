package placing

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
)

// gathered is a bench with a FleetPlacement that is to be gathered in b, and was just deleted.
func gatheredBench(t *testing.T) *bench {
	p := web(9, 3)
	p.Spec.OnDelete, p.Spec.GatherInto = v1alpha1.Gather, "b"
	b := newBench(t, p)
	p = b.rounds(4)
	if err := b.hub.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAGatheringIsNotOverBeforeAllIsWritten(t *testing.T) {
	b := gatheredBench(t)
	b.refuses["b"] = apierrors.NewServiceUnavailable("overloaded")
	p := b.rounds(45)
	if p == nil {
		t.Fatalf("it is gone, and its replicas are not in one member: %+v", b.views)
	}
	if c := apimeta.FindStatusCondition(p.Status.Conditions, reconcile.ConditionReady); c.Reason != v1alpha1.ReasonDeleting || !strings.Contains(c.Message, "overloaded") {
		t.Errorf("%+v", c)
	}
	delete(b.refuses, "b")
	if b.rounds(60) != nil || b.views["b"].Replicas != 9 || b.ready() != 9 {
		t.Errorf("%+v", b.views)
	}
}

func TestAGatheringWaitsForMembersIfNoneIsInReach(t *testing.T) {
	b := gatheredBench(t)
	b.lost = true
	p := b.rounds(60)
	if p == nil {
		t.Fatalf("it is gone, and its replicas are not in one member: %+v", b.views)
	}
	if c := apimeta.FindStatusCondition(p.Status.Conditions, reconcile.ConditionReady); c.Reason != v1alpha1.ReasonDeleting || !strings.Contains(c.Message, "unreachable") {
		t.Errorf("%+v", c)
	}
	b.lost = false
	if b.rounds(40) != nil || b.views["b"].Replicas != 9 {
		t.Errorf("%+v", b.views)
	}
}

func TestAGatheringCanBeGivenUp(t *testing.T) {
	b := gatheredBench(t)
	b.lost = true
	p := b.rounds(3)
	p.Spec.OnDelete, p.Spec.GatherInto = v1alpha1.Keep, ""
	if err := b.hub.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if b.rounds(1) != nil || b.ready() != 9 {
		t.Errorf("%+v", b.views)
	}
}

func TestAllMovesAreCounted(t *testing.T) {
	members := make([]Member, 12)
	for i := range members {
		members[i].Name = fmt.Sprintf("member-%02d", i)
	}
	b := newBenchOf(t, members, web(24, 0))
	p := b.rounds(4)
	counted := 0.0
	for _, m := range members {
		for _, capacity := range []string{"spot", "on-demand"} {
			counted += testutil.ToFloat64(b.metrics.moves.WithLabelValues(m.Name, capacity, "up"))
		}
	}
	if counted != 24 || len(p.Status.LastMoves) != keptMoves {
		t.Errorf("%g moves are counted", counted)
	}
}
