package leadership

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// eventually waits, in the bubble's time, until ok.
func eventually(t *testing.T, within time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if took := time.Since(began); ok() {
			return took
		} else if took > within {
			t.Fatalf("not within %s: %s", within, what)
		}
	}
}

func TestTheOwnersAddressIsKnownToAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b := startPair(t)
		for _, r := range []*replica{a, b} {
			eventually(t, 3*time.Second, "the owner is known", func() bool {
				address, until := r.Owner("any")
				return address == "10.0.0.1:9444" && until.After(time.Now())
			})
		}
		if err := b.MayWrite("any"); err == nil || err.Error() != "replica hub-1 at 10.0.0.1:9444 holds the Lease" {
			t.Errorf("the standby's refusal does not name the owner: %v", err)
		}
	})
}

func TestAnOwnerThatCannotRenewStopsWritingBeforeAnotherBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b := startPair(t)
		a.wire.set(func(w *wire) { w.loseThere = true })
		began := time.Now()
		eventually(t, time.Minute, "a's fence shuts", func() bool { return !a.acts() })
		shut := time.Now()
		eventually(t, time.Minute, "b takes over", b.acts)
		if gap := time.Since(shut); gap < testMargin {
			t.Errorf("b began %s after a's last write could have started, which may take %s", gap, testMargin)
		}
		if took := time.Since(began); took > testElection.LeaseDuration+3*testElection.RetryPeriod {
			t.Errorf("taking over took %s", took)
		}
		// a may still be asked for what it knows, and says who owns the member when it can reach the hub cluster again.
		a.wire.set(func(w *wire) { w.loseThere = false })
		eventually(t, time.Minute, "a knows the new owner", func() bool { address, _ := a.Owner("x"); return address == "10.0.0.2:9444" })
	})
}

func TestAHookThatBlocksPastTheDeadlineWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, a := startOwner(t)
		lost := make(chan struct{})
		once := sync.OnceFunc(func() { close(lost) }) // it may be reported again, when it returns
		a.Subscribe(func() {
			if _, mine := a.Mine("m"); !mine {
				once()
				time.Sleep(5 * time.Minute) // the hook
			}
		})
		b := newReplica(t, server, 2)
		a.wire.set(func(w *wire) { w.loseThere = true })
		<-lost
		eventually(t, time.Minute, "b takes over", func() bool {
			if a.acts() {
				t.Fatal("a may write while its stop hook blocks")
			}
			return b.acts()
		})
	})
}

func TestAReplicaThatCouldNotRenewDoesNotGiveTheLeaseUpEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, a := startOwner(t)
		released := false
		server.mu.Lock()
		holder := server.record.HolderIdentity
		server.mu.Unlock()
		// Renewals arrive, their answers do not: the elector gives up, and its release would arrive as well.
		a.wire.set(func(w *wire) { w.loseOperations = true })
		for range 3000 {
			time.Sleep(10 * time.Millisecond)
			server.mu.Lock()
			released = released || server.record.HolderIdentity != holder
			server.mu.Unlock()
		}
		if released {
			t.Error("the Lease was given up while work begun under it may still go on")
		}
		if a.acts() {
			t.Error("a acts without knowing that it holds the Lease")
		}
		a.wire.set(func(w *wire) { w.loseOperations = false })
		eventually(t, time.Minute, "a acts again", a.acts)
	})
}

func TestAStoppedOwnerHandsOverWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, a, b := startPair(t)
		server.follow(b)
		time.Sleep(7 * time.Second)
		go a.end()
		eventually(t, time.Second, "b takes over", func() bool {
			if a.acts() && b.acts() {
				t.Fatal("both act")
			}
			return b.acts()
		})
		<-a.done
	})
}

func TestALeaseTakenByHandStopsItsOwnerAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, a := startOwner(t)
		server.follow(a)
		server.mu.Lock()
		taken := *server.record
		from := server.version
		server.mu.Unlock()
		taken.HolderIdentity = "somebody"
		if _, err := server.write(taken, from); err != nil {
			t.Fatal(err)
		}
		if a.acts() {
			t.Error("a acts though its watch showed another holder")
		}
	})
}

func TestNewsFromBeforeTheTakeoverDoNotStopTheOwner(t *testing.T) {
	now := time.Now()
	owner := newTerm("b_id/10.0.0.2:1", time.Second)
	owner.now = func() time.Time { return now }
	owner.renewed(now, 15*time.Second, 4)
	record := func(holder string, transitions int) resourcelock.LeaderElectionRecord {
		return resourcelock.LeaderElectionRecord{HolderIdentity: holder, LeaseDurationSeconds: 15, RenewTime: metav1.NewTime(now), LeaderTransitions: transitions}
	}
	owner.saw(record("a_id/10.0.0.1:1", 3), false)
	if err := owner.MayWrite("m"); err != nil {
		t.Errorf("an old event stopped the owner: %v", err)
	}
	owner.saw(record("c_id/10.0.0.3:1", 5), false)
	if err := owner.MayWrite("m"); err == nil || !strings.Contains(err.Error(), "10.0.0.3:1") {
		t.Errorf("the next holder did not stop the owner: %v", err)
	}
}

// The elector writes one renewal time into all requests of a try; what others wait for is a change of the text.
func TestARenewalThatOthersCannotTellFromTheOneBeforeDoesNotLengthenTheTerm(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	owner := newTerm("a_id/10.0.0.1:1", 0)
	owner.now = func() time.Time { return now }
	first, since := owner.renewalTime()
	owner.renewed(since, 15*time.Second, 0)
	until, _ := owner.Mine("m")

	now = now.Add(900 * time.Millisecond)
	again, since := owner.renewalTime()
	owner.renewed(since, 15*time.Second, 0)
	if after, _ := owner.Mine("m"); !again.Equal(first) || !after.Equal(until) {
		t.Errorf("renewed at %s and %s: the term went from %s to %s", first, again, until, after)
	}
	now = now.Add(100 * time.Millisecond)
	if next, since := owner.renewalTime(); !next.After(first) || !since.Equal(now) {
		t.Errorf("a second later it is renewed at %s, counting from %s", next, since)
	}
	now = now.Add(-time.Hour)
	if next, _ := owner.renewalTime(); !next.After(first.Add(time.Second)) {
		t.Errorf("after the clock was set back by an hour, the renewal time went from %s to %s", first, next)
	}
}
