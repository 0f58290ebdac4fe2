package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

func TestAValueOfTheModesThatCannotBeReadGivesWayToTheNextLevel(t *testing.T) {
	p := policy.Parse(spottest.DefaultKeys, spottest.Annotations("strategy", "both", "max-moves", "none", "cool-down", "2h", "spot-pending-timeout", "1s"),
		spottest.Annotations("strategy", "release", "max-moves", "25%", "cool-down", "0s"), policy.Defaults{})
	configured := plan.Settings{MaxMoves: policy.MoveLimit{Count: 3}, Cooldown: time.Second, PendingTimeout: time.Minute}
	want := plan.Settings{MaxMoves: policy.MoveLimit{Percent: 25}, Cooldown: 0, PendingTimeout: time.Minute, Strategy: policy.StrategyRelease}
	if diff := cmp.Diff(want, configured.For(p.Modes, "")); diff != "" || len(p.Problems) != 4 {
		t.Errorf("%s, problems %v", diff, p.Problems)
	}
	for _, found := range p.Problems {
		if found.Source != policy.SourceWorkload || found.Severity != policy.SeverityMinor {
			t.Errorf("%+v", found)
		}
	}
}

func TestTheNearestLevelSaysWhatReadOnlyIsDueTo(t *testing.T) {
	configured := plan.Settings{Cooldown: time.Second, Strategy: policy.StrategyEvict, PendingTimeout: time.Minute}
	modes := policy.Parse(spottest.DefaultKeys, spottest.Annotations("strategy", "release", "paused", "true"),
		spottest.Annotations("strategy", "evict", "spot-pending-timeout", "90s", "read-only", "true"), policy.Defaults{}).Modes
	want := plan.Settings{Cooldown: time.Second, Strategy: policy.StrategyRelease, PendingTimeout: 90 * time.Second, Paused: true, ReadOnly: true, ReadOnlyBy: "the namespace"}
	if diff := cmp.Diff(want, configured.For(modes, "")); diff != "" {
		t.Error(diff)
	}
	if got := configured.For(modes, "the member"); got.ReadOnlyBy != "the member" {
		t.Errorf("with a read-only member it is due to the %q", got.ReadOnlyBy)
	}
	configured.ReadOnly = true
	if got := configured.For(modes, "the member"); !got.ReadOnly || got.ReadOnlyBy != "" {
		t.Errorf("with a read-only hub it is due to the %q", got.ReadOnlyBy)
	}
	if got := (plan.Settings{Strategy: policy.StrategyEvict, PendingTimeout: time.Minute}); got.For(policy.Modes{}, "") != got {
		t.Errorf("without modes: %+v", got.For(policy.Modes{}, ""))
	}
}
