package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

func TestWaitsAreShownWithTheSoonestToEndFirst(t *testing.T) {
	p := plannedOf(t)
	p.Plan.Waits = []plan.Wait{{Kind: plan.WaitBudget, Subject: "b"}, {Kind: plan.WaitWindow, Until: spottest.Epoch.Add(time.Hour)}, {Kind: plan.WaitBudget, Subject: "a"}, {Kind: plan.WaitCooldown, Until: spottest.Epoch}}
	view := Of("m", policy.WorkloadKey{}, &p)
	var got []string
	for _, w := range view.Waits {
		got = append(got, string(w.Kind)+w.Subject)
	}
	if diff := cmp.Diff([]string{"cooldown", "window", "budgeta", "budgetb"}, got); diff != "" {
		t.Error(diff)
	}
}
