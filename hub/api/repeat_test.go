package api

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestRepeat(t *testing.T) {
	for name, c := range map[string]struct {
		// end ends it in some way, half an interval after the third call.
		end  func(stop func(), cancel context.CancelFunc)
		most int // how often check says again
		want int
	}{
		"until stop is called":      {end: func(stop func(), _ context.CancelFunc) { stop() }, most: 100, want: 3},
		"until its context ends":    {end: func(_ func(), cancel context.CancelFunc) { cancel() }, most: 100, want: 3},
		"until check returns false": {end: func(func(), context.CancelFunc) {}, most: 1, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				begun, calls := time.Now(), 0
				stop := repeat(ctx, time.Second, func() bool {
					calls++
					if at := time.Since(begun); at != time.Duration(calls)*time.Second {
						t.Errorf("call %d after %s", calls, at)
					}
					return calls <= c.most
				})
				defer stop()
				time.Sleep(3500 * time.Millisecond)
				c.end(stop, cancel)
				time.Sleep(time.Minute)
				synctest.Wait()
				if calls != c.want {
					t.Errorf("%d calls, want %d", calls, c.want)
				}
			})
		})
	}
}

// A check that is under way when it is stopped is the last one.
func TestRepeatIsNotArmedAgainByACheckThatOutlivesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		under := make(chan struct{})
		stop := repeat(t.Context(), time.Second, func() bool {
			calls.Add(1)
			<-under
			return true
		})
		time.Sleep(1500 * time.Millisecond)
		stop()
		close(under)
		time.Sleep(time.Minute)
		if is := calls.Load(); is != 1 {
			t.Errorf("%d calls", is)
		}
	})
}
