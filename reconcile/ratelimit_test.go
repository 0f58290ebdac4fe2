package reconcile

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestARateLimitBoundsEachMemberAfterItsBurstAndLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1, WorkersPerMember: 100}), &calls{}
		c := launch(h, For(h.Runtime, "c", counting(seen)).RateLimit(10, 5))
		for _, member := range []string{"a", "b"} {
			m, _ := h.join(c, member, configMap("kind"))
			for i := range 50 {
				m.add(configMap(fmt.Sprint(i)))
			}
		}
		synctest.Wait()
		if n := seen.count(); n != 2*5 {
			t.Errorf("%d reconciles at once, want the bursts of two members", n)
		}
		time.Sleep(2*time.Second + time.Millisecond)
		if n := seen.count(); n != 2*(5+20) {
			t.Errorf("%d reconciles after two seconds, want 50", n)
		}
		// The one that is ordered must not have begun yet; in which order they do is not said.
		ordered := 49
		for ; ordered > 0; ordered-- {
			if record, known := h.Lookup(keyOf("c", "a", fmt.Sprint(ordered))); known && record.Runs == 0 {
				break
			}
		}
		if _, err := h.Requeue(keyOf("c", "a", fmt.Sprint(ordered))); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := seen.count(); n != 51 {
			t.Errorf("%d reconciles, want the one that was ordered at once", n)
		}
		time.Sleep(time.Minute)
		if n := seen.count(); n != 100 {
			t.Errorf("%d reconciles in the end, want all 100", n)
		}
		h.cancel()
	})
}

func TestABackOffIsAsTheBuilderWasTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1}), &calls{}
		c := launch(h, For(h.Runtime, "c", failing(seen)).Backoff(10*time.Second, 40*time.Second))
		a, _ := h.join(c, "a", configMap("kind"))
		a.add(configMap("one"))
		time.Sleep(5 * time.Minute)
		for i, gap := range seen.gaps() {
			want := min(10*time.Second<<i, 40*time.Second)
			if gap < want*9/10 || gap > want*11/10 {
				t.Errorf("gap %d is %v, want about %v", i, gap, want)
			}
		}
		if seen.count() < 5 {
			t.Errorf("%d reconciles", seen.count())
		}
		h.cancel()
	})
}
