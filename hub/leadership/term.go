package leadership

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/plimsoll-dev/plimsoll/internal/notify"
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

	configured time.Duration // the lease duration of this replica; zero: not known

	mu          sync.Mutex
	written     time.Time     // the renewal time that we last wrote, in whole seconds
	writtenAt   time.Time     // when it was first sent
	sent        mark          // what we last wrote, answered or not, unless another record was seen since
	confirmed   mark          // what we last wrote and was answered; as sent
	deadline    time.Time     // of our holding; zero: we do not hold the Lease
	resumes     time.Time     // the deadline of a holding that ended because the Lease was deleted; until then nobody else acts
	transitions int           // of the record last seen or written
	holder      string        // identity in the record last seen
	renewal     time.Time     // in the record last seen, by the holder's clock
	shown       mark          // of the record last seen
	seen        bool          // a record, since the Lease was last found to be gone
	used        bool          // somebody held the Lease at some time
	duration    time.Duration // the longest that was seen
	until       time.Time     // when the holder's term ends, as far as was seen
	vacated     time.Time     // when the holder was first seen to be nobody
	notBefore   time.Time     // when the last term of another replica ends that it did not give up itself
	read        time.Time     // when the Lease was last read, or written by us
	heldAt      time.Time     // when the Lease was last known to be held, by whomever
	gap         time.Duration // for how long it was not known to be held before our holding began; negative: it never was
	changed     notify.Wake
	subscribers []func()

	writes *writes
}

func newTerm(identity string, margin time.Duration) *term {
	return &term{identity: identity, margin: margin, now: time.Now, writes: newWrites(), changed: notify.New()}
}

// renewalTime returns the renewal time for a request that is sent now, and since when others may have seen it.
//
// client-go's elector takes a record for renewed when its text has changed, and the text has whole seconds. It also writes
// one renewal time into all requests of a try, so a renewal whose answer got lost looks like the one that follows it, and
// those who wait go on counting from the first. So each request gets a time of its own, one that others can see counts
// from the first of its second, and none goes back.
func (t *term) renewalTime() (renewal, since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	second := now.Round(0).Truncate(time.Second)
	if second.Equal(t.written) {
		return t.written, t.writtenAt
	}
	if second.Before(t.written) { // the clock was set back
		second = t.written.Add(time.Second)
	}
	t.written, t.writtenAt = second, now
	return second, now
}

// mark is what two records of different writers do not share: seconds alone do, where a clock is wrong.
type mark struct {
	renewed, acquired int64 // in microseconds, as a Lease has them
	transitions       int
}

func markOf(r resourcelock.LeaderElectionRecord) mark {
	return mark{renewed: r.RenewTime.UnixMicro(), acquired: r.AcquireTime.UnixMicro(), transitions: r.LeaderTransitions}
}

// sending notes a record with our name that is about to be sent.
func (t *term) sending(r resourcelock.LeaderElectionRecord) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent = markOf(r)
}

// renewed notes that the Lease was written with our name in it, in a way that others can have seen no earlier than sent.
func (t *term) renewed(sent time.Time, duration time.Duration, transitions int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.holds(t.now())
	t.deadline, t.transitions, t.confirmed, t.read = sent.Add(duration), transitions, t.sent, t.now()
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
	if newest {
		defer t.readAgain(&r)
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
		t.sent, t.confirmed = mark{}, mark{} // should they come back, then from a backup
	}
	t.holder, t.renewal, t.transitions, t.shown = r.HolderIdentity, r.RenewTime.Time, r.LeaderTransitions, markOf(r)
	t.duration, t.used = max(seconds(r.LeaseDurationSeconds), t.duration), true
	t.seen = true
	t.signal()
}

// unreadDurations is for how many lease durations a replica has not read the Lease when it no longer trusts what it finds: the record
// may come from a backup of the hub cluster, taken since and restored at once, and another replica may have acted in between.
const unreadDurations = 4

// readAgain notes that the Lease was read.
func (t *term) readAgain(r *resourcelock.LeaderElectionRecord) {
	if now := t.now(); t.unread(r, now) >= unreadDurations*max(t.duration, t.configured) {
		t.notBefore = later(t.notBefore, now.Add(max(t.duration, t.configured)))
	}
	t.read = t.now()
}

// unread returns for how long another replica may have acted of which this one has read nothing. A replica that reads the Lease for the first time
// counts from when it was given up, by the wall clock of whoever did; it waits in any case where somebody holds the Lease.
func (t *term) unread(r *resourcelock.LeaderElectionRecord, now time.Time) time.Duration {
	switch {
	case !t.read.IsZero():
		return elapsed(t.read, now)
	case r.HolderIdentity == "" && !r.RenewTime.IsZero():
		return now.Round(0).Sub(r.RenewTime.Time)
	default:
		return 0
	}
}

// elapsed returns the time between two readings of both clocks: the longer one, see [term].
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// isOld reports whether a record is from before what is known.
func (t *term) isOld(r resourcelock.LeaderElectionRecord) bool {
	return (!t.deadline.IsZero() || t.holder != "") && r.LeaderTransitions < t.transitions ||
		r.LeaderTransitions == t.transitions && r.RenewTime.Time.Before(t.renewal)
}

// sawOurs notes a record with our name: renewed knows better, unless we do not act and never wrote it. Then it comes from a
// backup of the hub cluster or was written by hand, and the replica that acts may not know of it yet.
func (t *term) sawOurs(r resourcelock.LeaderElectionRecord, newest bool) {
	now, renewal := t.now(), r.RenewTime.Time
	acts := !t.deadline.IsZero() && !passed(now, t.deadline)
	if m := markOf(r); acts || !newest || m == t.sent || m == t.confirmed || m == t.shown {
		return
	}
	t.renewal, t.shown, t.used = renewal, markOf(r), true
	t.notBefore = now.Add(max(seconds(r.LeaseDurationSeconds), t.duration))
}

// termOf returns until when the holder in a record that is new here may act, and when anybody else may. A replica that
// releases the Lease leaves a record without a holder and of one second. Any other record without a holder was written by
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

// vanished notes that the Lease was deleted. That ends our holding, for anybody may create it again. It does not end the
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

// resumable reports whether the Lease was deleted under us, so that it is ours to create again.
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
func (t *term) signal() { t.changed.Signal() }
