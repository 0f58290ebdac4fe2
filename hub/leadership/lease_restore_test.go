package leadership

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// trusted is the age of a backup that may be restored in less than a lease duration: docs/operate.md.
const trusted = 2 * unreadDurations * 15 * time.Second

// A replica reads nothing from before a backup until that is restored, at once, over the Lease of the replica that acted
// meanwhile: it finds the record that it read or wrote last, as after an outage in which nobody acted.
func TestAReplicaThatWasGoneFromABackupUntilItsRestoreDoesNotActAtOnce(t *testing.T) {
	for name, ownerGoes := range map[string]bool{"owner": true, "standby": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, gone, acting := startPair(t)
				if !ownerGoes {
					gone, acting = acting, gone
				}
				eventually(t, time.Minute, "both know the last record", func() bool {
					record, _ := server.read()
					return time.Now().Second() > 7 && acting.knows(record) && gone.knows(record)
				})
				gone.wire.set(func(w *wire) { w.loseThere = true })
				server.backup()
				time.Sleep(trusted)
				if !acting.acts() {
					t.Fatal("nobody acts")
				}
				acting.wire.set(func(w *wire) { w.loseThere = true })
				server.restore(0)
				gone.wire.set(func(w *wire) { w.loseThere = false })
				eventually(t, 2*testElection.LeaseDuration, "the one that was gone acts", func() bool {
					if gone.acts() && acting.acts() {
						t.Fatal("both act")
					}
					return gone.acts()
				})
			})
		})
	}
}

// A replica that has never read the Lease finds one that was given up, in a backup that was restored over the record of the
// replica that acts.
func TestANewReplicaDoesNotActAtOnceByAnOldReleaseFromABackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, first := startOwner(t)
		first.stop()
		<-first.done
		server.backup()
		acting := newReplica(t, server, 2)
		eventually(t, time.Minute, "the second acts", acting.acts)
		time.Sleep(trusted)
		acting.wire.set(func(w *wire) { w.loseThere = true })
		server.restore(0)
		fresh := newReplica(t, server, 3)
		eventually(t, 2*testElection.LeaseDuration, "the new one acts", func() bool {
			if fresh.acts() && acting.acts() {
				t.Fatal("both act")
			}
			return fresh.acts()
		})
	})
}

// A hub of one replica that is replaced does not wait: its Lease was given up a moment ago.
func TestANewReplicaActsAtOnceByAFreshRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, first := startOwner(t)
		time.Sleep(trusted)
		first.stop()
		<-first.done
		time.Sleep(2 * testElection.LeaseDuration) // its image is pulled
		eventually(t, 2*testElection.RetryPeriod, "the second acts", newReplica(t, server, 2).acts)
	})
}

// An owner that could not read the Lease for a shorter time acts as soon as it can: backups are older than that.
func TestAShortOutageCostsNoWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a := startOwner(t)
		a.wire.set(func(w *wire) { w.loseThere = true })
		time.Sleep(3 * testElection.LeaseDuration)
		if a.acts() {
			t.Fatal("it acts without its Lease")
		}
		a.wire.set(func(w *wire) { w.loseThere = false })
		eventually(t, 4*testElection.RetryPeriod, "it acts again", a.acts)
	})
}

// Clocks differ, and a record has its times from the clock of its writer: by seconds alone two of different writers are equal.
func TestARecordThatAPersonGaveUsIsNotTakenForOurs(t *testing.T) {
	second := metav1.NewTime(time.Date(2030, 1, 1, 0, 0, 7, 0, time.UTC))
	record := func(holder string, acquired time.Duration) resourcelock.LeaderElectionRecord {
		return resourcelock.LeaderElectionRecord{HolderIdentity: holder, LeaseDurationSeconds: 15, RenewTime: second,
			AcquireTime: metav1.NewTime(second.Add(-acquired)), LeaderTransitions: 3}
	}
	now := second.Time
	ours := newTerm("a_id/10.0.0.1:1", 0)
	ours.now = func() time.Time { return now }
	ours.sending(record(ours.identity, time.Minute))
	ours.renewed(now, 15*time.Second, 3)
	now = now.Add(30 * time.Second)
	ours.saw(record(ours.identity, time.Minute), true)
	if err := ours.othersEnded(); err != nil {
		t.Errorf("our own record: %v", err)
	}
	ours.saw(record(ours.identity, time.Hour), true)
	if ours.othersEnded() == nil {
		t.Error("a record of another writer, in which a person put our name, is taken for ours")
	}
}

// What we wrote once comes back from a backup, after somebody else has acted.
func TestAnOldRecordOfOursIsNotTakenForOurLast(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 7, 0, time.UTC)
	ours := newTerm("a_id/10.0.0.1:1", 0)
	ours.now = func() time.Time { return now }
	record := resourcelock.LeaderElectionRecord{HolderIdentity: ours.identity, LeaseDurationSeconds: 15, RenewTime: metav1.NewTime(now)}
	ours.sending(record)
	ours.renewed(now, 15*time.Second, 0)
	now = now.Add(time.Minute)
	ours.saw(resourcelock.LeaderElectionRecord{HolderIdentity: "b", LeaseDurationSeconds: 15, RenewTime: metav1.NewTime(now), LeaderTransitions: 1}, true)
	now = now.Add(20 * time.Second) // b acts, and this replica could not read that for a moment
	ours.saw(record, true)
	if ours.othersEnded() == nil {
		t.Error("nothing waits for the replica that acted last")
	}
}

// The elector gives up what it believes to be its own, also when it has just read that it is not.
func TestOnlyARecordWithTheOwnNameIsReplacedByOneWithout(t *testing.T) {
	for name, c := range map[string]struct {
		holder string
		want   error
	}{"ours": {"hub-1", nil}, "another's, whose term has ended as far as was seen": {"hub-2", errNotHolder}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &leaseServer{}
				if _, err := server.write(resourcelock.LeaderElectionRecord{HolderIdentity: c.holder, LeaseDurationSeconds: 15}, 0); err != nil {
					t.Fatal(err)
				}
				w := &wire{timeout: time.Second}
				lock := &watchedLock{Interface: &wiredLock{server: server, wire: w, identity: "hub-1"}, term: newTerm("hub-1", 0),
					stopping: func() bool { return true }}
				for range 2 { // the second time, its term has ended
					if _, _, err := lock.Get(context.Background()); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Minute)
				}
				err := lock.Update(context.Background(), resourcelock.LeaderElectionRecord{LeaseDurationSeconds: releasedSeconds})
				if record, _ := server.read(); !errors.Is(err, c.want) || (record.HolderIdentity == "") != (c.want == nil) {
					t.Errorf("%v, and the holder is now %q", err, record.HolderIdentity)
				}
			})
		})
	}
}

// knows reports whether the replica has read or written a record.
func (r *replica) knows(record resourcelock.LeaderElectionRecord) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return record.HolderIdentity == r.holder && (markOf(record) == r.shown || markOf(record) == r.confirmed)
}
