package shortage

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// relapse lets the probe of a decision be bound, and a replica find no node; it returns how long the decision stood before.
func relapse(t *testing.T, w *trackerWorld, shape capacity.Requirements, now time.Time, joins bool) (time.Time, time.Duration) {
	t.Helper()
	start := now
	for len(w.open()) == 0 {
		if now = now.Add(time.Second); now.Sub(start) > 48*time.Hour {
			t.Fatal("it is never probed")
		}
		if joins {
			w.NodeJoined(now)
		}
		w.step(now)
	}
	stood := now.Sub(start)
	w.bindOpen(now)
	w.step(now)
	if !w.Probing(shape, testNamespace) {
		t.Error("nobody has tried, and it is believed")
	}
	replica := pendingPod(fmt.Sprint(now.Unix()), shape, now)
	replica.Replica = "set/db-" + fmt.Sprint(now.Unix())
	w.Observe(replica, now)
	now = now.Add(time.Minute)
	w.step(now)
	w.Gone(replica.UID)
	if len(w.Decisions()) != 1 {
		t.Fatalf("%+v", w.Decisions())
	}
	return now, stood
}

func dryFor(w *trackerWorld, shape capacity.Requirements) time.Time {
	w.Observe(pendingPod("first", shape, epoch), epoch)
	now := epoch.Add(time.Minute)
	w.step(now)
	w.Gone("first")
	return now
}

func TestADecisionWhoseProbesAreTooEasyStandsLongerEachTime(t *testing.T) {
	volume := cpu(100, capacity.ConstraintVolume+"shop/data")
	for name, c := range map[string]struct {
		shape capacity.Requirements
		joins bool
		want  []time.Duration
	}{
		"a volume":                      {volume, false, []time.Duration{2 * time.Minute, 4 * time.Minute, 16 * time.Minute, 64 * time.Minute, 256 * time.Minute, 1024 * time.Minute, 24 * time.Hour, 24 * time.Hour}},
		"a volume, and nodes that join": {volume, true, []time.Duration{2 * time.Minute, 4 * time.Minute, 16 * time.Minute, 64 * time.Minute}},
		"nothing that a probe has not":  {cpu(100), false, []time.Duration{2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 64 * time.Minute, 256 * time.Minute}},
		"the same, and nodes that join": {cpu(100), true, []time.Duration{2 * time.Minute, 2 * time.Minute, 2 * time.Minute, 64 * time.Minute}},
	} {
		w := newTrackerWorld()
		now := dryFor(w, c.shape)
		for i, want := range c.want {
			var stood time.Duration
			if now, stood = relapse(t, w, c.shape, now, c.joins); stood.Round(time.Minute) != want {
				t.Errorf("%s: the %d. time it stood for %s, want %s", name, i+1, stood, want)
			}
		}
	}
}

func TestARestartKnowsHowOftenProbesWereTooEasy(t *testing.T) {
	w, shape := newTrackerWorld(), cpu(100, capacity.ConstraintVolume+"shop/data")
	now := dryFor(w, shape)
	for range 3 {
		now, _ = relapse(t, w, shape, now, false)
	}
	w.restart(now)
	if _, stood := relapse(t, w, shape, now, true); stood.Round(time.Minute) != 64*time.Minute {
		t.Errorf("it stood for %s", stood)
	}
}

func TestAReplicaThatFindsANodeProvesTheProbeRight(t *testing.T) {
	w, shape := newTrackerWorld(), cpu(100, capacity.ConstraintVolume+"shop/data")
	now := dryFor(w, shape)
	for range 3 {
		now, _ = relapse(t, w, shape, now, false)
	}
	for len(w.open()) == 0 {
		now = now.Add(time.Minute)
		w.step(now)
	}
	w.bindOpen(now)
	w.step(now)
	now = now.Add(time.Minute)
	w.Observe(boundTo("moved", shape, now, time.Time{}), now)
	if w.Probing(shape, testNamespace) {
		t.Error("a replica has found a node")
	}
	w.Observe(pendingPod("next", shape, now), now)
	w.step(now.Add(time.Minute))
	if v := w.Decisions(); len(v) != 1 || v[0].Relapses != 0 {
		t.Errorf("%+v", v)
	}
}

func TestAReplicaThatFoundNoNodeIsLeftAloneForADay(t *testing.T) {
	w, shape := newTrackerWorld(), cpu(100, capacity.ConstraintVolume+"shop/data")
	now := dryFor(w, shape)
	if w.tried.len() > 0 {
		t.Error("what found no node in the drought itself is no sign of its own")
	}
	now, _ = relapse(t, w, shape, now, false)
	if w.tried.len() != 1 {
		t.Fatalf("%v", w.tried.at)
	}
	for replica, at := range w.tried.at {
		if until := w.Tried(replica); !until.Equal(at.Add(policy.TriedTime)) {
			t.Errorf("left alone until %s", until)
		}
		if w.Judge(now.Add(policy.TriedTime + time.Hour)); !w.Tried(replica).IsZero() {
			t.Error("it is never forgotten")
		}
	}
}

func TestWhatAPodSaysOfAnEarlierTryIsRecalledForADayAtMost(t *testing.T) {
	for name, c := range map[string]struct {
		told, until time.Duration
	}{"an hour ago": {-time.Hour, policy.TriedTime - time.Hour}, "two days ago": {-2 * policy.TriedTime, 0}, "by another clock": {time.Hour, 0}} {
		d := NewSpotTracker(DefaultSettings())
		d.Recall("set/db-1", epoch.Add(c.told), epoch)
		d.Recall("set/db-1", epoch.Add(c.told-time.Minute), epoch) // what is older changes nothing
		want := time.Time{}
		if c.until > 0 {
			want = epoch.Add(c.until)
		}
		if got := d.Tried("set/db-1"); !got.Equal(want) {
			t.Errorf("%s: left alone until %s, want %s", name, got, want)
		}
	}
}

func TestAnExclusionIsADecisionUntilANodeFits(t *testing.T) {
	w, shape := newTrackerWorld(), cpu(100, capacity.ConstraintSelector+"team=a")
	w.Exclude(shape, testNamespace, true, epoch)
	w.Exclude(shape, testNamespace, true, epoch.Add(time.Minute))
	if plan := w.step(epoch.Add(time.Minute)); len(plan.Create) != 1 || !plan.Create[0].Since.Equal(epoch) {
		t.Errorf("%+v", plan)
	}
	if _, dry := w.Dry(cpu(100), testNamespace); dry {
		t.Error("it speaks for pods that ask for less")
	}
	w.Exclude(shape, testNamespace, false, epoch.Add(2*time.Minute))
	if plan := w.step(epoch.Add(2 * time.Minute)); len(w.Decisions()) > 0 || len(plan.Delete) != 1 {
		t.Errorf("%+v", plan)
	}
	w.Observe(pendingPod("a", shape, epoch), epoch)
	w.step(epoch.Add(time.Hour))
	if w.Exclude(shape, testNamespace, false, epoch.Add(time.Hour)); len(w.Decisions()) != 1 {
		t.Error("a node that fits by its labels ends a drought that pods have found")
	}
}

// Whoever may change a template makes another decision with each change, where the nodes that there are leave such pods out.
func TestDecisionsThatAreOverTakeLittle(t *testing.T) {
	d, now := NewSpotTracker(Settings{}), time.Unix(0, 0)
	shape := func(n int) capacity.Requirements {
		return capacity.Requirements{Constraints: []string{fmt.Sprint("node:", n, strings.Repeat("a", 60_000))}}
	}
	for n := range 1000 {
		d.Exclude(shape(n), testNamespace, true, now)
		d.Exclude(shape(n), testNamespace, false, now)
		now = now.Add(time.Millisecond)
	}
	bytes := 0
	for text := range d.past {
		bytes += endedBytes + len(text)
	}
	if bytes == 0 || bytes > maxPast || len(d.decisions) != 0 {
		t.Errorf("%d bytes of %d decisions that are over are kept, and %d decisions stand", bytes, len(d.past), len(d.decisions))
	}
	if d.past[shape(999).String()] == nil || d.past[shape(0).String()] != nil {
		t.Error("the last is forgotten, or the first is not")
	}
}
