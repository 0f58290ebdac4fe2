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
	go func() { answer <- d.Since(capacity.Spot, cpu(1000)) }()
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
				d.Exclude(pod.Requirements, rapid.Bool().Draw(t, "excluded"), now)
			case 4:
				d.Step(now)
			case 5:
				d.Forget(func() []capacity.Requirements { return []capacity.Requirements{pod.Requirements} }, now)
			}
			d.Judge(now)
			now = now.Add(time.Second)
			asked := shape.Draw(t, "asked")
			for _, of := range types {
				if want, _ := d.Of(of).Dry(asked); !d.Since(of, asked).Equal(want) {
					t.Fatalf("%s is dry for %v since %s, and %s is read", of, asked, want, d.Since(of, asked))
				}
			}
			if d.Since(capacity.Unknown, asked); d.AnyDry.Load() != (len(d.All()) > 0) {
				t.Fatalf("%d decisions stand, and AnyDry says %t", len(d.All()), d.AnyDry.Load())
			}
		}
	})
}
