package leadership

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// term is what a replica knows of the Lease: whether it holds it and until when, and who does if it does not.
//
// All times of its own holding are read before the request that renewed the Lease was sent; other replicas wait for the
// whole duration after they saw that renewal. So this replica's view of its term ends before anybody else's can begin,
// whatever the clocks say. It ends when either clock of this machine says so: the monotonic clock stands still while the
// machine is suspended, and the wall clock can be set back.
type term struct {
	identity string
	margin   time.Duration // before the end, in which no write starts any more
	now      func() time.Time

	mu          sync.Mutex
	stamped     time.Time     // the renewal time that we last wrote, in whole seconds
	stampedAt   time.Time     // when it was first sent
	confirmed   time.Time     // the renewal time of our last write that was answered
	deadline    time.Time     // of our holding; zero: we do not hold the Lease
	resumes     time.Time     // the deadline of a holding that ended because the Lease was deleted; until then nobody else acts
	transitions int           // of the record last seen or written
	holder      string        // identity in the record last seen
	renewal     time.Time     // in the record last seen, by the holder's clock
	seen        bool          // a record, since the Lease was last found to be gone
	used        bool          // somebody held the Lease at some time
	duration    time.Duration // the longest that was seen
	until       time.Time     // when the holder's term ends, as far as was seen
	vacated     time.Time     // when the holder was first seen to be nobody
	notBefore   time.Time     // when the last term of another replica ends that it did not give up itself
	heldAt      time.Time     // when the Lease was last known to be held, by whomever
	gap         time.Duration // for how long it was not known to be held before our holding began; negative: it never was
	changed     chan struct{}
	subscribers []func()

	writes *writes
}

func newTerm(identity string, margin time.Duration) *term {
	return &term{identity: identity, margin: margin, now: time.Now, writes: newWrites(), changed: make(chan struct{}, 1)}
}

// stamp returns the renewal time for a request that is sent now, and since when others may have seen it.
//
// client-go's elector takes a record for renewed when its text has changed, and the text has whole seconds. It also writes
// one renewal time into all requests of a try, so a renewal whose answer got lost looks like the one that follows it, and
// those who wait go on counting from the first. So each request gets a time of its own, one that others can see counts
// from the first of its second, and none goes back.
func (t *term) stamp() (renewal, since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	second := now.Round(0).Truncate(time.Second)
	if second.Equal(t.stamped) {
		return t.stamped, t.stampedAt
	}
	if second.Before(t.stamped) { // the clock was set back
		second = t.stamped.Add(time.Second)
	}
	t.stamped, t.stampedAt = second, now
	return second, now
}

// renewed notes that the Lease was written with our name in it, in a way that others can have seen no earlier than sent.
func (t *term) renewed(sent, renewal time.Time, duration time.Duration, transitions int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.holds(t.now())
	t.deadline, t.transitions, t.confirmed = sent.Add(duration), transitions, renewal
	t.holder, t.until, t.duration, t.used = t.identity, t.deadline, max(duration, t.duration), true
	t.signal()
}

// holds notes that we hold the Lease, before the new deadline is set; the caller holds mu.
func (t *term) holds(now time.Time) {
	if t.deadline.IsZero() || passed(now, t.deadline) {
		t.gap = -1
		if !t.heldAt.IsZero() {
			t.gap = later(now, t.notBefore).Sub(t.heldAt)
		}
	}
	t.heldAt = now
}

// handedOver returns for how long nobody may have acted before this replica did; false: nobody is known to have acted before.
func (t *term) handedOver() (took time.Duration, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.gap, t.gap >= 0
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// created notes that a Lease that is about to be written is a new one. The former one was deleted, and its holder, which
// renewed it before that, may not know. It acts for no longer than a term from now. If we held one that was deleted, we go on
// until that holding would have ended, and not beyond: meanwhile somebody else may have created a Lease that was deleted as well.
func (t *term) created(duration time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.used {
		t.notBefore = t.now().Add(max(duration, t.duration))
	}
}

// resign ends our holding at once, as far as we are concerned.
func (t *term) resign() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.deadline = time.Time{}
	t.signal()
}

// saw notes a record that was read. newest says that it was read after everything that we wrote; what a watch shows may be
// older than that.
func (t *term) saw(r resourcelock.LeaderElectionRecord, newest bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !newest && t.isOld(r) {
		return
	}
	if r.HolderIdentity == t.identity {
		t.sawOurs(r, newest)
		return
	}
	if r.HolderIdentity == "" && (t.holder != "" || t.vacated.IsZero()) {
		t.vacated = t.now()
	}
	if r.HolderIdentity != t.holder || r.HolderIdentity != "" && !r.RenewTime.Time.Equal(t.renewal) {
		t.heldAt = t.now()
	}
	t.deadline, t.resumes = time.Time{}, time.Time{} // somebody has taken the Lease from us, by hand if it was too early
	if !t.seen || r.HolderIdentity != t.holder || !r.RenewTime.Time.Equal(t.renewal) {
		t.until, t.notBefore = t.termOf(r)
	}
	t.holder, t.renewal, t.transitions = r.HolderIdentity, r.RenewTime.Time, r.LeaderTransitions
	t.duration, t.used = max(seconds(r.LeaseDurationSeconds), t.duration), true
	t.seen = true
	t.signal()
}

// isOld tells whether a record is from before what is known.
func (t *term) isOld(r resourcelock.LeaderElectionRecord) bool {
	return (!t.deadline.IsZero() || t.holder != "") && r.LeaderTransitions < t.transitions ||
		r.LeaderTransitions == t.transitions && r.RenewTime.Time.Before(t.renewal)
}

// sawOurs notes a record with our name: renewed knows better, unless we do not act and never wrote it. Then it comes from a
// backup of the hub cluster or was written by hand, and the replica that acts may not know of it yet.
func (t *term) sawOurs(r resourcelock.LeaderElectionRecord, newest bool) {
	now, renewal := t.now(), r.RenewTime.Time
	acts := !t.deadline.IsZero() && !passed(now, t.deadline)
	if acts || !newest || renewal.Equal(t.stamped) || renewal.Equal(t.confirmed) || renewal.Equal(t.renewal) {
		return
	}
	t.renewal, t.used = renewal, true
	t.notBefore = now.Add(max(seconds(r.LeaseDurationSeconds), t.duration))
}

// termOf returns until when the holder in a record that is new here may act, and when anybody else may. A replica that
// gives the Lease up leaves a record without a holder and of one second. Any other record without a holder was written by
// hand or comes from a backup, and the former holder may not know of it yet.
func (t *term) termOf(r resourcelock.LeaderElectionRecord) (until, notBefore time.Time) {
	duration := seconds(r.LeaseDurationSeconds)
	switch {
	case r.HolderIdentity != "":
		until = t.now().Add(duration)
		return until, until
	case r.LeaseDurationSeconds == releasedSeconds && !t.isOld(r):
		return time.Time{}, time.Time{}
	default:
		return time.Time{}, t.now().Add(max(duration, t.duration))
	}
}

// releasedSeconds is the duration that client-go's elector writes when it gives a Lease up.
const releasedSeconds = 1

// vanished notes that the Lease was deleted. That ends our holding, for anybody may create it anew. It does not end the
// term of another replica, which may not know that it is gone.
func (t *term) vanished() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.deadline.IsZero() && !t.now().Before(t.notBefore) { // else we did not act yet, and somebody else may
		t.resumes = t.deadline
	}
	if t.holder != "" || t.vacated.IsZero() {
		t.vacated = t.now()
	}
	t.deadline, t.until, t.renewal = time.Time{}, time.Time{}, time.Time{}
	t.holder, t.transitions, t.seen = "", 0, false
	t.signal()
}

// vacant returns for how long nobody has held the Lease, as far as is known.
func (t *term) vacant() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	since := t.until
	if t.holder == "" {
		since = t.vacated
	}
	if since.IsZero() {
		return 0
	}
	return t.now().Sub(since)
}

// resumable tells whether the Lease was deleted under us, so that it is ours to create anew.
func (t *term) resumable() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.resumes.IsZero() && !passed(t.now(), t.resumes)
}

// othersEnded returns an error while another replica may still act, as far as was seen.
func (t *term) othersEnded() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if left := t.notBefore.Sub(t.now()); left > 0 {
		return fmt.Errorf("the last holder of the Lease may act for another %s", left.Round(time.Millisecond))
	}
	return nil
}

// suspect says that a Lease that cannot be found may have been deleted, though it was never seen here, and that its holder
// acts for up to duration.
func (t *term) suspect(duration time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.used, t.duration = true, duration
}

// signal wakes follow; the caller holds mu.
func (t *term) signal() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// Owner returns the address in the identity of the holder, as [NewIdentity] writes it, and until when the holding is known to
// last. It is the same for all members.
func (t *term) Owner(string) (string, time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return AddressOf(t.holder), t.until
}

// Mine tells whether this replica may act on a member now, and until when it may if nothing changes.
func (t *term) Mine(string) (time.Time, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mineLocked()
}

func (t *term) mineLocked() (until time.Time, ok bool) {
	if t.deadline.IsZero() {
		return time.Time{}, false
	}
	end, now := t.deadline, t.now()
	if now.Before(t.notBefore) {
		end = t.resumes
	}
	last := end.Add(-t.margin)
	return last, !passed(now, last)
}

// passed tells whether at has come by the monotonic or by the wall clock.
func passed(now, at time.Time) bool {
	return !now.Before(at) || !now.Round(0).Before(at.Round(0))
}

// Subscribe calls f, one call at a time, whenever an answer of Owner's address or of Mine has changed, and at each renewal. f
// must return soon. Subscribe before [Lease.Contend].
func (t *term) Subscribe(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.subscribers = append(t.subscribers, f)
}

// MineAny tells whether there may be a member on which this replica may act now.
func (t *term) MineAny() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.mineLocked()
	return ok
}

// MayWrite tells whether a write to the member may begin now; the error says why not.
func (t *term) MayWrite(member string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.refusalLocked(member)
}

// BeginWrite implements clusters.Fence: a write that begins now and takes no longer than the margin ends before any other
// replica can begin.
func (t *term) BeginWrite(member string) (until time.Time, ended func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.refusalLocked(member); err != nil {
		return time.Time{}, nil, err
	}
	ended, ok := t.writes.begin(member)
	if !ok {
		return time.Time{}, nil, errStopping
	}
	last, _ := t.mineLocked()
	return last.Add(t.margin), ended, nil
}

var errStopping = errors.New("this replica stops")

// refusalLocked says why this replica may not write to the member now, if it may not.
func (t *term) refusalLocked(member string) error {
	if t.writes.stopped(member) {
		return errStopping
	}
	if _, ok := t.mineLocked(); ok {
		return nil
	}
	switch t.holder {
	case "":
		return errors.New("no replica holds the Lease yet")
	case t.identity:
		if !t.deadline.IsZero() && t.now().Before(t.notBefore) {
			return errors.New("this replica holds the Lease, and waits until the tenure of the last holder has ended")
		}
		return errors.New("this replica could not renew its Lease in time")
	default:
		return fmt.Errorf("replica %s at %s holds the Lease", NameOf(t.holder), AddressOf(t.holder))
	}
}

// standing is what subscribers hear about.
type standing struct {
	mine    bool
	address string
}

// follow tells the subscribers when what they can ask has changed, until ctx ends. Losing the Lease needs no event: time
// passes. They are also told of each renewal: a renewal that comes late may follow a moment in which a subscriber was refused,
// and which nobody else has seen.
func (t *term) follow(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var told standing
	renewed := false
	for {
		now, changes, subscribers := t.standing()
		if now != told || renewed {
			told, renewed = now, false
			for _, f := range subscribers {
				f()
			}
		}
		timer.Stop()
		if changes > 0 {
			timer.Reset(changes)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.changed:
			renewed = true
		case <-timer.C:
		}
	}
}

// standing returns what is true now and when that changes by itself; 0: it does not.
func (t *term) standing() (now standing, changes time.Duration, subscribers []func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	last, ok := t.mineLocked()
	switch at := t.now(); {
	case ok:
		changes = last.Sub(at)
	case !t.deadline.IsZero() && at.Before(t.notBefore):
		changes = t.notBefore.Sub(at)
	}
	return standing{mine: ok, address: AddressOf(t.holder)}, changes, t.subscribers
}
