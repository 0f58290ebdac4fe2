package spot

import (
	"strings"
	"testing"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// A workload of four on spot and none on-demand, of which two belong on-demand.
func misplaced(c Contradiction) Observed {
	o := ObservedOf(Replicas(4, policy.Mix{Percent: 100, Managed: true}), 4)
	o.Owners[0].Contradiction = c
	return o
}

func TestNoReplicaIsMovedToNodesThatItsTemplateDoesNotAllow(t *testing.T) {
	for _, c := range []Contradiction{ContradictionOnDemand, ContradictionBoth} {
		r := Plan(misplaced(c), PolicyOf(50, 0), DefaultSettings, Epoch)
		if len(r.Evictions)+len(r.Releases) > 0 || r.State != StateWaiting || len(r.Waits) != 1 || r.Waits[0].Kind != WaitTemplate || r.Waits[0].Replicas != 2 {
			t.Errorf("%q: %s, %d evictions, waits %+v", c, r.State, len(r.Evictions), r.Waits)
		}
		if r.Contradiction != c || !strings.Contains(r.Reason, c.Message()) {
			t.Errorf("%q: told as %q, reason %q", c, r.Contradiction, r.Reason)
		}
	}
	if r := Plan(misplaced(ContradictionSpot), PolicyOf(50, 0), DefaultSettings, Epoch); len(r.Evictions) != 1 {
		t.Errorf("%d evictions to nodes that fit", len(r.Evictions))
	}
}

func TestAReplicaThatWaitsForANodeItsTemplateDoesNotAllowSaysSo(t *testing.T) {
	for _, c := range []Contradiction{ContradictionOnDemand, ContradictionBoth} {
		o := ObservedOf(Replicas(4, policy.Mix{Percent: 50, Managed: true}), 4)
		for i := range o.Pods {
			if c.LeavesOut(o.Pods[i].Capacity) {
				o.Pods[i].Bound, o.Pods[i].Ready = false, false
			}
		}
		o.Owners[0].Contradiction = c
		r := Plan(o, PolicyOf(50, 0), DefaultSettings, Epoch)
		if r.State != StateWaiting || len(r.Waits) != 1 || r.Waits[0].Kind != WaitTemplate || !strings.Contains(r.Reason, c.Message()) || len(r.Evictions) > 0 {
			t.Errorf("%q: %s (%s), waits %+v, %d evictions", c, r.State, r.Reason, r.Waits, len(r.Evictions))
		}
	}
}

func TestAContradictionIsToldOfReplicasThatItConcernsOnly(t *testing.T) {
	for _, test := range []struct {
		of      Contradiction
		percent int
		told    bool
	}{
		{ContradictionSpot, 0, false}, {ContradictionSpot, 50, true},
		{ContradictionOnDemand, 100, false}, {ContradictionOnDemand, 50, true},
		{ContradictionBoth, 0, true}, {ContradictionBoth, 100, true},
	} {
		o := ObservedOf(Replicas(4, policy.Mix{Percent: test.percent, Managed: true}), 4)
		o.Owners[0].Contradiction = test.of
		r := Plan(o, PolicyOf(test.percent, 0), DefaultSettings, Epoch)
		if told := r.Contradiction != ContradictionNone; told != test.told {
			t.Errorf("%q at %d %%: told %v", test.of, test.percent, told)
		}
	}
}
