package spot

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

func inMember(member string) plan.MoveKey {
	return plan.MoveKey{Member: member, WorkloadKey: policy.WorkloadKey{Kind: KindDeployment, NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}}}
}

func TestAMemberThatLeavesTakesNoRoom(t *testing.T) {
	s := newShell(t, func(o *Options) { o.Ceilings = plan.CeilingLimits{Member: 100, Hub: 100} }, false)
	s.moves.Grant(inMember(testMember), 90, 10, spottest.Epoch)
	s.moves.Grant(inMember("another"), 0, 0, spottest.Epoch)
	s.leave(s.members[testMember])
	if g := s.moves.Grant(inMember("another"), 0, 100, spottest.Epoch); g.Moves != 100 {
		t.Errorf("a member that is gone holds the hub's ceiling: %+v", g)
	}
}
