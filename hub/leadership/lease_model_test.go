package leadership

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Whatever gets lost or late, whoever stops, freezes or dies, whatever the wall clocks say, and whatever a person does to the Lease
// or to the store that it is in: a replica that may write is the only one, and what the others wrote has ended.
func TestAtMostOneReplicasFenceIsOpen(t *testing.T) {
	turns, stops, edits, restores, suspends, jumps, expired := 0, 0, 0, 0, 0, 0, 0
	for seed := range uint64(120) {
		synctest.Test(t, func(t *testing.T) {
			m := newLeaseModel(t, seed)
			for range 20 * 60 * 10 { // ten minutes
				m.step()
				if m.random.IntN(40) == 0 {
					m.disturb()
				}
			}
			turns, stops, edits = turns+m.turns, stops+m.stops, edits+m.edits
			restores, suspends, jumps, expired = restores+m.restores, suspends+m.suspends, jumps+m.jumps, expired+m.expired
		})
	}
	if turns < 180 || stops < 60 || edits < 300 || restores < 200 || suspends < 200 || jumps < 200 || expired < 60 {
		t.Errorf("ownership changed %d times, replicas stopped %d times, %d holders were written by hand, %d backups were restored, machines "+
			"were suspended %d times, wall clocks were set %d times and %d permissions expired before their writes were sent: this shows little",
			turns, stops, edits, restores, suspends, jumps, expired)
	}
}

// leaseModel is three replicas that write as often as they may.
type leaseModel struct {
	t        *testing.T
	seed     uint64
	random   *rand.Rand
	server   *leaseServer
	replicas []*replica
	waiting  [][]permission // of writes that each has begun and not sent yet
	ends     []time.Time    // of the last write of each
	owner    int
	started  int
	turns    int
	stops    int
	edits    int // of the holder's name
	restores int // of the hub cluster's store
	suspends int // of a replica's machine
	jumps    int // of a replica's wall clock
	expired  int // permissions, before their writes were sent
	began    time.Time
	history  []string
}

// permission is what a replica got for one write.
type permission struct {
	until time.Time // by the replica's clocks
	ended func()
	due   time.Time // when the write is sent, unless its replica is frozen then
}

func newLeaseModel(t *testing.T, seed uint64) *leaseModel {
	m := &leaseModel{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 1)), server: &leaseServer{}, owner: -1, began: time.Now()}
	const size = 3
	m.replicas, m.waiting, m.ends = make([]*replica, size), make([][]permission, size), make([]time.Time, size)
	for i := range m.replicas {
		m.start(i)
		eventually(t, time.Second, "the first replica acts", m.replicas[0].acts) // the others know that they are not the first
	}
	return m
}

// start has a new process take the place of replica i.
func (m *leaseModel) start(i int) {
	m.started++
	m.waiting[i] = nil
	began, cold := time.Now(), time.Duration(m.random.Int64N(int64(time.Minute)))
	skew := time.Duration(m.random.IntN(3)-1) * 30 * time.Second
	m.replicas[i] = newReplicaWith(m.t, m.server, m.started, func(l *Lease) {
		l.now = l.lock.(*wiredLock).wire.clock(skew)
		if m.started > len(m.replicas) {
			l.warm, l.warmUp = func() bool { return time.Since(began) > cold }, 30*time.Second
		}
	})
	if m.random.IntN(4) > 0 { // else its watch is broken
		m.server.follow(m.replicas[i])
	}
}

// step lets time pass, and every replica write that may.
func (m *leaseModel) step() {
	time.Sleep(50 * time.Millisecond)
	for i := range m.replicas {
		m.write(i)
	}
}

// write lets replica i begin a write if it may, and send those that it began. Some are not sent at once: they wait for a processor, or
// for the limit on requests, and meanwhile anything may happen.
func (m *leaseModel) write(i int) {
	r := m.replicas[i]
	if r.wire.isFrozen() {
		return
	}
	if until, ended, err := r.BeginWrite("a"); err == nil {
		w := permission{until: until, ended: ended, due: time.Now()}
		if m.random.IntN(8) == 0 {
			w.due = w.due.Add(time.Duration(m.random.Int64N(int64(2 * time.Second))))
		}
		m.waiting[i] = append(m.waiting[i], w)
	}
	m.waiting[i] = slices.DeleteFunc(m.waiting[i], func(w permission) bool { return !time.Now().Before(w.due) && m.send(i, w) })
}

// send sends a write as the transport to members does: not after its permission, and with the rest of it as the time that the API server
// may take, which may be all of it.
func (m *leaseModel) send(i int, w permission) (gone bool) {
	r := m.replicas[i]
	now := r.now()
	left := min(w.until.Sub(now), w.until.Round(0).Sub(now.Round(0)))
	if left <= 0 {
		m.expired++
		w.ended()
		return true
	}
	if i != m.owner {
		m.note("replica %d writes", i)
		m.turns, m.owner = m.turns+1, i
	}
	for j, end := range m.ends {
		if others := time.Until(end); j != i && others > 0 {
			m.t.Fatalf("seed %d: after %s replica %d writes while a write of replica %d goes on for %s; what was done before:\n%s", m.seed,
				time.Since(m.began), i, j, others, strings.Join(m.history, "\n"))
		}
	}
	took := left
	if m.random.IntN(2) == 0 {
		took = time.Duration(m.random.Int64N(int64(left)))
	}
	if end := time.Now().Add(took); end.After(m.ends[i]) {
		m.ends[i] = end
	}
	r.wire.late.Go(func() {
		time.Sleep(took)
		w.ended()
	})
	return true
}

// disturb does something to one replica or to the Lease.
func (m *leaseModel) disturb() {
	if m.server.away() {
		m.upset(m.replicas[m.random.IntN(len(m.replicas))].wire)
		return
	}
	i, what := m.random.IntN(len(m.replicas)), m.random.IntN(20)
	m.note("disturbance %d of replica %d", what, i)
	switch what {
	case 0:
		m.stop(i)
	case 1, 2:
		m.replicas[i].wire.freeze()
	case 3, 4, 5:
		m.replicas[i].wire.thaw()
		m.write(i) // before anything in it has noticed how late it is
	case 6:
		m.server.remove()
	case 7:
		m.server.edit(func(r *resourcelock.LeaderElectionRecord) { r.HolderIdentity = "" })
	case 8:
		m.edit(m.replicas[i].identity)
	case 9:
		m.edit("hub-99_id/10.0.0.99:9444") // which does not exist
	case 10:
		m.edit("somebody") // which is no hub's
	case 11:
		m.server.backup()
	case 12:
		m.restores++
		m.server.restore(testElection.LeaseDuration)
	case 13:
		if m.owner >= 0 { // a standby that is suspended has nothing to forget
			i = m.owner
		}
		m.suspends++
		m.replicas[i].wire.suspend()
	case 14:
		m.jumps++
		m.replicas[i].wire.jump(time.Duration(m.random.IntN(7)-3) * 10 * time.Minute)
	default:
		m.upset(m.replicas[i].wire)
	}
}

// note keeps what was done, and how the Lease was then.
func (m *leaseModel) note(format string, args ...any) {
	record, version := m.server.read()
	m.history = append(m.history, fmt.Sprintf("%s: Lease %d of %q, renewed %s: ", time.Since(m.began), version, record.HolderIdentity,
		record.RenewTime.Format(time.TimeOnly))+fmt.Sprintf(format, args...))
}

// edit names another holder in the Lease by hand, unless it was deleted.
func (m *leaseModel) edit(holder string) {
	if record, _ := m.server.read(); record.LeaseDurationSeconds == 0 {
		return
	}
	m.edits++
	m.server.edit(func(r *resourcelock.LeaderElectionRecord) { r.HolderIdentity = holder })
}

// stop asks a replica to stop, frozen or not, and starts another in its place. What it wrote last goes on.
func (m *leaseModel) stop(i int) {
	m.stops++
	r := m.replicas[i]
	r.stop()
	r.wire.thaw()
	for range 20 * 60 {
		select {
		case <-r.done:
			m.start(i)
			return
		default:
			m.step()
		}
	}
	m.t.Fatalf("seed %d: replica %d does not stop", m.seed, i)
}

func (m *leaseModel) upset(w *wire) {
	random := m.random
	w.set(func(w *wire) {
		w.loseThere, w.loseAnswers, w.loseOperations = random.IntN(4) == 0, random.IntN(4) == 0, random.IntN(4) == 0
		w.there = time.Duration(random.IntN(6000)) * time.Millisecond / time.Duration(1+random.IntN(20))
		w.back = time.Duration(random.IntN(6000)) * time.Millisecond / time.Duration(1+random.IntN(20))
	})
}
