package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/apply"
	"github.com/plimsoll-dev/plimsoll/reconcile/internal/events"
	"github.com/plimsoll-dev/plimsoll/reconcile/internal/members"
	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
	"github.com/plimsoll-dev/plimsoll/reconcile/internal/retry"
)

var (
	errKindGone = errors.New("the member no longer has a kind that the controller needs")
	errReplaced = errors.New("the member was replaced")
	errStopped  = errors.New("the controller stopped")
)

// An engagement is one controller at work in one instance of a member: its handlers on the informers of the member's
// cache, and its flow in the queue. It ends with its context, and for good.
type engagement struct {
	controller *Controller
	name       string
	cluster    cluster.Cluster
	flow       *flow
	log        *slog.Logger
	ctx        context.Context // of the member; its cause says why the engagement ended
	cancel     context.CancelCauseFunc
	events     *events.Sink
	scope      apply.Scope

	attachedPrimary chan struct{} // closed when the handler of the reconciled kind is there
	clusterScoped   atomic.Bool   // the reconciled kind has no namespaces, as its first object showed
	primary         atomic.Pointer[store]

	mu       sync.Mutex
	followed map[int]<-chan struct{} // by watch that is attached or about to be: closed when its kind is gone
	handlers map[int]attached
}

type attached struct {
	informer cache.Informer
	handle   toolscache.ResourceEventHandlerRegistration
}

// start follows every kind that is there. It waits for nothing.
func (e *engagement) start() {
	context.AfterFunc(e.ctx, e.end)
	e.follow()
}

// live reports whether the engagement is not over.
func (e *engagement) live() bool { return e.ctx.Err() == nil }

// follow attaches to the kinds that are there and not followed yet; later calls pick up optional kinds that came later.
func (e *engagement) follow() {
	for i := range e.controller.watches {
		gone, ok := members.Presence(e.cluster, e.controller.watches[i].kind.Object)
		if !ok {
			continue
		}
		e.mu.Lock()
		before, followed := e.followed[i]
		if followed && e.controller.watches[i].kind.Optional && members.IsClosed(before) {
			e.remove(i)
			followed = false
		}
		if !followed {
			e.followed[i] = gone
			go e.followOne(i, gone)
		}
		e.mu.Unlock()
	}
}

// whole reports whether the engagement goes on: it is live, and no kind that it needs has gone.
func (e *engagement) whole() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, gone := range e.followed {
		if !e.controller.watches[i].kind.Optional && members.IsClosed(gone) {
			return false
		}
	}
	return e.live()
}

// followOne attaches the handler of one kind and stays until the kind or the member is gone. The reconciled kind goes
// first: the others ask its informer which of their keys exist.
func (e *engagement) followOne(i int, gone <-chan struct{}) {
	w := &e.controller.watches[i]
	if w.role == roleOwned || w.role == roleMapped {
		select {
		case <-e.attachedPrimary:
		case <-e.ctx.Done():
			return
		}
	}
	if !e.attachUntilDone(i, gone) {
		return
	}
	select {
	case <-e.ctx.Done():
		return
	case <-gone:
	}
	if !w.kind.Optional {
		e.cancel(fmt.Errorf("%s: %w", object.KindName(w.gvk), errKindGone))
		return
	}
	e.detach(i, gone)
}

// attachUntilDone attaches a handler, trying again while the kind is there.
func (e *engagement) attachUntilDone(i int, gone <-chan struct{}) bool {
	w := &e.controller.watches[i]
	for n := uint32(1); ; n++ {
		err := e.attach(i)
		if err == nil {
			return true
		}
		if !e.live() {
			return false
		}
		e.log.Warn("cannot watch a kind", "kind", object.KindName(w.gvk), "error", err)
		pause := time.NewTimer(retry.Backoff(n, rand.Float64())) //nolint:gosec // spreads load
		select {
		case <-pause.C:
		case <-gone:
			pause.Stop()
			return true
		case <-e.ctx.Done():
			pause.Stop()
			return false
		}
	}
}

// attach adds the handler of a kind to the member's informer, which delivers what it has and what is to come.
func (e *engagement) attach(i int) error {
	w := &e.controller.watches[i]
	if w.role == roleUsed {
		return nil
	}
	informer, err := e.cluster.GetCache().GetInformer(e.ctx, w.kind.Object, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("member %s: get the informer of %s: %w", e.name, object.KindName(w.gvk), err)
	}
	if known := storeOf(informer); known != nil && w.role == rolePrimary {
		e.primary.Store(&known)
	}
	handle, err := informer.AddEventHandler(w.handler(e))
	if err != nil {
		return fmt.Errorf("member %s: watch %s: %w", e.name, object.KindName(w.gvk), err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.live() {
		return informer.RemoveEventHandler(handle)
	}
	e.handlers[i] = attached{informer: informer, handle: handle}
	if w.role == rolePrimary {
		close(e.attachedPrimary)
	}
	return nil
}

// detach removes the handler of an optional kind that is gone; a later Engage finds it again.
func (e *engagement) detach(i int, gone <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.followed[i] == gone {
		e.remove(i)
		delete(e.followed, i)
	}
}

func (e *engagement) remove(i int) {
	a, ok := e.handlers[i]
	if !ok {
		return
	}
	delete(e.handlers, i)
	if err := a.informer.RemoveEventHandler(a.handle); err != nil {
		e.log.Debug("cannot remove an event handler", "kind", object.KindName(e.controller.watches[i].gvk), "error", err)
	}
}

// end removes the handlers and drops the keys, once ctx has ended.
func (e *engagement) end() {
	e.mu.Lock()
	for i := range e.controller.watches {
		e.remove(i)
	}
	e.mu.Unlock()
	e.controller.ended(e)
}

// known reports whether the reconciled object of a key is in the cache, as far as that is known without asking anybody.
// An object that comes later brings its own event; one that is gone must not come back into the ledger because something
// that pointed at it changes after it, or the queue of a standby would grow forever.
func (e *engagement) known(key types.NamespacedName) bool {
	known := e.primary.Load()
	if known == nil {
		return true
	}
	_, exists, err := (*known).GetByKey(object.StoreKey(key))
	return exists || err != nil
}

// store is what an informer holds.
type store interface {
	GetByKey(key string) (item any, exists bool, err error)
}

// storeOf returns what an informer holds; nil when it does not show it. One that is made of several shows it as itself.
func storeOf(informer cache.Informer) store {
	if indexed, ok := informer.(interface{ GetIndexer() toolscache.Indexer }); ok {
		return indexed.GetIndexer()
	}
	held, _ := informer.(store)
	return held
}
