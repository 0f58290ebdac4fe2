package leadership

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// A frozen process continues where it was, and may find a request to stop when it does.
func TestAReplicaThatStopsDoesNotGiveUpItsSuccessorsLease(t *testing.T) {
	for name, watches := range map[string]bool{"successor watches": true, "successor's watch is broken": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, a, b := startPair(t)
				if watches {
					server.follow(b)
				}
				time.Sleep(7 * time.Second)
				a.wire.freeze()
				eventually(t, time.Minute, "b takes over", b.acts)
				time.Sleep(6 * time.Second)
				a.stop()
				a.wire.thaw()
				<-a.done
				if holder, _ := server.read(); holder.HolderIdentity != b.identity {
					t.Errorf("the holder is now %q", holder.HolderIdentity)
				}
				if !b.acts() {
					t.Error("b lost the Lease")
				}
			})
		})
	}
}

func TestADeletedLeaseDoesNotMakeTwoOwners(t *testing.T) {
	for offset := range 20 {
		for name, cut := range map[string]bool{"standby saw the last renewal": false, "standby was cut off": true} {
			synctest.Test(t, func(t *testing.T) {
				server, a, b := startPair(t)
				time.Sleep(7*time.Second + time.Duration(offset)*100*time.Millisecond)
				if cut {
					b.wire.set(func(w *wire) { w.loseThere = true })
					time.Sleep(time.Minute)
					b.wire.set(func(w *wire) { w.loseThere = false })
				}
				server.remove()
				for range 500 {
					time.Sleep(10 * time.Millisecond)
					if a.acts() && b.acts() {
						t.Fatalf("%s, %d: both act", name, offset)
					}
				}
				if !cut && !a.acts() {
					t.Errorf("%s, %d: the owner did not create the Lease again", name, offset)
				}
			})
		}
	}
}

// A replica that starts knows nothing of an owner whose Lease was deleted just before.
func TestAReplicaThatStartsAfterALeaseWasDeletedWaitsForItsHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, a := startOwner(t)
		time.Sleep(7 * time.Second)
		a.wire.set(func(w *wire) { w.loseThere = true })
		server.remove()
		b := newReplica(t, server, 2)
		eventually(t, time.Minute, "b takes over", func() bool {
			if a.acts() && b.acts() {
				t.Fatal("both act")
			}
			return b.acts()
		})
	})
}

func TestALeaseWhoseHolderIsErasedByHandDoesNotMakeTwoOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, a, b := startPair(t)
		server.follow(b)
		time.Sleep(7 * time.Second)
		server.edit(func(r *resourcelock.LeaderElectionRecord) { r.HolderIdentity = "" })
		eventually(t, time.Minute, "somebody acts again, and only one", func() bool {
			if a.acts() && b.acts() {
				t.Fatal("both act")
			}
			return b.acts()
		})
	})
}

func TestAnOwnerThatStopsGivesTheLeaseUpAfterItsLastWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, a, b := startPair(t)
		server.follow(b)
		time.Sleep(7 * time.Second)
		_, ended, err := a.BeginWrite("m")
		if err != nil {
			t.Fatal(err)
		}
		stopped := time.Now()
		go a.end()
		for time.Since(stopped) < testMargin-10*time.Millisecond {
			time.Sleep(10 * time.Millisecond)
			if b.acts() {
				t.Fatalf("b acts %s after a's write began", time.Since(stopped))
			}
			if a.acts() {
				t.Fatal("a begins writes while it stops")
			}
			if _, mine := a.Mine("m"); !mine {
				t.Fatal("a ceased to be the owner while nobody else is")
			}
		}
		ended()
		eventually(t, time.Second, "b takes over", b.acts)
		<-a.done
	})
}

// A replica that stops before its last write is known to have ended stops all the same.
func TestAReplicaThatStopsDoesNotWaitForEverForItsWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a := startOwner(t)
		if _, _, err := a.BeginWrite("m"); err != nil {
			t.Fatal(err)
		}
		a.stop()
		eventually(t, testElection.LeaseDuration+time.Second, "a stopped", func() bool {
			select {
			case <-a.done:
				return true
			default:
				return false
			}
		})
	})
}

// clockTime is a time with a reading of the wall clock and one of the monotonic clock, which time.Now does not give in a bubble of
// synctest.
func clockTime(wall time.Time, monotonic time.Duration) time.Time {
	const hasMonotonic, since1885 = 1 << 63, 2682288000 // before Unix time
	type layout struct {
		wall uint64 // hasMonotonic, 33 bits of seconds since 1885, 30 of nanoseconds
		ext  int64
		loc  *time.Location
	}
	at := wall
	raw := (*layout)(unsafe.Pointer(&at))
	raw.wall = hasMonotonic | uint64(wall.Unix()+since1885)<<30 | uint64(wall.Nanosecond())
	raw.ext = int64(monotonic) + 1
	return at
}

func TestASuspendedMachinesTermEndsByTheWallClock(t *testing.T) {
	owner := newTerm("a_id/10.0.0.1:1", 5*time.Second)
	wall := time.Now()
	began := clockTime(wall, time.Hour)
	now := began
	owner.now = func() time.Time { return now }
	_, since := owner.renewalTime()
	owner.renewed(since, 15*time.Second, 0)
	if err := owner.MayWrite("m"); err != nil {
		t.Fatal(err)
	}
	now = clockTime(wall.Add(10*time.Minute), time.Hour+time.Second)
	if now.Sub(began) != time.Second || now.Round(0).Sub(began.Round(0)) != 10*time.Minute {
		t.Fatal("the test does not move the wall clock alone")
	}
	if owner.MayWrite("m") == nil {
		t.Error("the fence is open 10 minutes after the last renewal of a Lease of 15 s")
	}
	now = clockTime(wall.Add(-time.Hour), time.Hour+time.Minute)
	if owner.MayWrite("m") == nil {
		t.Error("the fence is open a minute after the last renewal because the wall clock was set back")
	}
}

// coldReplica is a contender that is warm when a test says so.
func coldReplica(t *testing.T, server *leaseServer, number int, warm *atomic.Bool) *replica {
	t.Helper()
	return newReplicaWith(t, server, number, func(l *Lease) { l.warm, l.warmUp = warm.Load, 30*time.Second })
}

func TestAColdReplicaLeavesTheLeaseToAWarmOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, a := startOwner(t)
		warm := &atomic.Bool{}
		c := coldReplica(t, server, 3, warm)
		b := newReplica(t, server, 2)
		time.Sleep(7 * time.Second)
		a.end()
		eventually(t, time.Minute, "the warm one takes over", func() bool {
			if c.acts() {
				t.Fatal("the cold one took the Lease")
			}
			return b.acts()
		})
		b.stop()
		warm.Store(true)
		eventually(t, time.Minute, "the cold one, which is warm by now, takes over", c.acts)
	})
}

func TestAColdReplicaActsWhenNobodyElseDoes(t *testing.T) {
	for name, leave := range map[string]func(a *replica){
		"given up": func(a *replica) { a.end() },
		"crashed":  func(a *replica) { a.wire.freeze() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, a := startOwner(t)
				time.Sleep(7 * time.Second)
				leave(a)
				c := coldReplica(t, server, 3, &atomic.Bool{})
				took := eventually(t, time.Minute, "the cold one acts", c.acts)
				// Each retry waits for up to 1 + JitterFactor periods.
				retry := time.Duration((1 + leaderelection.JitterFactor) * float64(testElection.RetryPeriod))
				if most := testElection.LeaseDuration + 4*retry; took > most {
					t.Errorf("it took %s, and should take %s at most", took, most)
				}
			})
		})
	}
}

// The Lease is deleted twice: a replica created one after the first time, acts when the former term has ended, and does not know
// of the second. The first owner, which notices only then, goes on for as long as nobody else can have acted, and waits after that.
func TestAnOwnerWhoseLeaseWasDeletedGoesOnNoLongerThanNobodyElseActs(t *testing.T) {
	const duration = 15 * time.Second
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		at := func(after time.Duration) { time.Sleep(time.Until(began.Add(after))) }
		lease := func(holder string, renewed time.Time) resourcelock.LeaderElectionRecord {
			return resourcelock.LeaderElectionRecord{HolderIdentity: holder, LeaseDurationSeconds: 15, RenewTime: metav1.NewTime(renewed)}
		}
		first, second := newTerm("first", testMargin), newTerm("second", testMargin)
		first.renewed(began, duration, 0)
		second.saw(lease("first", began), true)

		at(time.Second) // the Lease is deleted, and the second replica creates one
		second.vanished()
		second.created(duration)
		second.renewed(time.Now(), duration, 0)
		at(7900 * time.Millisecond)
		second.renewed(time.Now(), duration, 0)

		at(8 * time.Second) // that one is deleted, and the first replica creates its own again
		first.vanished()
		first.created(duration)
		first.renewed(time.Now(), duration, 0)
		if !first.MineAny() {
			t.Error("nobody else can act yet, and the first owner does not go on")
		}
		acted := 0
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			one, two := first.MineAny(), second.MineAny()
			if one && two {
				t.Fatalf("both act after %s", time.Since(began))
			}
			if two {
				acted++
			}
		}
		if acted == 0 {
			t.Error("the second replica never acts: this shows nothing")
		}
		at(19 * time.Second)
		first.renewed(time.Now(), duration, 0)
		at(24 * time.Second)
		if !first.MineAny() {
			t.Error("the first owner has waited for a whole term, and does not act")
		}
	})
}
