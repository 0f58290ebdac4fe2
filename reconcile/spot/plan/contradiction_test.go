package plan_test

import (
	"strings"
	"testing"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// A workload of four on spot and none on-demand, of which two belong on-demand.
func misplaced(c plan.Contradiction) plan.Observed {
	o := plantest.ObservedOf(plantest.Replicas(4, policy.Mix{Percent: 100, Managed: true}), 4)
	o.Owners[0].Contradiction = c
	return o
}

func TestNoReplicaIsMovedToNodesThatItsTemplateDoesNotAllow(t *testing.T) {
	for _, c := range []plan.Contradiction{plan.ContradictionOnDemand, plan.ContradictionBoth} {
		r := plan.Plan(misplaced(c), spottest.PolicyOf(50, 0), plantest.DefaultSettings, spottest.Epoch)
		if len(r.Evictions)+len(r.Releases) > 0 || r.State != plan.StateWaiting || len(r.Waits) != 1 || r.Waits[0].Kind != plan.WaitTemplate || r.Waits[0].Replicas != 2 {
			t.Errorf("%q: %s, %d evictions, waits %+v", c, r.State, len(r.Evictions), r.Waits)
		}
		if r.Contradiction != c || !strings.Contains(r.Reason, c.Message()) {
			t.Errorf("%q: reported as %q, reason %q", c, r.Contradiction, r.Reason)
		}
	}
	if r := plan.Plan(misplaced(plan.ContradictionSpot), spottest.PolicyOf(50, 0), plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) != 1 {
		t.Errorf("%d evictions to nodes that fit", len(r.Evictions))
	}
}

func TestAReplicaThatWaitsForANodeItsTemplateDoesNotAllowSaysSo(t *testing.T) {
	for _, c := range []plan.Contradiction{plan.ContradictionOnDemand, plan.ContradictionBoth} {
		o := plantest.ObservedOf(plantest.Replicas(4, policy.Mix{Percent: 50, Managed: true}), 4)
		for i := range o.Pods {
			if c.LeavesOut(o.Pods[i].Capacity) {
				o.Pods[i].Bound, o.Pods[i].Ready = false, false
			}
		}
		o.Owners[0].Contradiction = c
		r := plan.Plan(o, spottest.PolicyOf(50, 0), plantest.DefaultSettings, spottest.Epoch)
		if r.State != plan.StateWaiting || len(r.Waits) != 1 || r.Waits[0].Kind != plan.WaitTemplate || !strings.Contains(r.Reason, c.Message()) || len(r.Evictions) > 0 {
			t.Errorf("%q: %s (%s), waits %+v, %d evictions", c, r.State, r.Reason, r.Waits, len(r.Evictions))
		}
	}
}

func TestAContradictionIsToldOfReplicasThatItConcernsOnly(t *testing.T) {
	for _, test := range []struct {
		of      plan.Contradiction
		percent int
		told    bool
	}{
		{plan.ContradictionSpot, 0, false}, {plan.ContradictionSpot, 50, true},
		{plan.ContradictionOnDemand, 100, false}, {plan.ContradictionOnDemand, 50, true},
		{plan.ContradictionBoth, 0, true}, {plan.ContradictionBoth, 100, true},
	} {
		o := plantest.ObservedOf(plantest.Replicas(4, policy.Mix{Percent: test.percent, Managed: true}), 4)
		o.Owners[0].Contradiction = test.of
		r := plan.Plan(o, spottest.PolicyOf(test.percent, 0), plantest.DefaultSettings, spottest.Epoch)
		if told := r.Contradiction != plan.ContradictionNone; told != test.told {
			t.Errorf("%q at %d %%: reported %v", test.of, test.percent, told)
		}
	}
}
