package report

import (
	"strings"
	"testing"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

func TestAnEventIsSaidOnceForAChange(t *testing.T) {
	minor := policy.Parse(spottest.DefaultKeys, spottest.Annotations("spot-percentage", "50", "strategy", "both"), nil, policy.Defaults{})
	unprotected := Workload{State: plan.StateConverged, SpotActual: 7, OnDemandActual: 3, Unprotected: true}
	invalid := policy.Parse(spottest.DefaultKeys, spottest.Annotations("spot-percentage", "lots"), nil, policy.Defaults{})
	waiting := func(waits ...plan.Wait) Workload {
		return Workload{State: plan.StateWaiting, Reason: "3 replicas should move to spot", Waits: waits}
	}
	converged := Workload{State: plan.StateConverged, SpotActual: 7, OnDemandActual: 3}
	for name, c := range map[string]struct {
		before Workload
		known  bool
		now    Workload
		want   string // reasons
	}{
		"it converged":                               {Workload{State: plan.StateMoving}, true, converged, "Converged"},
		"it still is":                                {converged, true, Workload{State: plan.StateConverged, SpotActual: 8, OnDemandActual: 3}, ""},
		"a process has started":                      {Workload{}, false, converged, ""},
		"it is new":                                  {Workload{}, true, converged, "Converged"},
		"it waits":                                   {converged, true, waiting(plan.Wait{Kind: plan.WaitBudget, Subject: "cart"}), "Waiting"},
		"it waits for something else":                {waiting(plan.Wait{Kind: plan.WaitBudget, Subject: "cart"}), true, waiting(plan.Wait{Kind: plan.WaitWindow}), "Waiting"},
		"other numbers, other times":                 {waiting(plan.Wait{Kind: plan.WaitWindow, Until: spottest.Epoch, Replicas: 1}), true, waiting(plan.Wait{Kind: plan.WaitWindow, Replicas: 2}), ""},
		"what comes and goes with every batch":       {waiting(plan.Wait{Kind: plan.WaitWindow}), true, waiting(plan.Wait{Kind: plan.WaitWindow}, plan.Wait{Kind: plan.WaitCooldown}), ""},
		"a batch says itself what it moves":          {converged, true, Workload{State: plan.StateMoving}, ""},
		"it became invalid":                          {converged, true, Workload{State: plan.StateInvalid, Policy: invalid}, "InvalidPolicy"},
		"it still is invalid":                        {Workload{State: plan.StateInvalid, Policy: invalid}, true, Workload{State: plan.StateInvalid, Policy: invalid}, ""},
		"invalid, and nobody may have said so":       {Workload{}, false, Workload{State: plan.StateInvalid, Policy: invalid}, "InvalidPolicy"},
		"a minor value that cannot be used":          {converged, true, Workload{State: plan.StateConverged, Policy: minor}, "InvalidPolicy"},
		"it still cannot":                            {Workload{State: plan.StateConverged, Policy: minor}, true, Workload{State: plan.StateConverged, Policy: minor}, ""},
		"no budget protects the floor":               {converged, true, unprotected, "Unprotected"},
		"none does, as before":                       {unprotected, true, unprotected, ""},
		"none, and nobody may have said so":          {Workload{}, false, unprotected, "Unprotected"},
		"read-only, which was not so":                {converged, true, Workload{State: plan.StateReadOnly, Reason: "the namespace"}, "ReadOnly"},
		"a policy without a value, which was not so": {converged, true, Workload{State: plan.StateUnmanaged}, "Unmanaged"},
	} {
		var reasons []string
		for _, a := range Announcements(&c.before, c.known, &c.now) {
			reasons = append(reasons, a.Reason)
			if a.Warning != (a.Reason == "InvalidPolicy" || a.Reason == "Unprotected") {
				t.Errorf("%s: %+v", name, a)
			}
		}
		if got := strings.Join(reasons, " "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
