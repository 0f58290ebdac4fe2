package leadership

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A subscriber that asked in the moment between the end of a term and its late renewal was refused. It has to ask again,
// though whoever looks only now and then has seen one term without a gap.
func TestSubscribersAskAgainAfterEachRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		owner := newTerm("a_id/10.0.0.1:1", time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		asked := 0
		owner.Subscribe(func() { asked++ })
		renew := func() { owner.renewed(time.Now(), 5*time.Second, 1) }
		renew()
		go owner.follow(ctx)
		synctest.Wait()
		before := asked
		time.Sleep(2 * time.Second)
		renew()
		synctest.Wait()
		if asked != before+1 {
			t.Errorf("subscribers were notified %d times of a renewal, want once", asked-before)
		}
	})
}
