package leadership

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Whatever gets lost or late, whoever stops, freezes or dies, whatever the wall clocks say, and whatever a person does to the Lease
// or to the store that it is in: a replica that may write is the only one, and what the others wrote has ended.
func TestAtMostOneReplicasFenceIsOpen(t *testing.T) {
	turns, stops, edits, restores, suspends, jumps := 0, 0, 0, 0, 0, 0
	for seed := range uint64(120) {
		synctest.Test(t, func(t *testing.T) {
			m := newLeaseModel(t, seed)
			for range 20 * 60 * 10 { // ten minutes
				time.Sleep(50 * time.Millisecond)
				for i := range m.replicas {
					m.write(i)
				}
				if m.random.IntN(40) == 0 {
					m.disturb()
				}
			}
			turns, stops, edits = turns+m.turns, stops+m.stops, edits+m.edits
			restores, suspends, jumps = restores+m.restores, suspends+m.suspends, jumps+m.jumps
		})
	}
	if turns < 180 || stops < 60 || edits < 300 || restores < 200 || suspends < 200 || jumps < 200 {
		t.Errorf("ownership changed %d times, replicas stopped %d times, %d holders were written by hand, %d backups were restored, machines "+
			"were suspended %d times and wall clocks were set %d times in all: this shows little", turns, stops, edits, restores, suspends, jumps)
	}
}

// leaseModel is three replicas that write as often as they may.
type leaseModel struct {
	t        *testing.T
	seed     uint64
	random   *rand.Rand
	server   *leaseServer
	replicas []*replica
	ends     []time.Time // of the last write of each
	owner    int
	started  int
	turns    int
	stops    int
	edits    int // of the holder's name
	restores int // of the hub cluster's store
	suspends int // of a replica's machine
	jumps    int // of a replica's wall clock
	began    time.Time
	history  []string
}

func newLeaseModel(t *testing.T, seed uint64) *leaseModel {
	m := &leaseModel{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 1)), server: &leaseServer{}, owner: -1, began: time.Now()}
	const size = 3
	m.replicas, m.ends = make([]*replica, size), make([]time.Time, size)
	for i := range m.replicas {
		m.start(i)
		eventually(t, time.Second, "the first replica acts", m.replicas[0].acts) // the others know that they are not the first
	}
	return m
}

// start has a new process take the place of replica i.
func (m *leaseModel) start(i int) {
	m.started++
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

// write lets replica i begin a write if it may. It takes up to the margin.
func (m *leaseModel) write(i int) {
	r := m.replicas[i]
	if r.wire.isFrozen() {
		return
	}
	_, ended, err := r.BeginWrite("a")
	if err != nil {
		return
	}
	if i != m.owner {
		m.note("replica %d writes", i)
		m.turns, m.owner = m.turns+1, i
	}
	for j, end := range m.ends {
		if left := time.Until(end); j != i && left > 0 {
			m.t.Fatalf("seed %d: after %s replica %d writes while a write of replica %d goes on for %s; what was done before:\n%s", m.seed,
				time.Since(m.began), i, j, left, strings.Join(m.history, "\n"))
		}
	}
	took := testMargin
	if m.random.IntN(2) == 0 {
		took = time.Duration(m.random.Int64N(int64(testMargin)))
	}
	if end := time.Now().Add(took); end.After(m.ends[i]) {
		m.ends[i] = end
	}
	r.wire.late.Go(func() {
		time.Sleep(took)
		ended()
	})
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
			time.Sleep(50 * time.Millisecond)
			for j := range m.replicas {
				m.write(j)
			}
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
