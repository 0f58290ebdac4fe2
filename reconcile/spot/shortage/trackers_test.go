package shortage

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
)

// A judgement of hundreds of shapes takes tens of milliseconds, and one tenant can have it made again and again.
func TestACallAboutANewPodDoesNotWaitForAJudgement(t *testing.T) {
	now := time.Now()
	d := NewTrackers(DefaultSettings())
	d.Observe(capacity.Spot, pendingPod("p", cpu(500), now.Add(-time.Hour)), now)
	d.Judge(now)
	d.mu.Lock() // as while it is judged
	defer d.mu.Unlock()
	answer := make(chan time.Time)
	go func() {
		d.TriedAt("set-db/db-3")
		answer <- d.Since(capacity.Spot, cpu(1000), testNamespace)
	}()
	select {
	case since := <-answer:
		if since.IsZero() {
			t.Error("spot is not dry")
		}
	case <-time.After(time.Minute):
		t.Error("it waits")
	}
}

// What is read without the lock is what the trackers know.
func TestWhatIsDryIsPublishedWithEachChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Now()
		d := NewTrackers(DefaultSettings())
		types := []capacity.Type{capacity.Spot, capacity.OnDemand}
		shape := rapid.Custom(func(t *rapid.T) capacity.Requirements {
			return cpu(rapid.Int64Range(1, 4).Draw(t, "cpu"), rapid.SampledFrom([][]string{nil, {"a"}, {"b"}, {"a", "b"}}).Draw(t, "constraints")...)
		})
		for range rapid.IntRange(1, 30).Draw(t, "changes") {
			of := rapid.SampledFrom(types).Draw(t, "type")
			pod := pendingPod(fmt.Sprint(rapid.IntRange(1, 5).Draw(t, "pod")), shape.Draw(t, "shape"), now.Add(-time.Hour))
			switch rapid.IntRange(0, 5).Draw(t, "change") {
			case 0:
				d.Observe(of, pod, now)
			case 1:
				pod.BoundAt = now
				d.Observe(of, pod, now)
			case 2:
				d.Gone(pod.UID)
			case 3:
				d.Exclude(pod.Requirements, testNamespace, rapid.Bool().Draw(t, "excluded"), now)
			case 4:
				d.Step(now)
			case 5:
				d.Forget(func(stand []Standing) []bool {
					keep := make([]bool, len(stand))
					for i := range stand {
						keep[i] = pod.Requirements.AtLeast(stand[i].Requirements)
					}
					return keep
				}, now)
			}
			d.Judge(now)
			now = now.Add(time.Second)
			asked := shape.Draw(t, "asked")
			for _, of := range types {
				if want, _ := d.Of(of).Dry(asked, testNamespace); !d.Since(of, asked, testNamespace).Equal(want) {
					t.Fatalf("%s is dry for %v since %s, and %s is read", of, asked, want, d.Since(of, asked, testNamespace))
				}
			}
			if d.Since(capacity.Unknown, asked, testNamespace); d.AnyDry.Load() != (len(d.All()) > 0) {
				t.Fatalf("%d decisions stand, and AnyDry says %t", len(d.All()), d.AnyDry.Load())
			}
		}
	})
}

// Who names replicas can name as many as it likes.
func TestReplicasWithoutEndThatWereTriedTakeLittle(t *testing.T) {
	now := time.Now()
	w := newTrackerWorld()
	for n := range maxTried + 100 {
		w.Recall(fmt.Sprint(n), now.Add(-time.Minute), now)
	}
	w.Recall("7", now, now)
	if w.tried.len() != maxTried || !w.tried.of("7").Equal(now) {
		t.Errorf("%d are remembered, the seventh from %s", w.tried.len(), w.tried.of("7"))
	}
}

// Whoever may write in the namespace of probes can write what the hub would not.
func TestAProbeThatTheHubCannotHaveWrittenIsDeleted(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	many := capacity.Requirements{CPU: 100}
	for n := range maxParts + 1 {
		many.Constraints = append(many.Constraints, fmt.Sprintf("select:%03d=a", n))
	}
	for name, c := range map[string]struct {
		decision Decision
		stands   bool
	}{
		"one of a replica with a clock that is ahead": {Decision{Since: now.Add(clockSkew / 2), NextProbe: now.Add(clockSkew / 2).Add(mostAfterRelapses)}, true},
		"made in the future":                          {Decision{Since: now.AddDate(1, 0, 0), NextProbe: now}, false},
		"to be opened in a year":                      {Decision{Since: now, NextProbe: now.AddDate(1, 0, 0)}, false},
		"more parts than are judged":                  {Decision{Requirements: many, Since: now, NextProbe: now}, false},
	} {
		w := NewSpotTracker(DefaultSettings())
		c.decision.Capacity = capacity.Spot
		p := Probe{Name: ProbeName(c.decision.Requirements.String(), &c.decision), Decision: c.decision, Gated: true}
		w.ObserveProbe(p, now)
		plan := w.Step(now)
		if stands := len(w.Decisions()) == 1; stands != c.stands || len(plan.Delete) != 0 == c.stands {
			t.Errorf("%s: stands: %t, deleted: %v", name, stands, plan.Delete)
		}
	}
}
