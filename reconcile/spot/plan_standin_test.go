package spot

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

var releaseSettings = Settings{MaxMoves: policy.MoveLimit{Percent: 10}, Cooldown: 10 * time.Second, Strategy: policy.StrategyRelease}

func TestAStandInOfARevisionThatWantsNoReplicasEndsAtOnce(t *testing.T) {
	o := releasing(1, 1, 0)
	old := &o.Pods[len(o.Pods)-1]
	old.Owner, old.Released.Owner = "old-set", "old-set"
	p := PolicyOf(0, 0)
	p.Window = MustWindow(t, "0 2 * * 6", "1h") // Saturday night; epoch is a Thursday
	for name, owners := range map[string][]Owner{"scaled to nothing": {{UID: "old-set", Name: "old-set"}}, "gone": nil} {
		tried := o
		tried.Owners = append(slices.Clone(o.Owners), owners...)
		if r := Plan(tried, p, DefaultSettings, Epoch); len(r.Evictions) != 1 || r.Evictions[0].For != PurposeFinish {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestNoReleaseBeginsThatTheWindowCouldNotSeeTheEndOf(t *testing.T) {
	o := ObservedOf(releasableAll(Replicas(10, SpotOnly)), 10)
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
		p := PolicyOf(0, 0)
		p.Window = MustWindow(t, "0 4 * * *", c.duration)
		now := Epoch.Add(4 * time.Hour).Add(p.Window.Duration - c.left)
		r := Plan(o, p, releaseSettings, now)
		if len(r.Releases) != map[bool]int{true: 1}[c.begins] || len(r.Evictions) > 0 {
			t.Errorf("%s: %+v", name, r)
		}
		if !c.begins && (WaitOf(&r, WaitWindow) == nil || r.State != StateWaiting || !strings.Contains(r.Reason, "window opens")) {
			t.Errorf("%s: %s: %s", name, r.State, r.Reason)
		}
	}
}

func TestAStandInThatOnlyWaitsForAWindowIsNotOnTheMove(t *testing.T) {
	p := PolicyOf(0, 0)
	p.Window = MustWindow(t, "0 2 * * 6", "1h")
	r := Plan(releasing(2, 1, 1), p, releaseSettings, Epoch)
	if r.Released != 2 || r.Moving != 1 || len(r.Evictions) > 0 || WaitOf(&r, WaitWindow) == nil {
		t.Errorf("one replacement is ready, the other one is not: %+v", r)
	}
}

// With evictions, a few replicas that do not come up stop nothing either.
func TestAReplacementThatNeverGetsReadyDoesNotStopReleases(t *testing.T) {
	stuck := func(n int) Observed {
		pods := releasableAll(Replicas(10, SpotOnly))
		for i := range n { // was moved a day ago, and its replacement never got ready
			stand := pods[9-i]
			stand.UID, stand.Name, stand.Hash = stand.UID+"-old", stand.Name+"-old", ReleasedHash("abc")
			stand.Released = &Released{Owner: OwnerUID, Hash: "abc", For: PurposeMove, At: Epoch.Add(-24 * time.Hour)}
			p := &pods[9-i]
			p.Capacity, p.Ready, p.Moved, p.Created, p.UnreadySince = capacity.OnDemand, false, true, Epoch.Add(-24*time.Hour), Epoch.Add(-24*time.Hour)
			pods = append(pods, stand)
		}
		return ObservedOf(pods, 10)
	}
	r := Plan(stuck(1), PolicyOf(0, 0), releaseSettings, Epoch)
	if diff := cmp.Diff(map[string]int{"release move": 1}, Purposes(&r)); diff != "" || r.Moving != 0 {
		t.Errorf("%s %+v", diff, r)
	}
	if r := Plan(stuck(2), PolicyOf(0, 0), releaseSettings, Epoch); len(r.Releases)+len(r.Evictions) > 0 {
		t.Errorf("what does not work gets more and more replicas: %+v", r)
	}
}

func TestEveryStandInHasATimeToEndByItself(t *testing.T) {
	o := ObservedOf(releasableAll(Replicas(10, SpotOnly)), 10)
	for name, c := range map[string]struct {
		schedule, duration string
		after              time.Duration
		want               time.Duration
	}{
		"at any time":           {"", "", 0, StandInTime},
		"a window each night":   {"0 4 * * *", "1h", 4 * time.Hour, 24*time.Hour + time.Hour + time.Hour},
		"a window each hour":    {"0 * * * *", "10m", 0, StandInTime},
		"a window each year":    {"0 0 1 1 *", "1h", 0, MostStandInTime},
		"a window that is long": {"0 4 * * *", "8h", 4 * time.Hour, 24*time.Hour + 8*time.Hour + time.Hour},
	} {
		p := PolicyOf(0, 0)
		if c.schedule != "" {
			p.Window = MustWindow(t, c.schedule, c.duration)
		}
		now := Epoch.Add(c.after)
		r := Plan(o, p, releaseSettings, now)
		if len(r.Releases) != 1 {
			t.Fatalf("%s: %+v", name, r)
		}
		released := r.Releases[0]
		if got := released.Released.Until.Sub(now); got != c.want {
			t.Errorf("%s: until %s later", name, got)
		}
		if again, ok := ParseReleased(released.Released.String()); !ok || !again.Until.Equal(released.Released.Until) {
			t.Errorf("%s: written %s", name, released.Released.String())
		}
	}
}

func TestAStandInEndsInOrderBeforeItWouldByItself(t *testing.T) {
	o := releasing(1, 0, 1)
	o.Pods[len(o.Pods)-1].Released.Until = Epoch.Add(time.Hour)
	if r := Plan(o, PolicyOf(0, 0), DefaultSettings, Epoch); len(r.Evictions) > 0 {
		t.Errorf("%+v", r)
	}
	if r := Plan(o, PolicyOf(0, 0), DefaultSettings, Epoch.Add(time.Hour-StandInMargin)); len(r.Evictions) != 1 || r.Evictions[0].For != PurposeFinish {
		t.Errorf("%+v", r)
	}
}

func TestAnInvalidPolicyStopsNeitherInterruptionsNorTheEndOfReleases(t *testing.T) {
	p := policy.Parse(DefaultKeys, Annotations("spot-percentage", "most"), nil, policy.Defaults{})
	if r := Plan(releasing(2, 2, 0), p, DefaultSettings, Epoch); r.State != StateInvalid || len(r.Evictions) != 2 {
		t.Errorf("%+v", r)
	}
	pods := doomed(Replicas(10, SpotOnly), &Doom{Node: "n", By: Epoch.Add(2 * time.Minute)}, func(*Pod) bool { return true })
	if r := Plan(ObservedOf(pods, 10), p, DefaultSettings, Epoch); r.State != StateInvalid || len(r.Evictions) != 10 {
		t.Errorf("%+v", r)
	}
	pods = doomed(Replicas(10, SpotOnly), &Doom{Node: "n", Weight: WeightAdvisory}, func(*Pod) bool { return true })
	if r := Plan(ObservedOf(pods, 10), p, DefaultSettings, Epoch); len(r.Evictions) != 0 {
		t.Errorf("advice is heeded where nobody knows what is wanted: %+v", r.Evictions)
	}
	if r := Plan(dryPods(), p, DefaultSettings, Epoch); len(r.Evictions) != 6 {
		t.Errorf("%d pods that wait for spot are replaced on-demand", len(r.Evictions))
	}
}

func TestAMinorValueThatCannotBeUsedStopsNothingAndIsSaid(t *testing.T) {
	p := policy.Parse(DefaultKeys, Annotations("spot-percentage", "0"), Annotations("spot-pending-timeout", "2s"), policy.Defaults{})
	r := Plan(ObservedOf(Replicas(4, SpotOnly), 4), p, DefaultSettings, Epoch)
	if r.State != StateMoving || len(r.Evictions) != 1 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "spot-pending-timeout") {
		t.Errorf("%+v", r)
	}
}

func TestAWindowThatCannotBeReadIsShut(t *testing.T) {
	p := policy.Parse(DefaultKeys, Annotations("spot-percentage", "0"), Annotations("disruption-schedule", "at night", "disruption-duration", "1h"), policy.Defaults{})
	r := Plan(ObservedOf(Replicas(4, SpotOnly), 4), p, DefaultSettings, Epoch)
	if r.State != StateWaiting || len(r.Evictions) > 0 || WaitOf(&r, WaitWindow) == nil || !strings.Contains(r.Reason, "window is invalid") || !r.Recheck.IsZero() {
		t.Errorf("%+v", r)
	}
	if r = Plan(releasing(2, 2, 0), p, DefaultSettings, Epoch); len(r.Evictions) != 2 {
		t.Errorf("what was released within a window ends: %+v", r)
	}
}
