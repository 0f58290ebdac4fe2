package leadership

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile"
)

// A runtime's keys run where the Lease is held, and nowhere else.
func TestTheKeysOfAReplicaThatDoesNotActAreHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &leaseServer{}
		a := newReplica(t, server, 1)
		eventually(t, time.Second, "a acts", a.acts)
		rt, err := reconcile.NewRuntime(reconcile.Options{})
		if err != nil {
			t.Fatal(err)
		}
		rt.Release("eu", reconcile.HoldBreaker) // the runtime knows the member from now on
		b := newReplicaWith(t, server, 2, func(l *Lease) { l.Hold(rt) })
		server.follow(b)
		time.Sleep(time.Minute)
		if reason, held := rt.Held("eu"); !held || !strings.Contains(reason, "hub-1") {
			t.Errorf("the standby's keys are held: %t, because %q", held, reason)
		}
		a.end()
		eventually(t, time.Minute, "b acts", b.acts)
		synctest.Wait()
		if reason, held := rt.Held("eu"); held {
			t.Errorf("the keys of the replica that acts are held: %s", reason)
		}
	})
}
