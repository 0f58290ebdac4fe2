package reconcile

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/depend"
	"github.com/plimsoll-dev/plimsoll/reconcile/internal/members"
)

// Options of a [Runtime]. The zero value is good.
type Options struct {
	// WorkersPerMember is how many reconciles may run in one member at once, over all controllers. Default 10.
	WorkersPerMember int
	// Workers is how many reconciles one controller may run at once, over all members. Default 128. Workers start when keys
	// wait for them, and all but a few end when there are none. When about half of them are busy, the others are kept for
	// members of which no key runs, one for each, so that members that hang do not hold them all; it only has to be larger
	// than how many hang at the same time.
	Workers int
	// Deadline of a reconcile, unless its controller sets another. Default 30 s.
	Deadline time.Duration
	// Resync is the time between two looks at an object that did not change, give or take a tenth, unless a controller sets
	// another. Default 30 s; negative: no resync.
	Resync time.Duration
	// Operations is how many operations of manual requeues are kept, done or not. A further one pushes out one of
	// the caller who has the most: the oldest of the namespace in which that caller has the most. Default 10,000.
	Operations int
	// ExternalNetworks are the networks in which endpoints may be that objects depend on ([OnEndpoint]); it is checked when
	// they are dialled, after names were resolved. Empty: anywhere but loopback, link-local (which holds the metadata
	// services of clouds), multicast, broadcast and unspecified addresses.
	ExternalNetworks []netip.Prefix
	// ExternalRoots are the authorities that such endpoints' certificates are checked against. Default: the system's.
	ExternalRoots *x509.CertPool
	// Scheme knows the kinds of all controllers. Default: client-go's.
	Scheme *runtime.Scheme
	// Log takes one error per failed reconcile, and little else. Default: discarded.
	Log *slog.Logger
	// Registerer takes the metrics. Nil: they are registered nowhere.
	Registerer prometheus.Registerer
}

func (o *Options) setDefaults() {
	o.WorkersPerMember = cmp.Or(o.WorkersPerMember, 10)
	o.Workers = cmp.Or(o.Workers, 128)
	o.Deadline = cmp.Or(o.Deadline, 30*time.Second)
	o.Resync = cmp.Or(o.Resync, 30*time.Second)
	o.Operations = cmp.Or(o.Operations, 10_000)
	if o.Scheme == nil {
		o.Scheme = clientgoscheme.Scheme
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

func (o *Options) validate() error {
	var errs []error
	for _, option := range []struct {
		name  string
		value int
	}{{"WorkersPerMember", o.WorkersPerMember}, {"Workers", o.Workers}, {"Operations", o.Operations}, {"Deadline", int(o.Deadline)}} {
		if option.value < 0 {
			errs = append(errs, fmt.Errorf("reconcile.Options.%s is %d: it must not be negative", option.name, option.value))
		}
	}
	return errors.Join(errs...)
}

// A Runtime is what all controllers of a hub share: the budget of workers of each member, its holds, and the ledger.
// All methods may be called concurrently.
type Runtime struct {
	opts    Options
	log     *slog.Logger
	metrics *metrics
	epoch   time.Time // where the runtime's clock began; see now

	// mu guards everything below, and all queues, flows, members, records and operations. It is held for short, bounded
	// steps only, never over I/O, a callback or a walk over all keys (but for the timers of a member that leaves).
	mu          sync.Mutex
	controllers map[string]*Controller
	queues      map[string]*queue
	members     map[string]*member
	all         [holds]setting
	decide      [holds]func(member string) (reason string)
	timers      timers
	operations  operations
	versions    uint64 // the last that a member was given
	active      active
	retired     bool
	indexes     map[indexKey]sharedIndex

	instances    members.Instances
	dependencies *depend.Index
}

// NewRuntime creates a runtime and registers its metrics. It starts nothing.
func NewRuntime(opts Options) (*Runtime, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	opts.setDefaults()
	rt := &Runtime{
		opts: opts, log: opts.Log, epoch: time.Now(),
		controllers: map[string]*Controller{}, queues: map[string]*queue{}, members: map[string]*member{},
		operations: newOperations(opts.Operations), indexes: map[indexKey]sharedIndex{},
	}
	rt.metrics = newMetrics(rt)
	rt.dependencies = depend.NewIndex(&rt.instances, depend.NewOutside(opts.ExternalNetworks, opts.ExternalRoots), opts.Log)
	if opts.Registerer == nil {
		return rt, nil
	}
	if err := opts.Registerer.Register(rt.metrics); err != nil {
		return nil, fmt.Errorf("register the metrics of reconcile: %w", err)
	}
	return rt, nil
}

// Controllers returns the registered controllers by name.
func (rt *Runtime) Controllers() []*Controller {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return slices.SortedFunc(maps.Values(rt.controllers), func(a, b *Controller) int { return cmp.Compare(a.name, b.name) })
}

// Lookup returns what the ledger knows of a key.
func (rt *Runtime) Lookup(key Key) (Record, bool) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	r, err := rt.find(key)
	if err != nil {
		return Record{}, false
	}
	return r.snapshot(), true
}

func (rt *Runtime) find(key Key) (*record, error) {
	q := rt.queues[key.Controller]
	if q == nil {
		return nil, fmt.Errorf("controller %q: %w", key.Controller, ErrUnknownController)
	}
	l := q.flows[key.Member]
	if l == nil {
		return nil, fmt.Errorf("controller %q: member %q: %w", key.Controller, key.Member, ErrUnknownMember)
	}
	r := l.records[key.NamespacedName]
	if r == nil {
		return nil, fmt.Errorf("controller %q: member %q: %q: %w", key.Controller, key.Member, key.NamespacedName, ErrUnknownKey)
	}
	return r, nil
}

// snapshotBatch bounds how many records are copied under one hold of the lock.
const snapshotBatch = 256

// Records returns the records of a member, or of all members if the name is empty, in the order of controller, member,
// namespace and name. Each record is consistent in itself and taken when it is reached; keys that go meanwhile are left
// out, and keys that come are missing.
func (rt *Runtime) Records(member string) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for some := range slices.Chunk(rt.keys(member), snapshotBatch) {
			for _, r := range rt.snapshots(some) {
				if !yield(r) {
					return
				}
			}
		}
	}
}

func (rt *Runtime) snapshots(keys []Key) []Record {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	found := make([]Record, 0, len(keys))
	for _, key := range keys {
		if r, err := rt.find(key); err == nil {
			found = append(found, r.snapshot())
		}
	}
	return found
}

// keys returns the known keys of a member, or of all, in order; see [Runtime.eachBatch].
func (rt *Runtime) keys(member string) (keys []Key) {
	rt.eachBatch("", member, func(some []Key) { keys = append(keys, some...) })
	slices.SortFunc(keys, compareKeys)
	return keys
}

// eachBatch visits the known keys of a controller in a member, or of all, in any order, at most snapshotBatch at a time. visit does not hold the
// lock and does not keep the slice. The lock is given up for each visit, which a walk over a map survives: a key that comes or goes meanwhile may
// be in or not.
func (rt *Runtime) eachBatch(controller, member string, visit func(some []Key)) {
	batch := make([]Key, 0, snapshotBatch)
	rt.mu.Lock()
	walk := func(controller, member string, l *flow) {
		for key := range l.records {
			if batch = append(batch, Key{Controller: controller, Member: member, NamespacedName: key}); len(batch) == snapshotBatch {
				rt.mu.Unlock()
				visit(batch)
				batch = batch[:0]
				rt.mu.Lock()
			}
		}
	}
	for _, q := range rt.queues {
		if controller != "" && controller != q.name {
			continue
		}
		if member == "" {
			for name, l := range q.flows {
				walk(q.name, name, l)
			}
		} else if l := q.flows[member]; l != nil {
			walk(q.name, member, l)
		}
	}
	rt.mu.Unlock()
	visit(batch)
}

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Controller, b.Controller), cmp.Compare(a.Member, b.Member),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
