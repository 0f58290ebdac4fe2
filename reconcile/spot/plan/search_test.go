package plan_test

import (
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
)

func TestPodsWithoutASlotAreSearchedOnceTheirSignHasStoodForAMoment(t *testing.T) {
	start := spottest.Epoch
	s := &plan.Search{}
	ask := func(after time.Duration, status, visible int, search bool, recheck time.Duration) {
		t.Helper()
		got, again := s.Wanted(status, visible, start.Add(after))
		if want := start.Add(recheck); got != search || (recheck > 0 && !again.Equal(want)) || (recheck == 0 && !again.IsZero()) {
			t.Errorf("after %s: search %t and again after %s, want %t and %s", after, got, again.Sub(start), search, recheck)
		}
	}
	ask(0, 5, 4, false, time.Second)   // a pod is gone that the status still counts
	ask(time.Second/2, 4, 4, false, 0) // and now it does not
	ask(time.Minute, 10, 0, false, 61*time.Second)
	ask(61*time.Second, 10, 0, true, 91*time.Second)
	ask(62*time.Second, 10, 0, false, 91*time.Second) // not again while nothing changes
	ask(70*time.Second, 10, 4, false, 71*time.Second) // something changed
	ask(71*time.Second, 10, 4, true, 101*time.Second)
	ask(102*time.Second, 10, 4, true, 132*time.Second)
}

func TestPodsAreCountedAsTheirControllerCountsThem(t *testing.T) {
	dying, failed := plan.Pod{GoneBy: spottest.Epoch}, plan.Pod{Finished: true}
	for name, c := range map[string]struct {
		ordinals bool
		pod      plan.Pod
		want     bool
	}{
		"a ReplicaSet, what it deletes":  {false, dying, false},
		"a ReplicaSet, what failed":      {false, failed, false},
		"a ReplicaSet, what runs":        {false, plan.Pod{}, true},
		"a StatefulSet, what it deletes": {true, dying, true},
		"a StatefulSet, what failed":     {true, failed, true},
	} {
		if got := c.pod.Counted(c.ordinals); got != c.want {
			t.Errorf("%s: counted %v", name, got)
		}
	}
}
