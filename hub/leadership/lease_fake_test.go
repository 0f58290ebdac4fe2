package leadership

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// leaseServer holds one Lease as an API server does: an update from a state that is no longer there is a conflict.
type leaseServer struct {
	mu      sync.Mutex
	record  *resourcelock.LeaderElectionRecord
	version int
	last    int // version of all that was ever written; 0: there was no Lease yet
	watch   []func(record resourcelock.LeaderElectionRecord, gone bool)

	saved        *resourcelock.LeaderElectionRecord // as the last backup has it
	savedVersion int
	back         time.Time // when a restore has ended
}

func (s *leaseServer) write(record resourcelock.LeaderElectionRecord, from int) (int, error) {
	s.mu.Lock()
	if from != s.version {
		s.mu.Unlock()
		return 0, errors.New("conflict")
	}
	s.last++
	s.record, s.version = &record, s.last
	version, watch := s.version, slices.Clone(s.watch)
	s.mu.Unlock()
	for _, f := range watch {
		f(record, false)
	}
	return version, nil
}

// read returns the record, or an empty one.
func (s *leaseServer) read() (resourcelock.LeaderElectionRecord, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.record == nil {
		return resourcelock.LeaderElectionRecord{}, 0
	}
	return *s.record, s.version
}

// edit changes the record by hand.
func (s *leaseServer) edit(change func(*resourcelock.LeaderElectionRecord)) {
	record, version := s.read()
	change(&record)
	_, _ = s.write(record, version) // somebody was faster
}

// remove deletes the Lease by hand.
func (s *leaseServer) remove() {
	s.mu.Lock()
	watch := slices.Clone(s.watch)
	s.record, s.version = nil, 0
	s.mu.Unlock()
	for _, f := range watch {
		f(resourcelock.LeaderElectionRecord{}, true)
	}
}

// backup keeps what there is for restore.
func (s *leaseServer) backup() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saved, s.savedVersion = s.record, s.version
}

// restore puts the last backup in place, as when the hub cluster's etcd is restored: all that was written since is gone, and the
// API server does not answer for as long as that takes. Versions that come do not repeat those that are gone, because other
// objects have taken these.
func (s *leaseServer) restore(takes time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record, s.version = s.saved, s.savedVersion
	s.back = time.Now().Add(takes)
	time.AfterFunc(takes, s.show)
}

// show sends to those who watch what there is.
func (s *leaseServer) show() {
	record, version := s.read()
	s.mu.Lock()
	watch := slices.Clone(s.watch)
	s.mu.Unlock()
	for _, f := range watch {
		f(record, version == 0)
	}
}

// away reports whether the server does not answer.
func (s *leaseServer) away() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.back)
}

// wire is the way of one replica to the server: how long a request and its answer take, and what gets lost. A request that
// is not answered within timeout fails, though it may arrive later.
type wire struct {
	mu                     sync.Mutex
	there, back            time.Duration
	loseThere, loseAnswers bool
	loseOperations         bool // answers to writes
	timeout                time.Duration
	late                   sync.WaitGroup
	frozen                 chan struct{} // closed when the process continues; nil: it runs
	suspended              time.Time     // since when the machine is, so that its monotonic clock stands still; zero: it is not
	stood                  time.Duration // for how long it stood still before
	skew                   time.Duration // by which its wall clock is ahead
	setBack                bool          // it was ahead by more before
}

func (w *wire) set(change func(*wire)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(w)
}

// freeze stops the replica's process: nothing that it sends or waits for returns before it is thawed.
func (w *wire) freeze() {
	w.set(func(w *wire) {
		if w.frozen == nil {
			w.frozen = make(chan struct{})
		}
	})
}

func (w *wire) thaw() {
	w.set(func(w *wire) {
		if w.frozen != nil {
			close(w.frozen)
			w.frozen = nil
		}
		if !w.suspended.IsZero() {
			w.stood, w.suspended = w.stood+time.Since(w.suspended), time.Time{}
		}
	})
}

// jump sets the wall clock of the machine. That of a machine that is ever suspended is not set back: neither of its clocks would show how
// much time has passed.
func (w *wire) jump(by time.Duration) {
	w.set(func(w *wire) {
		if w.stood > 0 || !w.suspended.IsZero() {
			by = max(by, -by)
		}
		w.skew, w.setBack = w.skew+by, w.setBack || by < 0
	})
}

// suspend is freeze for the whole machine, unless its wall clock was set back; see jump.
func (w *wire) suspend() {
	w.freeze()
	w.set(func(w *wire) {
		if w.suspended.IsZero() && !w.setBack {
			w.suspended = time.Now()
		}
	})
}

// clock is that of the replica's machine: its wall clock is ahead by skew, and its monotonic clock stands still while it is suspended.
func (w *wire) clock(skew time.Duration) func() time.Time {
	began := time.Now()
	w.set(func(w *wire) { w.skew = skew })
	return func() time.Time {
		w.mu.Lock()
		defer w.mu.Unlock()
		now, stood := time.Now(), w.stood
		if !w.suspended.IsZero() {
			stood += now.Sub(w.suspended)
		}
		return clockTime(now.Add(w.skew), now.Sub(began)-stood)
	}
}

func (w *wire) isFrozen() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.frozen != nil
}

// run returns when the process is not frozen.
func (w *wire) run() {
	w.mu.Lock()
	frozen := w.frozen
	w.mu.Unlock()
	if frozen != nil {
		<-frozen
	}
}

var (
	errNoAnswer = errors.New("no answer in time")
	errAway     = errors.New("connection refused")
)

// send lets do happen at the server.
func (w *wire) send(ctx context.Context, write bool, do func()) error {
	w.run()
	defer w.run()
	w.mu.Lock()
	there, back, loseThere, loseAnswer := w.there, w.back, w.loseThere, w.loseAnswers || write && w.loseOperations
	w.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, w.timeout, errNoAnswer)
	defer cancel()
	answered := make(chan struct{})
	w.late.Go(func() {
		time.Sleep(there)
		if loseThere {
			return
		}
		do()
		time.Sleep(back)
		if !loseAnswer {
			close(answered)
		}
	})
	select {
	case <-answered:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// wiredLock is a resourcelock over a wire.
type wiredLock struct {
	server   *leaseServer
	wire     *wire
	identity string
	version  int
}

func (l *wiredLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	var record *resourcelock.LeaderElectionRecord
	version, away := 0, false
	err := l.wire.send(ctx, false, func() {
		if away = l.server.away(); away {
			return
		}
		l.server.mu.Lock()
		defer l.server.mu.Unlock()
		if l.server.record != nil {
			copied := *l.server.record
			record, version = &copied, l.server.version
		}
	})
	if err == nil && away {
		err = errAway
	}
	if err != nil {
		return nil, nil, err
	}
	if record == nil {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, "plimsoll-hub")
	}
	l.version = version
	raw, err := json.Marshal(record)
	return record, raw, err
}

func (l *wiredLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.put(ctx, record, 0)
}

func (l *wiredLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.put(ctx, record, l.version)
}

func (l *wiredLock) put(ctx context.Context, record resourcelock.LeaderElectionRecord, from int) error {
	version, failed := 0, error(nil)
	if err := l.wire.send(ctx, true, func() {
		if failed = errAway; !l.server.away() {
			version, failed = l.server.write(record, from)
		}
	}); err != nil {
		return err
	}
	if failed == nil {
		l.version = version
	}
	return failed
}

func (l *wiredLock) RecordEvent(string) {}
func (l *wiredLock) Identity() string   { return l.identity }
func (l *wiredLock) Describe() string   { return "plimsoll-system/plimsoll-hub" }

// replica is one contender.
type replica struct {
	*Lease
	wire *wire
	stop context.CancelFunc
	done chan struct{}
}

var testElection = Options{Name: "plimsoll-hub",
	LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second}

const testMargin = 5 * time.Second

// newReplica starts a contender whose requests take 10 ms each way.
func newReplica(t *testing.T, server *leaseServer, number int) *replica {
	t.Helper()
	return newReplicaWith(t, server, number, func(*Lease) {})
}

// startOwner starts replica 1 on a Lease that nobody has held yet, and waits until it acts. No watch shows it the Lease.
func startOwner(t *testing.T) (*leaseServer, *replica) {
	t.Helper()
	server := &leaseServer{}
	owner := newReplica(t, server, 1)
	eventually(t, time.Second, "a acts", owner.acts)
	return server, owner
}

// startPair is startOwner with replica 2 as its standby, which no watch shows the Lease either.
func startPair(t *testing.T) (server *leaseServer, owner, standby *replica) {
	t.Helper()
	server, owner = startOwner(t)
	return server, owner, newReplica(t, server, 2)
}

func newReplicaWith(t *testing.T, server *leaseServer, number int, edit func(*Lease)) *replica {
	t.Helper()
	w := &wire{there: 10 * time.Millisecond, back: 10 * time.Millisecond, timeout: testElection.RenewDeadline / 2}
	identity := fmt.Sprintf("hub-%d_id/10.0.0.%d:9444", number, number)
	l := newLease(&wiredLock{server: server, wire: w, identity: identity}, testElection, testMargin, slog.New(slog.DiscardHandler))
	edit(l)
	server.mu.Lock()
	if server.last > 0 {
		l.suspect(testElection.LeaseDuration)
	}
	server.mu.Unlock()
	ctx, stop := context.WithCancel(t.Context())
	r := &replica{Lease: l, wire: w, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		if err := l.Contend(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		w.thaw()
		r.end()
		w.late.Wait()
	})
	return r
}

// follow lets the replica see every change of the Lease, as its watch would.
func (s *leaseServer) follow(r *replica) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch = append(s.watch, func(record resourcelock.LeaderElectionRecord, gone bool) {
		if !r.wire.isFrozen() {
			r.sawLease(&coordinationv1.Lease{Spec: resourcelock.LeaderElectionRecordToLeaseSpec(&record)}, gone)
		}
	})
}

// end stops the replica as a process that is asked to.
func (r *replica) end() {
	r.stop()
	<-r.done
}

func (r *replica) acts() bool { return r.MayWrite("a") == nil }
