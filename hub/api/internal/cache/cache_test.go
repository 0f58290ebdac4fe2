package cache

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestAFullCacheDropsWhatWasNotAskedForTheLongestTime(t *testing.T) {
	small := New[int, int](16)
	for i := range 1000 {
		small.Put(i, i, time.Hour)
		if size := len(small.entries.Keys()); size > 16 {
			t.Fatalf("the cache holds %d entries, its limit is 16", size)
		}
		if got, ok := small.Get(i); !ok || got != i {
			t.Fatalf("what was just put is gone: %d", i)
		}
		if got, ok := small.Get(0); !ok || got != 0 {
			t.Fatalf("what is asked for all the time is gone after %d others", i)
		}
	}
}

func TestAnEntryIsGoneOnceItsTimeHasPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New[string, int](16)
		c.Put("a", 1, time.Second)
		if kept, added := c.Add("a", 2, time.Hour); added || kept != 1 {
			t.Errorf("%d was kept, and that it was added is %t", kept, added)
		}
		time.Sleep(time.Second / 2)
		if _, ok := c.Keep("a", time.Second); !ok {
			t.Error("it is gone too early")
		}
		time.Sleep(time.Second - time.Nanosecond)
		if _, ok := c.Get("a"); !ok {
			t.Error("its time was not extended")
		}
		time.Sleep(time.Nanosecond)
		if _, ok := c.Get("a"); ok {
			t.Error("it is there although its time has passed")
		}
		if kept, added := c.Add("a", 2, time.Hour); !added || kept != 2 {
			t.Errorf("%d was kept, and that it was added is %t", kept, added)
		}
		if c.Drop("a"); len(c.entries.Keys()) != 0 {
			t.Error("it was not dropped")
		}
	})
}
