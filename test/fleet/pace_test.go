package fleet

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhatIsDoneAtAPaceEndsInOrder(t *testing.T) {
	const pace, limit, takes = time.Second, 10 * time.Second, 3 * time.Second
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(4500*time.Millisecond, cancel) // in the middle of the second call
		begun, ended := 0, 0
		EveryWithin(ctx, pace, limit, func(ctx context.Context) {
			begun++
			time.Sleep(takes)
			if ctx.Err() == nil {
				ended++
			}
		})
		if begun != 2 || ended != 2 {
			t.Errorf("%d calls were begun and %d ended, want 2 and 2", begun, ended)
		}
	})
}
