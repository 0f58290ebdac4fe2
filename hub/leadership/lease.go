package leadership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/plimsoll-dev/plimsoll/internal/notify"
)

// A Lease says that its holder acts on all members, and nobody else does. It is a [clusters.Fence]. client-go's elector does the election; what this
// replica may do is read off the requests that it sends ([term]), never off the elector's callbacks, which come late.
//
// A lost Lease does not end the process: the fence is shut by the clock, the caches stay warm, and the replica contends
// again.
type Lease struct {
	*term
	lock     resourcelock.Interface
	options  Options
	log      *slog.Logger
	watching coordinationclient.LeasesGetter
	kick     notify.Wake // the Lease was given up: do not wait for the next try

	// warm reports whether this replica is ready to act; until then it leaves the Lease to others, for warmUp at most. Nil: it is.
	warm   func() bool
	warmUp time.Duration
	began  time.Time
}

// newLease prepares the contest for a Lease; margin is the time before its end in which nothing is begun.
func newLease(lock resourcelock.Interface, options Options, margin time.Duration, log *slog.Logger) *Lease {
	term := newTerm(lock.Identity(), margin)
	term.configured = options.LeaseDuration
	return &Lease{term: term, lock: lock, options: options, log: log, kick: notify.New()}
}

// Contend contends for the Lease until ctx ends, and then gives it up if it is held. The caller has let its work come to an
// end before; here no further write may begin, and those that are under way end before the Lease is given up.
func (l *Lease) Contend(ctx context.Context) error {
	l.began = time.Now()
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	var background sync.WaitGroup
	defer background.Wait()
	defer stop()
	background.Go(func() { l.follow(following) })
	electing, yield := context.WithCancel(context.WithoutCancel(ctx))
	defer yield()
	background.Go(func() {
		<-ctx.Done()
		l.awaitWrites()
		yield()
	})
	for ctx.Err() == nil {
		if err := l.contend(electing); err != nil {
			return err
		}
	}
	l.resign()
	return nil
}

// mayTake returns an error while this replica leaves the Lease to one that is warm: in a rolling update each new replica
// would take it before its caches are full. A Lease that nobody takes for two tries has no such contender.
func (l *Lease) mayTake() error {
	if l.warm == nil || l.warm() || time.Since(l.began) >= l.warmUp || l.vacant() >= 2*l.options.RetryPeriod {
		return nil
	}
	return errCold
}

// awaitWrites shuts the fence for good and waits until no write is under way. The Lease is renewed meanwhile. A permission
// to write ends with the term at the latest.
func (l *Lease) awaitWrites() {
	timer := time.NewTimer(l.options.LeaseDuration)
	defer timer.Stop()
	select {
	case <-l.writes.stopAll():
	case <-timer.C:
	}
}

// contend runs one elector: until it loses the Lease, is kicked, or ctx ends.
func (l *Lease) contend(ctx context.Context) error {
	electing, cancel := context.WithCancel(ctx)
	defer cancel()
	elector, err := leaderelection.NewLeaderElector(l.electorConfig(func() bool { return ctx.Err() != nil }))
	if err != nil {
		return fmt.Errorf("contend for the Lease: %w", err)
	}
	go l.cancelWhenKicked(electing, cancel)
	elector.Run(klog.NewContext(electing, logr.FromSlogHandler(l.log.Handler())))
	return nil
}

// watchedLock notes in a term what passes through a lock.
type watchedLock struct {
	resourcelock.Interface
	term     *term
	stopping func() bool
	mayTake  func() error
	holder   string // in the record that the next Update replaces
}

var (
	errNotStopping = errors.New("the Lease is not given up before the replica stops: what was begun under it may not have ended")
	errCold        = errors.New("the Lease is left to a replica with warm caches")
	errNotHolder   = errors.New("the Lease is not given up: another replica holds it")
)

// Get reads the Lease.
func (w *watchedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := w.Interface.Get(ctx)
	switch {
	case err == nil:
		w.holder = record.HolderIdentity
		w.term.saw(*record, true)
	case apierrors.IsNotFound(err):
		w.term.vanished()
	}
	return record, raw, err
}

// Create makes the Lease with our name in it, unless the term of another replica runs: that one creates it again.
func (w *watchedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if err := w.term.othersEnded(); err != nil {
		return err
	}
	if err := w.take(); err != nil {
		return err
	}
	w.term.created(seconds(record.LeaseDurationSeconds))
	return w.write(record, func(r resourcelock.LeaderElectionRecord) error { return w.Interface.Create(ctx, r) })
}

// Update renews, takes or gives up the Lease. The elector gives it up also when it could not renew it; then others wait
// until it has run out, because work that was begun under it may still go on. It also gives up, after a freeze, what it
// believes to be its own; only a record that was read with our name in it is replaced by one without.
func (w *watchedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity == "" {
		if !w.stopping() {
			return errNotStopping
		}
		if w.term.resign(); w.holder != w.term.identity {
			return errNotHolder
		}
		if err := w.term.othersEnded(); err != nil {
			return err
		}
	} else if w.holder != w.term.identity {
		if err := w.take(); err != nil {
			return err
		}
	}
	return w.write(record, func(r resourcelock.LeaderElectionRecord) error { return w.Interface.Update(ctx, r) })
}

// take returns an error when the Lease is not ours and not to be.
func (w *watchedLock) take() error {
	if w.term.resumable() {
		return nil
	}
	return w.mayTake()
}

func (w *watchedLock) write(record resourcelock.LeaderElectionRecord, send func(resourcelock.LeaderElectionRecord) error) error {
	renewal, since := w.term.renewalTime()
	record.RenewTime = metav1.NewTime(renewal)
	if record.HolderIdentity == w.term.identity {
		w.term.sending(record)
	}
	if err := send(record); err != nil {
		return err
	}
	w.holder = record.HolderIdentity
	if record.HolderIdentity == w.term.identity {
		w.term.renewed(since, seconds(record.LeaseDurationSeconds), record.LeaderTransitions)
	}
	return nil
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// leaseClient makes a client that shares nothing with what else the hub does: not the rate limits, so that load does not
// cost ownership, and not the connection. It speaks HTTP/1.1, so that after a time-out the next try takes a new connection
// instead of waiting for a dead one.
func leaseClient(config *rest.Config, timeout time.Duration) (coordinationclient.CoordinationV1Interface, error) {
	own := rest.CopyConfig(config)
	own.QPS, own.Burst, own.RateLimiter = 20, 40, nil
	own.Timeout = timeout
	own.NextProtos = []string{"http/1.1"}
	dialer := &net.Dialer{Timeout: 3 * time.Second, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}}
	own.Dial = dialer.DialContext
	client, err := coordinationclient.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("client for the Lease: %w", err)
	}
	return client, nil
}

// newLeaseLock creates the lock of which client-go's elector speaks.
func newLeaseLock(client coordinationclient.LeasesGetter, namespace, name, identity string) resourcelock.Interface {
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name},
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}
}

// sawLease notes what a watch shows, and lets the elector try at once when the Lease was given up. When the Lease is gone
// nobody hurries: somebody deleted it, and the owner must have time to notice.
func (l *Lease) sawLease(object *coordinationv1.Lease, gone bool) {
	if gone {
		l.vanished()
		return
	}
	record := resourcelock.LeaseSpecToLeaderElectionRecord(&object.Spec)
	l.saw(*record, false)
	if record.HolderIdentity != "" {
		return
	}
	l.kick.Signal()
}

// electorConfig is what client-go's elector runs with.
func (l *Lease) electorConfig(stopping func() bool) leaderelection.LeaderElectionConfig {
	return leaderelection.LeaderElectionConfig{
		Lock:          &watchedLock{Interface: l.lock, term: l.term, stopping: stopping, mayTake: l.mayTake},
		LeaseDuration: l.options.LeaseDuration, RenewDeadline: l.options.RenewDeadline, RetryPeriod: l.options.RetryPeriod,
		ReleaseOnCancel: true, // watchedLock decides
		Name:            l.options.Name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {}, // the term knows better
			OnStoppedLeading: func() {},
			OnNewLeader:      func(identity string) { l.log.Info("Lease holder", "lease", l.lock.Describe(), "holder", identity) },
		},
	}
}

// cancelWhenKicked ends the elector's waiting between two tries, by ending the elector; it does not disturb an owner.
func (l *Lease) cancelWhenKicked(electing context.Context, cancel context.CancelFunc) {
	for {
		select {
		case <-l.kick:
			if !l.MineAny() {
				cancel()
			}
		case <-electing.Done():
			return
		}
	}
}
