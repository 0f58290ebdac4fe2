package retry_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/retry"
)

func TestBackOffGrowsUpToItsMost(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.Uint32Range(1, 1<<31).Draw(rt, "n")
		now, next := rapid.Float64Range(0, 0.999).Draw(rt, "now"), rapid.Float64Range(0, 0.999).Draw(rt, "next")
		d := retry.Backoff(n, now)
		if d < 900*time.Millisecond || d > 330*time.Second {
			rt.Fatalf("delay %d is %v", n, d)
		}
		if n < 9 && retry.Backoff(n+1, next) <= d {
			rt.Fatalf("delay %d is %v and the next %v", n, d, retry.Backoff(n+1, next))
		}
	})
	if d := retry.Backoff(1, 0.5); d != time.Second {
		t.Errorf("the first delay is %v", d)
	}
	if d := retry.Backoff(100, 0.5); d != 5*time.Minute {
		t.Errorf("the longest delay is %v", d)
	}
}
