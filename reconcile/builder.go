package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
)

const (
	defaultWorkers = 5
	maxNameLength  = 63
)

var controllerName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// Member is what a [Mapper] may look at.
type Member struct {
	// Name of the member.
	Name string
	// Reader reads from the member's cache.
	Reader client.Reader
}

// A Mapper names the keys that an object of a watched kind concerns. It is called for what an object was and for what it
// is, also for objects that are gone, one after the other for each kind and member. It must not change obj, which is the
// cache's, and should be quick. Keys that are not in the cache are ignored.
type Mapper func(ctx context.Context, member *Member, obj client.Object) []types.NamespacedName

// A Builder collects what a controller is to be; [Builder.Register] checks and makes it. Not safe for concurrent use.
type Builder[T client.Object] struct {
	rt         *Runtime
	name       string
	reconciler Reconciler[T]
	primary    clusters.Kind
	others     []watch
	indexes    []index
	workers    int
	deadline   time.Duration
	resync     time.Duration
	predicate  func(old, new T) bool
	tuning     tuning
	traits     *primary
	paused     bool
	dependsOn  func(obj T) []Dependency
	domain     string
	errs       []error
}

// For starts to build the controller that runs a reconciler in every member that has T's kind. The name is a DNS label,
// unique in the runtime; it is in the ledger, the metrics and the API.
func For[T client.Object](rt *Runtime, name string, r Reconciler[T]) *Builder[T] {
	b := &Builder[T]{rt: rt, name: name, reconciler: r, workers: defaultWorkers}
	if object.IsNil(r) {
		b.fail("the reconciler is nil")
	}
	if rt == nil {
		b.fail("the runtime is nil")
		return b
	}
	b.deadline, b.resync = rt.opts.Deadline, rt.opts.Resync
	return b
}

// Kind says what of the reconciled kind is cached: a selector, the fields to keep, indexes. Default: everything. The
// kind's Object must be a T, or nil.
func (b *Builder[T]) Kind(kind clusters.Kind) *Builder[T] {
	if kind.Object != nil {
		if _, ok := kind.Object.(T); !ok {
			b.fail("Kind: the object is a %T: it must be the reconciled %s", kind.Object, reflect.TypeFor[T]())
		}
	}
	b.primary = kind
	return b
}

// Workers is how many keys of one member are reconciled at once. Default 5. Members do not share them: one whose
// reconciles hang holds its own and nobody else's. Options.WorkersPerMember bounds all controllers of a member together,
// Options.Workers one controller over all members.
func (b *Builder[T]) Workers(n int) *Builder[T] {
	if n < 1 {
		b.fail("Workers is %d: it must be at least 1", n)
	}
	b.workers = n
	return b
}

// Deadline of one reconcile. Default Options.Deadline.
func (b *Builder[T]) Deadline(d time.Duration) *Builder[T] {
	if d <= 0 {
		b.fail("Deadline is %s: it must be more than zero", d)
	}
	b.deadline = d
	return b
}

// Resync is the time after which a key that is done, or waits for a later time, is looked at again in the background, give
// or take a tenth. Default, and 0: Options.Resync; negative: never.
func (b *Builder[T]) Resync(d time.Duration) *Builder[T] {
	b.resync = cmp.Or(d, b.rt.opts.Resync)
	return b
}

// ReconcilePaused calls the reconciler also while the object is paused: it knows itself what a pause means, and shows it.
func (b *Builder[T]) ReconcilePaused() *Builder[T] {
	b.paused = true
	return b
}

// Backoff sets how long a key waits after the first failure in a row, and at most: each failure doubles it, give or take a
// tenth. Default 1 s to 5 min.
func (b *Builder[T]) Backoff(first, most time.Duration) *Builder[T] {
	if first <= 0 || most < first {
		b.fail("Backoff is %s to %s: it must be more than zero and not fall", first, most)
	}
	b.tuning.backoffFirst, b.tuning.backoffMost = first, most
	return b
}

// RateLimit bounds how many reconciles a second begin in one member, after a burst. What a person ordered is not counted and
// does not wait. Default: no limit.
func (b *Builder[T]) RateLimit(perSecond float64, burst int) *Builder[T] {
	if perSecond <= 0 || burst < 1 {
		b.fail("RateLimit is %v a second after %d: it must be more than zero after at least 1", perSecond, burst)
	}
	b.tuning.perSecond, b.tuning.burst = perSecond, burst
	return b
}

// FinalizeDeadline is how long an object may be in deletion before a reconciler that is a [Finalizer] counts as stalled:
// the condition Stalled is set, the ledger says so and the metric plimsoll_finalizers_overdue counts it. Finalize goes on
// being called. Default 10 min.
func (b *Builder[T]) FinalizeDeadline(d time.Duration) *Builder[T] {
	if d <= 0 {
		b.fail("FinalizeDeadline is %s: it must be more than zero", d)
	}
	b.tuning.finalizeDeadline = d
	return b
}

// StalledRetry is the time after which a key that ended with a [TerminalError] is tried again, give or take a tenth, for
// what no watch shows: a quota that was raised, a permission that was given. Default 1 min for a [StatusObject], and never
// for other kinds; 0: never.
func (b *Builder[T]) StalledRetry(d time.Duration) *Builder[T] {
	if d < 0 {
		b.fail("StalledRetry is %s: it must not be negative", d)
	}
	b.tuning.stalledRetry = &d
	return b
}

// Predicate drops events of reconciled objects for which it is false. old is nil for an object that is new in the cache.
// Objects that are gone are not asked about, nor are changes of deletion, finalizers and the annotations by which people
// steer ([AnnotationPaused], [AnnotationRequestedAt]). It must not change the objects, which are the cache's.
func (b *Builder[T]) Predicate(keep func(old, new T) bool) *Builder[T] {
	b.predicate = keep
	return b
}

func (b *Builder[T]) fail(format string, args ...any) {
	b.errs = append(b.errs, fmt.Errorf(format, args...))
}

// Register checks what was built and adds the controller to the runtime. It runs once it is added to a manager. An error
// names everything that is wrong.
func (b *Builder[T]) Register() (*Controller, error) {
	c, err := b.register()
	if err != nil {
		return nil, fmt.Errorf("controller %q: %w", b.name, err)
	}
	return c, nil
}

func (b *Builder[T]) register() (*Controller, error) {
	if len(b.name) > maxNameLength || !controllerName.MatchString(b.name) {
		b.fail("the name must be a DNS label: at most %d lower-case letters, digits and dashes", maxNameLength)
	}
	b.checkDomain()
	if b.rt == nil {
		return nil, errors.Join(b.errs...)
	}
	watches := b.watches()
	if len(b.errs) > 0 {
		return nil, errors.Join(b.errs...)
	}
	c := &Controller{rt: b.rt, name: b.name, watches: watches, marks: b.marks(), engagements: map[string]*engagement{}}
	c.queue = newQueue(b.rt, b.name, b.workers, max(b.resync, 0))
	c.queue.kind = watches[0].gvk
	c.queue.pace, c.queue.limit, c.queue.overdue = b.tuning.pace(b.traits.status), b.tuning.rateLimit(), b.deadline+stuckGrace
	_, c.keeps = b.reconciler.(Forgetter)
	c.run = (&adapter[T]{
		controller: c, reconciler: b.reconciler, primary: b.traits, deadline: b.deadline, dependsOn: b.dependsOn,
		finalizeDeadline: cmp.Or(b.tuning.finalizeDeadline, defaultFinalizeDeadline),
	}).run
	return c, b.rt.add(c)
}

// watches completes and checks the kinds; the reconciled one is first.
func (b *Builder[T]) watches() []watch {
	if b.primary.Object == nil {
		b.primary.Object = object.New[T]()
	}
	b.traits = b.primaryTraits()
	all := append([]watch{{kind: b.primary, role: rolePrimary, weigh: b.traits.weigh}}, b.others...)
	for i := range all {
		w := &all[i]
		if object.IsNil(w.kind.Object) {
			b.fail("%s: the kind has no object", w.role)
			continue
		}
		gvk, err := apiutil.GVKForObject(w.kind.Object, b.rt.opts.Scheme)
		if err != nil {
			b.fail("%s: %T: %w", w.role, w.kind.Object, err)
			continue
		}
		w.gvk, w.owner = gvk, all[0].gvk.GroupKind()
	}
	if all[0].kind.Optional {
		b.fail("%s: %s is optional: it is the kind that is reconciled", all[0].role, object.KindName(all[0].gvk))
	}
	b.addIndexes(all)
	return all
}

// primaryTraits finds out what the framework keeps on the reconciled kind, and has it cached.
func (b *Builder[T]) primaryTraits() *primary {
	p := &primary{pauses: b.paused, keep: func(old, obj client.Object) bool { return true }}
	if keep := b.predicate; keep != nil {
		p.keep = func(old, obj client.Object) bool {
			before, _ := old.(T)
			now, ok := obj.(T)
			return ok && keep(before, now)
		}
	}
	if _, ok := b.reconciler.(Finalizer[T]); ok {
		p.finalizer = b.marks().finalizer
	}
	if kind, ok := b.primary.Object.(StatusObject); ok && !object.IsNil(kind) {
		p.status = true
		if err := checkStatus(kind); err != nil {
			b.fail("Kind: %w", err)
		}
	}
	keep := b.primary.Keep
	switch {
	case keep != nil && p.status:
		b.fail("Kind: Keep is set: the whole %s must be cached, as the framework keeps its status", reflect.TypeFor[T]())
	case keep != nil:
		b.primary.Keep = func(from, into client.Object) {
			keep(from, into)
			keepSteering(from, into)
		}
	}
	return p
}

func (rt *Runtime) add(c *Controller) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.controllers[c.name] != nil {
		return errors.New("the name is taken by another controller of the runtime")
	}
	rt.controllers[c.name], rt.queues[c.name] = c, c.queue
	return nil
}
