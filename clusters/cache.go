package clusters

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/caching"
	"github.com/plimsoll-dev/plimsoll/clusters/internal/intake"
	"github.com/plimsoll-dev/plimsoll/internal/notify"
)

// ErrTrimmed is wrapped by the errors of updates that would have erased what the cache does not hold.
var ErrTrimmed = caching.ErrTrimmed

// NotWarmError says that a kind is not cached in a member, and why.
type NotWarmError struct {
	Member string
	Kind   string // for example "apps/v1 Deployment"
	Reason string // NotFound, Forbidden, Timeout, Warming, or NotDeclared
}

func (e *NotWarmError) Error() string {
	if e.Reason == reasonNotDeclared {
		return fmt.Sprintf("member %s: kind %s is not cached: no controller declares it: declare it with Owns, Watches or Uses "+
			"of the controller's builder, or read it with Request.Live", e.Member, e.Kind)
	}
	return fmt.Sprintf("member %s: kind %s is not cached: %s", e.Member, e.Kind, e.Reason)
}

// memberCache is a member's cache.Cache. Every kind has a cache of its own behind it, so that one kind can come and go
// without touching the others, and nothing here ever starts an informer or waits for one.
type memberCache struct {
	member string
	scheme *runtime.Scheme
	kinds  map[schema.GroupVersionKind]*memberKind
}

var _ cache.Cache = (*memberCache)(nil)

// Get reads one object of a warm kind.
func (c *memberCache) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	warm, err := c.find(obj)
	if err != nil {
		return err
	}
	return warm.Get(ctx, key, obj, opts...)
}

// List reads objects of a warm kind.
func (c *memberCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	warm, err := c.find(list)
	if err != nil {
		return err
	}
	return warm.List(ctx, list, opts...)
}

// GetInformer returns the informer of a warm kind, which has synced.
func (c *memberCache) GetInformer(ctx context.Context, obj client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	warm, err := c.find(obj)
	if err != nil {
		return nil, err
	}
	return warm.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
}

// GetInformerForKind returns the informer of a warm kind, which has synced.
func (c *memberCache) GetInformerForKind(ctx context.Context, gvk schema.GroupVersionKind, _ ...cache.InformerGetOption) (cache.Informer, error) {
	warm, err := c.findKind(gvk)
	if err != nil {
		return nil, err
	}
	return warm.GetInformerForKind(ctx, gvk, cache.BlockUntilSynced(false))
}

// RemoveInformer is refused: kinds are shared by controllers, and leave when the member no longer has them.
func (c *memberCache) RemoveInformer(_ context.Context, obj client.Object) error {
	return fmt.Errorf("member %s: remove the informer of %T: kinds are kept by the member itself", c.member, obj)
}

// Start blocks until ctx ends. The caches of the kinds are started by the member.
func (c *memberCache) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// WaitForCacheSync is true at once: a kind is not there before it has synced.
func (c *memberCache) WaitForCacheSync(context.Context) bool { return true }

// IndexField adds an index to a declared kind, now and whenever it becomes warm again.
func (c *memberCache) IndexField(ctx context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	gvk, err := caching.ItemKind(obj, c.scheme)
	if err != nil {
		return err
	}
	kind := c.kinds[gvk]
	if kind == nil {
		return &NotWarmError{c.member, caching.KindName(gvk), reasonNotDeclared}
	}
	return kind.index(ctx, field, extract)
}

func (c *memberCache) find(obj runtime.Object) (*warmCache, error) {
	gvk, err := caching.ItemKind(obj, c.scheme)
	if err != nil {
		return nil, err
	}
	if kind := c.kinds[gvk]; kind != nil && caching.IsUntyped(obj) != caching.IsUntyped(kind.Object) {
		return nil, fmt.Errorf("member %s: read %s: it is cached as %T, not %T", c.member, caching.KindName(gvk), kind.Object, obj)
	}
	return c.findKind(gvk)
}

func (c *memberCache) findKind(gvk schema.GroupVersionKind) (*warmCache, error) {
	kind := c.kinds[gvk]
	if kind == nil {
		return nil, &NotWarmError{c.member, caching.KindName(gvk), reasonNotDeclared}
	}
	warm, reason := kind.get()
	if warm == nil {
		return nil, &NotWarmError{c.member, kind.name, reason}
	}
	return warm, nil
}

// Why a kind is not cached.
const (
	reasonNotDeclared = "NotDeclared" // no controller declared the kind
	reasonWarming     = "Warming"     // the first attempt is under way
	reasonNotFound    = ReasonKindNotFound
	reasonForbidden   = "Forbidden" // the credentials may not list and watch it
	reasonFailed      = "Failed"    // the member answered with another error, or an object of it cannot be trimmed
	// The member sent more than it may: an answer, an event of a watch, or objects to hold.
	reasonTooLarge   = "TooLarge"
	reasonUnreadable = "Unreadable" // the member sent what is neither JSON nor protobuf of Kubernetes
)

// ReasonKindNotFound is why a kind is not cached that the member does not serve.
const ReasonKindNotFound = "NotFound"

// declaredKind is a Kind with the name that the scheme gives it.
type declaredKind struct {
	Kind
	gvk  schema.GroupVersionKind
	name string
}

// memberKind is one declared kind in one member.
type memberKind struct {
	declaredKind
	defined notify.Wake // when a definition of the group comes or changes

	mu      sync.RWMutex // never held while a member is asked
	warm    *warmCache   // nil while the kind is not cached
	reason  string       // why not
	tried   bool         // the first attempt has ended
	indexes map[string]client.IndexerFunc
}

// warmCache is the cache of one kind, from one warming to the next.
type warmCache struct {
	cache.Cache
	scopes  []scope // that it holds
	budget  *intake.KindBudget
	watches []*watchState // of the scopes
	broken  chan struct{} // holds something when an object could not be trimmed
	done    chan struct{} // closed when the kind is disengaged
	stop    func()        // stops the informer and waits for it
}

func newMemberKind(declared declaredKind) *memberKind {
	return &memberKind{declaredKind: declared, defined: notify.New(), reason: reasonWarming, indexes: maps.Clone(declared.Indexes)}
}

func (k *memberKind) get() (*warmCache, string) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.warm, k.reason
}

// index remembers an index and adds it to the cache that is there.
func (k *memberKind) index(ctx context.Context, field string, extract client.IndexerFunc) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, exists := k.indexes[field]; exists {
		return fmt.Errorf("index %q of kind %s exists", field, k.name)
	}
	if k.warm != nil {
		if err := k.warm.IndexField(ctx, k.Object, field, extract); err != nil {
			return fmt.Errorf("index %q of kind %s: %w", field, k.name, err)
		}
	}
	if k.indexes == nil {
		k.indexes = map[string]client.IndexerFunc{}
	}
	k.indexes[field] = extract
	return nil
}

// engage makes a synced cache the kind's, with the indexes that were asked for while it synced. have are those it has.
func (k *memberKind) engage(ctx context.Context, warm *warmCache, have map[string]client.IndexerFunc) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, field := range slices.Sorted(maps.Keys(k.indexes)) {
		if _, exists := have[field]; exists {
			continue
		}
		if err := warm.IndexField(ctx, k.Object, field, k.indexes[field]); err != nil {
			return fmt.Errorf("index %q of kind %s: %w", field, k.name, err)
		}
	}
	if k.warm != nil { // it is replaced by one of other namespaces
		close(k.warm.done)
	}
	k.warm, k.reason, k.tried = warm, "", true
	return nil
}

// miss records why an attempt failed, or why the kind was lost.
func (k *memberKind) miss(reason string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tried, k.reason = true, reason
	if k.warm != nil {
		close(k.warm.done)
		k.warm = nil
	}
}

// kindReport is a snapshot of a memberKind.
type kindReport struct {
	KindStatus
	optional, companion, tried bool

	closed time.Time // since when a watch of it is closed; zero: all are open
}

// excessive reports that the kind is not cached because of what the member sends, which is a fault whatever the kind is for.
func (k *kindReport) excessive() bool {
	return !k.Engaged && (k.Reason == reasonTooLarge || k.Reason == reasonUnreadable)
}

func (k *memberKind) report() kindReport {
	k.mu.RLock()
	defer k.mu.RUnlock()
	r := kindReport{KindStatus: KindStatus{Kind: k.name, Engaged: k.warm != nil, Reason: k.reason},
		optional: k.Optional, companion: k.Companion, tried: k.tried}
	if k.warm != nil {
		r.closed = k.warm.closedSince()
	}
	return r
}

// closedSince returns since when a watch has been closed for the longest; the zero time: all are open.
func (w *warmCache) closedSince() (since time.Time) {
	for _, watch := range w.watches {
		if at := watch.closedSince(); !at.IsZero() && (since.IsZero() || at.Before(since)) {
			since = at
		}
	}
	return since
}

// fieldIndexes returns the indexes known now.
func (k *memberKind) fieldIndexes() map[string]client.IndexerFunc {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return maps.Clone(k.indexes)
}
