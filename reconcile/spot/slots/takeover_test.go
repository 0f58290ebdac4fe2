package slots

import (
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

func TestASuccessorSendsPodsToSpotOnlyByWhatIsLive(t *testing.T) {
	a, m := NewAccounting(false), policy.Mix{Percent: 50, Floor: 1, Managed: true} // slots: on-demand, spot, on-demand, spot
	pod := plan.Pod{UID: "0", Slot: 0, Capacity: capacity.OnDemand, Version: 1}
	a.Observe(&pod, spottest.Epoch)
	a.TakeOver(spottest.Epoch)
	ask := func(id string, final bool, m policy.Mix, now time.Time) Answer {
		return a.Reserve(Ask{ID: id, Wanted: 4, Mix: m, Final: final, DryRun: true}, now)
	}
	if got := ask("a", false, m, spottest.Epoch); got.Doubt != DoubtUnproven {
		t.Errorf("without a live list: %+v", got)
	}
	if got := ask("a", true, m, spottest.Epoch); got.Capacity != capacity.OnDemand || got.Reason != ReasonUnproven {
		t.Errorf("without a live list, for good: %+v", got)
	}
	if got := ask("a", true, policy.Mix{Percent: 100, Managed: true}, spottest.Epoch); got.Capacity != capacity.Spot {
		t.Errorf("there is no floor to keep: %+v", got)
	}
	if got := ask("a", false, policy.Mix{Managed: true}, spottest.Epoch); got.Capacity != capacity.OnDemand || got.Doubt != DoubtNone {
		t.Errorf("on-demand is safe whatever is live: %+v", got)
	}
	a.Sync([]plan.Pod{pod}, a.ProvenBy().Add(-1), spottest.Epoch)
	if got := ask("a", false, m, spottest.Epoch); got.Doubt != DoubtUnproven {
		t.Errorf("a pod that the predecessor admitted may not have been stored when this list was read: %+v", got)
	}
	a.Sync([]plan.Pod{pod}, a.ProvenBy(), spottest.Epoch)
	if got := ask("a", false, m, spottest.Epoch); got.Capacity != capacity.Spot || got.Doubt != DoubtNone {
		t.Errorf("with a live list: %+v", got)
	}
	a.TakeOver(spottest.Epoch)
	if got := ask("a", false, m, spottest.Epoch); got.Doubt != DoubtNone {
		t.Errorf("the same takeover, reported again: %+v", got)
	}
	later := spottest.Epoch.Add(time.Hour)
	a.TakeOver(later)
	if got := ask("a", false, m, later); got.Doubt != DoubtUnproven {
		t.Errorf("another takeover: %+v", got)
	}
	if s := a.Summary(4, later); !s.UnprovenUntil.Equal(later.Add(plan.SettleTime)) {
		t.Errorf("in doubt until %v", s.UnprovenUntil)
	}
	if got := ask("a", false, m, later.Add(plan.SettleTime)); got.Doubt != DoubtNone || !a.Summary(4, later.Add(plan.SettleTime)).UnprovenUntil.IsZero() {
		t.Errorf("the cache has caught up: %+v", got)
	}
}

func TestAMoveToSpotWaitsUntilASuccessorKnowsWhatIsThere(t *testing.T) {
	o := plantest.ObservedOf(plantest.Replicas(10, policy.Mix{Managed: true}), 10)
	o.Owners[0].Accounting.UnprovenUntil = spottest.Epoch.Add(3 * time.Second)
	r := plan.Plan(o, spottest.PolicyOf(50, 1), plantest.DefaultSettings, spottest.Epoch)
	if len(r.Evictions) > 0 || plantest.WaitOf(&r, plan.WaitUnexplained) == nil || !r.Recheck.Equal(spottest.Epoch.Add(3*time.Second)) {
		t.Errorf("%+v", r)
	}
	o = plantest.ObservedOf(plantest.Replicas(10, policy.Mix{Percent: 100, Managed: true}), 10)
	o.Owners[0].Accounting.UnprovenUntil = spottest.Epoch.Add(3 * time.Second)
	if r := plan.Plan(o, spottest.PolicyOf(50, 1), plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) == 0 {
		t.Errorf("moves to on-demand cannot cost the floor: %+v", r)
	}
}
