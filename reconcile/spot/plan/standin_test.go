package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

var releaseSettings = plan.Settings{MaxMoves: policy.MoveLimit{Percent: 10}, Cooldown: 10 * time.Second, Strategy: policy.StrategyRelease}

func TestAStandInOfARevisionThatWantsNoReplicasEndsAtOnce(t *testing.T) {
	o := releasing(1, 1, 0)
	old := &o.Pods[len(o.Pods)-1]
	old.Owner, old.Released.Owner = "old-set", "old-set"
	p := spottest.PolicyOf(0, 0)
	p.Window = spottest.MustWindow(t, "0 2 * * 6", "1h") // Saturday night; epoch is a Thursday
	for name, owners := range map[string][]plan.Owner{"scaled to nothing": {{UID: "old-set", Name: "old-set"}}, "gone": nil} {
		tried := o
		tried.Owners = append(slices.Clone(o.Owners), owners...)
		if r := plan.Plan(tried, p, plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) != 1 || r.Evictions[0].For != plan.PurposeFinish {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestNoReleaseBeginsThatTheWindowCouldNotSeeTheEndOf(t *testing.T) {
	o := plantest.ObservedOf(releasableAll(plantest.Replicas(10, spottest.SpotOnly)), 10)
	for name, c := range map[string]struct {
		duration string
		left     time.Duration
		begins   bool
	}{
		"half of an hour is left":         {"1h", 30 * time.Minute, true},
		"four minutes of an hour are":     {"1h", 4 * time.Minute, false},
		"a third of four minutes is":      {"4m", 80 * time.Second, true},
		"less than a quarter of these is": {"4m", 50 * time.Second, false},
	} {
		p := spottest.PolicyOf(0, 0)
		p.Window = spottest.MustWindow(t, "0 4 * * *", c.duration)
		now := spottest.Epoch.Add(4 * time.Hour).Add(p.Window.Duration - c.left)
		r := plan.Plan(o, p, releaseSettings, now)
		if len(r.Releases) != map[bool]int{true: 1}[c.begins] || len(r.Evictions) > 0 {
			t.Errorf("%s: %+v", name, r)
		}
		if !c.begins && (plantest.WaitOf(&r, plan.WaitWindow) == nil || r.State != plan.StateWaiting || !strings.Contains(r.Reason, "window opens")) {
			t.Errorf("%s: %s: %s", name, r.State, r.Reason)
		}
	}
}

// What leaves on advice is released whatever the strategy, and must end within the window like a move.
func TestNoReplicaLeavesOnAdviceThatTheWindowCouldNotSeeTheEndOf(t *testing.T) {
	advice := &plan.Interruption{Node: "n", Weight: plan.WeightAdvisory}
	o := plantest.ObservedOf(releasableAll(interrupted(plantest.Replicas(10, spottest.SpotOnly), advice, func(p *plan.Pod) bool { return p.Slot == 9 })), 10)
	p := spottest.PolicyOf(100, 0)
	p.Window = spottest.MustWindow(t, "0 4 * * *", "1h")
	for left, releases := range map[time.Duration]int{30 * time.Minute: 1, 4 * time.Minute: 0} {
		r := plan.Plan(o, p, plantest.DefaultSettings, spottest.Epoch.Add(5*time.Hour).Add(-left))
		if len(r.Releases) != releases || len(r.Evictions) > 0 || (releases == 0) != (plantest.WaitOf(&r, plan.WaitWindow) != nil) {
			t.Errorf("%s of the window are left: %+v", left, r)
		}
	}
}

func TestAStandInOnANodeThatGoesEndsInOrderBeforeItsNodeDoes(t *testing.T) {
	o := releasing(1, 0, 1)
	old := &o.Pods[len(o.Pods)-1]
	old.Interruption = &plan.Interruption{Node: "n", By: spottest.Epoch.Add(time.Minute)}
	for name, c := range map[string]struct {
		now  time.Time
		ends int
	}{"there is time": {spottest.Epoch, 0}, "there is none": {old.Interruption.By.Add(-plan.InterruptionMargin), 1}} {
		if r := plan.Plan(o, spottest.PolicyOf(0, 0), plantest.DefaultSettings, c.now); len(r.Evictions) != c.ends {
			t.Errorf("%s, and its replacement is not ready: %+v", name, r)
		}
	}
}

func TestAStandInThatOnlyWaitsForAWindowIsNotOnTheMove(t *testing.T) {
	p := spottest.PolicyOf(0, 0)
	p.Window = spottest.MustWindow(t, "0 2 * * 6", "1h")
	r := plan.Plan(releasing(2, 1, 1), p, releaseSettings, spottest.Epoch)
	if r.Released != 2 || r.Moving != 1 || len(r.Evictions) > 0 || plantest.WaitOf(&r, plan.WaitWindow) == nil {
		t.Errorf("one replacement is ready, the other one is not: %+v", r)
	}
}

// With evictions, a few replicas that do not come up stop nothing either.
func TestAReplacementThatNeverGetsReadyDoesNotStopReleases(t *testing.T) {
	stuck := func(n int) plan.Observed {
		pods := releasableAll(plantest.Replicas(10, spottest.SpotOnly))
		for i := range n { // was moved a day ago, and its replacement never got ready
			stand := pods[9-i]
			stand.UID, stand.Name, stand.Hash = stand.UID+"-old", stand.Name+"-old", plan.ReleasedHash("abc")
			stand.Released = &plan.Released{Owner: spottest.OwnerUID, Hash: "abc", For: plan.PurposeMove, At: spottest.Epoch.Add(-24 * time.Hour)}
			p := &pods[9-i]
			p.Capacity, p.Ready, p.Moved, p.Created, p.UnreadySince = capacity.OnDemand, false, true, spottest.Epoch.Add(-24*time.Hour), spottest.Epoch.Add(-24*time.Hour)
			pods = append(pods, stand)
		}
		return plantest.ObservedOf(pods, 10)
	}
	r := plan.Plan(stuck(1), spottest.PolicyOf(0, 0), releaseSettings, spottest.Epoch)
	if diff := cmp.Diff(map[string]int{"release move": 1}, plantest.Purposes(&r)); diff != "" || r.Moving != 0 {
		t.Errorf("%s %+v", diff, r)
	}
	if r := plan.Plan(stuck(2), spottest.PolicyOf(0, 0), releaseSettings, spottest.Epoch); len(r.Releases)+len(r.Evictions) > 0 {
		t.Errorf("what does not work gets more and more replicas: %+v", r)
	}
}

func TestEveryStandInHasATimeToEndByItself(t *testing.T) {
	o := plantest.ObservedOf(releasableAll(plantest.Replicas(10, spottest.SpotOnly)), 10)
	for name, c := range map[string]struct {
		schedule, duration string
		after              time.Duration
		want               time.Duration
	}{
		"at any time":           {"", "", 0, plan.StandInTime},
		"a window each night":   {"0 4 * * *", "1h", 4 * time.Hour, 24*time.Hour + time.Hour + time.Hour},
		"a window each hour":    {"0 * * * *", "10m", 0, plan.StandInTime},
		"a window each year":    {"0 0 1 1 *", "1h", 0, plan.MostStandInTime},
		"a window that is long": {"0 4 * * *", "8h", 4 * time.Hour, 24*time.Hour + 8*time.Hour + time.Hour},
	} {
		p := spottest.PolicyOf(0, 0)
		if c.schedule != "" {
			p.Window = spottest.MustWindow(t, c.schedule, c.duration)
		}
		now := spottest.Epoch.Add(c.after)
		r := plan.Plan(o, p, releaseSettings, now)
		if len(r.Releases) != 1 {
			t.Fatalf("%s: %+v", name, r)
		}
		released := r.Releases[0]
		if got := released.Released.Until.Sub(now); got != c.want {
			t.Errorf("%s: until %s later", name, got)
		}
		if again, ok := plan.ParseReleased(released.Released.String()); !ok || !again.Until.Equal(released.Released.Until) {
			t.Errorf("%s: written %s", name, released.Released.String())
		}
	}
}

func TestAStandInEndsInOrderBeforeItWouldByItself(t *testing.T) {
	o := releasing(1, 0, 1)
	o.Pods[len(o.Pods)-1].Released.Until = spottest.Epoch.Add(time.Hour)
	if r := plan.Plan(o, spottest.PolicyOf(0, 0), plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) > 0 {
		t.Errorf("%+v", r)
	}
	if r := plan.Plan(o, spottest.PolicyOf(0, 0), plantest.DefaultSettings, spottest.Epoch.Add(time.Hour-plan.StandInMargin)); len(r.Evictions) != 1 || r.Evictions[0].For != plan.PurposeFinish {
		t.Errorf("%+v", r)
	}
}

func TestAnInvalidPolicyStopsNeitherInterruptionsNorTheEndOfReleases(t *testing.T) {
	p := policy.Parse(spottest.DefaultKeys, spottest.Annotations("spot-percentage", "most"), nil, policy.Defaults{})
	if r := plan.Plan(releasing(2, 2, 0), p, plantest.DefaultSettings, spottest.Epoch); r.State != plan.StateInvalid || len(r.Evictions) != 2 {
		t.Errorf("%+v", r)
	}
	pods := interrupted(plantest.Replicas(10, spottest.SpotOnly), &plan.Interruption{Node: "n", By: spottest.Epoch.Add(2 * time.Minute)}, func(*plan.Pod) bool { return true })
	if r := plan.Plan(plantest.ObservedOf(pods, 10), p, plantest.DefaultSettings, spottest.Epoch); r.State != plan.StateInvalid || len(r.Evictions) != 10 {
		t.Errorf("%+v", r)
	}
	pods = interrupted(plantest.Replicas(10, spottest.SpotOnly), &plan.Interruption{Node: "n", Weight: plan.WeightAdvisory}, func(*plan.Pod) bool { return true })
	if r := plan.Plan(plantest.ObservedOf(pods, 10), p, plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) != 0 {
		t.Errorf("advice is heeded where nobody knows what is wanted: %+v", r.Evictions)
	}
	if r := plan.Plan(dryPods(), p, plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) != 6 {
		t.Errorf("%d pods that wait for spot are replaced on-demand", len(r.Evictions))
	}
}

func TestAMinorValueThatCannotBeUsedStopsNothingAndIsSaid(t *testing.T) {
	p := policy.Parse(spottest.DefaultKeys, spottest.Annotations("spot-percentage", "0"), spottest.Annotations("spot-pending-timeout", "2s"), policy.Defaults{})
	r := plan.Plan(plantest.ObservedOf(plantest.Replicas(4, spottest.SpotOnly), 4), p, plantest.DefaultSettings, spottest.Epoch)
	if r.State != plan.StateMoving || len(r.Evictions) != 1 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "spot-pending-timeout") {
		t.Errorf("%+v", r)
	}
}

func TestAWindowThatCannotBeReadIsShut(t *testing.T) {
	p := policy.Parse(spottest.DefaultKeys, spottest.Annotations("spot-percentage", "0"), spottest.Annotations("disruption-schedule", "at night", "disruption-duration", "1h"), policy.Defaults{})
	r := plan.Plan(plantest.ObservedOf(plantest.Replicas(4, spottest.SpotOnly), 4), p, plantest.DefaultSettings, spottest.Epoch)
	if r.State != plan.StateWaiting || len(r.Evictions) > 0 || plantest.WaitOf(&r, plan.WaitWindow) == nil || !strings.Contains(r.Reason, "window is invalid") || !r.Recheck.IsZero() {
		t.Errorf("%+v", r)
	}
	if r = plan.Plan(releasing(2, 2, 0), p, plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) != 2 {
		t.Errorf("what was released within a window ends: %+v", r)
	}
}
