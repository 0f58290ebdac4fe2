package leadership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile"
)

var _ clusters.Fence = (*Lease)(nil)

// Options of a [Lease]. Namespace and Name have no default.
type Options struct {
	// Namespace and Name of the Lease in the hub cluster. The replica creates it.
	Namespace, Name string
	// Identity of this replica in the Lease, which no other process has; see [NewIdentity]. Default: one with the host's name.
	Identity string
	// LeaseDuration is how long the Lease holds without being renewed, in whole seconds, and so how long a takeover from a dead
	// replica takes; RenewDeadline how long the owner tries to renew; RetryPeriod the time between two tries. Default: 15 s, 10 s
	// and 2 s.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	// WriteTimeout is how long a write to a member may take, as in [clusters.Options].WriteTimeout: none is begun later than that
	// before the Lease ends. Default, and at most: a third of LeaseDuration.
	WriteTimeout time.Duration
	// Warm reports whether this replica is ready to act. Until it is, the Lease is left to others, for WarmTime at most. Nil: it is.
	Warm     func() bool
	WarmTime time.Duration
	// Suspect says that a replica may have been here before: when there is no Lease, it may have been deleted, and its holder may
	// still act.
	Suspect bool
	// Log takes who holds the Lease. Default: discarded.
	Log *slog.Logger
	// Registerer takes the metrics of hand-overs. Nil: they are registered nowhere.
	Registerer prometheus.Registerer
}

func (o *Options) complete() error {
	if o.Namespace == "" || o.Name == "" {
		return errors.New("leadership: the Lease has no namespace or no name")
	}
	o.LeaseDuration = cmp.Or(o.LeaseDuration, 15*time.Second)
	o.RenewDeadline = cmp.Or(o.RenewDeadline, 10*time.Second)
	o.RetryPeriod = cmp.Or(o.RetryPeriod, 2*time.Second)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, o.LeaseDuration/3)
	if o.WriteTimeout < 0 || o.WriteTimeout > o.LeaseDuration/3 {
		return fmt.Errorf("leadership: the timeout of writes is %s: it must be at most a third of the Lease's %s", o.WriteTimeout, o.LeaseDuration)
	}
	if o.Identity == "" {
		host, _ := os.Hostname()
		o.Identity = NewIdentity(host, "")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

// New prepares the contest for a Lease. Nothing is asked of the hub cluster before [Lease.Run], or [Lease.Contend] and
// [Lease.Watch].
func New(hub *rest.Config, options Options) (*Lease, error) {
	if err := options.complete(); err != nil {
		return nil, err
	}
	renewing, err := leaseClient(hub, max(options.RenewDeadline/2, time.Second))
	if err != nil {
		return nil, err
	}
	l := newLease(newLeaseLock(renewing, options.Namespace, options.Name, options.Identity), options, options.WriteTimeout, options.Log)
	if l.watching, err = leaseClient(hub, 0); err != nil {
		return nil, err
	}
	l.warm, l.warmUp = options.Warm, options.WarmTime
	if options.Suspect {
		l.suspect(options.LeaseDuration)
	}
	if options.Registerer != nil {
		if err := newHandovers(l.term).register(options.Registerer); err != nil {
			return nil, fmt.Errorf("leadership: %w", err)
		}
	}
	return l, nil
}

// Run contends for the Lease and follows it until ctx ends, and then gives it up, so that another replica takes over at once.
// Writes that are under way end before that; let reconciles end before ctx does, see [reconcile.Runtime.Drain].
func (l *Lease) Run(ctx context.Context) error {
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var watch sync.WaitGroup
	defer watch.Wait()
	watch.Go(func() { l.Watch(following) })
	defer stop()
	return l.Contend(ctx)
}

// Hold keeps the keys of a runtime from running while this replica does not act. They are queued meanwhile, so that taking over
// costs no list. Call it before [Lease.Run].
func (l *Lease) Hold(rt *reconcile.Runtime) {
	rt.Decide(reconcile.HoldOwnership, func(member string) string {
		if err := l.MayWrite(member); err != nil {
			return err.Error()
		}
		return ""
	})
	l.Subscribe(func() { rt.DecideAgain(reconcile.HoldOwnership) })
}

// NewIdentity names this process in a Lease: a name for people, a part that no other process has, and the address at which
// other replicas reach it, empty when they do not.
func NewIdentity(name, address string) string {
	return strings.NewReplacer("_", "-", "/", "-").Replace(name) + "_" + uuid.NewString() + "/" + address
}

// AddressOf returns the address in a Lease's holder identity; empty when it has none.
func AddressOf(identity string) string {
	_, address, _ := strings.Cut(identity, "/")
	if _, _, err := net.SplitHostPort(address); err != nil {
		return ""
	}
	return address
}

// NameOf returns the part of an identity that people know.
func NameOf(identity string) string {
	name, _, _ := strings.Cut(identity, "_")
	return name
}
