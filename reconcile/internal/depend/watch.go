package depend

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	fieldselector "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/members"
	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
	"github.com/plimsoll-dev/plimsoll/reconcile/internal/retry"
)

// A place is what one watch for dependencies covers: of Secrets and ConfigMaps a namespace, names and versions only; of
// other kinds one object, whole. What nobody depends on is dropped as it arrives, so memory follows the dependencies. See
// docs/decisions/0008 for what else was thought of.
type place struct {
	member    string
	gvk       schema.GroupVersionKind
	namespace string
	name      string // empty: all of the namespace
}

func placeOf(t target) place {
	p := place{member: t.member, gvk: t.gvk, namespace: t.name.Namespace}
	if t.gvk != secretKind && t.gvk != configMapKind {
		p.name = t.name.Name
	}
	return p
}

// whole reports whether conditions are wanted, which are not in the metadata.
func (p place) whole() bool { return p.name != "" }

// A placeWatch keeps the facts of the entries in its place current, as long as there are any. Guarded by Index.mu.
type placeWatch struct {
	ds       *Index
	place    place
	entries  map[types.NamespacedName]*entry
	instance *members.Instance // nil: the member is not there
	cancel   context.CancelFunc
	synced   bool
	closed   time.Time // since when it is not synced
	refused  time.Time // when the member forbade to read one of the entries; zero: not since the watch was tried last
	turnsAt  time.Time // when entries were last given turns; see giveTurns
	epoch    int       // counts starts, so that what an older run still delivers is dropped
}

// follow has an entry watched. The lock is held.
func (ds *Index) follow(e *entry) {
	p := placeOf(e.target)
	w := ds.watches[p]
	if w == nil {
		w = &placeWatch{ds: ds, place: p, entries: map[types.NamespacedName]*entry{}}
		ds.watches[p] = w
		w.start(ds.instances.Get(p.member))
	}
	w.entries[e.target.name] = e
	e.watch = w
}

// unfollow is the end of follow. The lock is held.
func (ds *Index) unfollow(e *entry) {
	w := e.watch
	delete(w.entries, e.target.name)
	if len(w.entries) == 0 {
		w.stop()
		delete(ds.watches, w.place)
	}
}

func (w *placeWatch) start(there *members.Instance) {
	w.instance = there
	if there == nil {
		return
	}
	w.epoch++
	w.closed, w.refused = time.Now(), time.Time{}
	ctx, cancel := context.WithCancel(there.Context)
	w.cancel = cancel
	go w.run(ctx, there, w.epoch)
}

func (w *placeWatch) stop() {
	w.synced = false
	if w.cancel != nil {
		w.cancel()
		w.cancel = nil
	}
}

// run watches until ctx ends. When the member cannot be watched, it is tried again with back-off, and meanwhile the
// dependencies are looked at live, at the time of each retry.
func (w *placeWatch) run(ctx context.Context, there *members.Instance, epoch int) {
	source, err := watchClient(there.Cluster)
	if err != nil {
		w.ds.log.Warn("cannot watch what objects depend on", "member", w.place.member, "error", err)
		return
	}
	quiet := logr.Discard()
	store := &placeStore{watch: w, epoch: epoch}
	reflector := toolscache.NewReflectorWithOptions(store.listWatch(source), w.place.object(), store,
		toolscache.ReflectorOptions{Logger: &quiet, Name: "dependencies", Backoff: &wait.Backoff{
			Duration: watchSoon / 4, Factor: 2, Jitter: retry.JitterShare, Steps: 3, Cap: watchSoon,
		}})
	ctx = logr.NewContext(ctx, quiet)
	for failed := uint32(1); ctx.Err() == nil; failed++ {
		began := time.Now()
		w.tried(epoch)
		err := reflector.ListAndWatchWithContext(ctx) // what the member says is not for the log
		w.interrupted(epoch)
		if endless := (*endlessError)(nil); errors.As(err, &endless) {
			w.ds.log.Warn("cannot watch what objects depend on", "member", w.place.member, "error", endless)
		} else if time.Since(began) > watchPause {
			failed = 1
		}
		pause := time.NewTimer(watchAgain(err, failed, rand.Float64())) //nolint:gosec // spreads load
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
		}
	}
}

// tried has the member asked again for what it refused to show.
func (w *placeWatch) tried(epoch int) {
	w.ds.mu.Lock()
	defer w.ds.mu.Unlock()
	if epoch == w.epoch {
		w.refused = time.Time{}
	}
}

// interrupted has the dependencies looked at live until the watch has begun again: what it said last may no longer hold.
func (w *placeWatch) interrupted(epoch int) {
	w.ds.mu.Lock()
	defer w.ds.mu.Unlock()
	if epoch == w.epoch && w.synced {
		w.synced, w.closed = false, time.Now()
	}
}

// watchClient is the client for lists and watches of a member. A cluster may bring its own, as those in tests do.
func watchClient(cl cluster.Cluster) (client.WithWatch, error) {
	if own, ok := cl.(interface{ WatchClient() client.WithWatch }); ok {
		return own.WatchClient(), nil
	}
	return client.NewWithWatch(cl.GetConfig(), client.Options{
		HTTPClient: cl.GetHTTPClient(), Scheme: cl.GetScheme(), Mapper: cl.GetRESTMapper(),
	})
}

func (p place) object() client.Object {
	if p.whole() {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(p.gvk)
		return u
	}
	return &metav1.PartialObjectMetadata{}
}

func (p place) list() client.ObjectList {
	gvk := p.gvk
	gvk.Kind += "List"
	if p.whole() {
		u := &unstructured.UnstructuredList{}
		u.SetGroupVersionKind(gvk)
		return u
	}
	m := &metav1.PartialObjectMetadataList{}
	m.SetGroupVersionKind(gvk)
	return m
}

func (p place) options(raw *metav1.ListOptions) *client.ListOptions {
	o := &client.ListOptions{Namespace: p.namespace, Raw: raw}
	if p.name != "" {
		o.FieldSelector = fieldselector.OneTermEqualSelector(metav1.ObjectNameField, p.name)
	}
	return o
}

func (s *placeStore) listWatch(source client.WithWatch) toolscache.ListerWatcher {
	p := s.watch.place
	return pagedListWatch{&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) { return s.list(ctx, source) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			events, err := source.Watch(ctx, p.list(), p.options(&o))
			if err != nil {
				return nil, err
			}
			return newCheckedWatch(events), nil
		},
	}}
}

// pagedListWatch lists instead of streaming the list, which not every client can.
type pagedListWatch struct{ *toolscache.ListWatch }

// IsWatchListSemanticsUnSupported implements what client-go's reflector asks.
func (pagedListWatch) IsWatchListSemanticsUnSupported() bool { return true }

// placeStore is where a reflector puts what it hears. It keeps facts only, and only of what is depended on.
type placeStore struct {
	watch  *placeWatch
	epoch  int
	listed map[*entry]facts // by the last list; only its reflector's
}

// Add takes an object that is there.
func (s *placeStore) Add(obj any) error {
	if o, ok := obj.(client.Object); ok {
		s.heard(client.ObjectKeyFromObject(o), func() facts { return factsOf(o) })
	}
	return nil
}

// Update takes an object that changed.
func (s *placeStore) Update(obj any) error { return s.Add(obj) }

// Delete takes an object that is gone.
func (s *placeStore) Delete(obj any) error {
	if o := object.LastKnown(obj); o != nil {
		s.heard(client.ObjectKeyFromObject(o), func() facts { return facts{} })
	}
	return nil
}

// Replace takes what [placeStore.list] has found. Of what is depended on only since that began, it says nothing: that is looked at live,
// and later changes of it are events.
func (s *placeStore) Replace([]any, string) error {
	var concerned []wakeUp
	w := s.watch
	w.ds.mu.Lock()
	if s.epoch == w.epoch && w.cancel != nil {
		w.synced = true
		for _, e := range w.entries {
			if f, asked := s.listed[e]; asked {
				concerned = append(concerned, e.update(f)...)
			}
		}
	}
	w.ds.mu.Unlock()
	s.listed = nil
	wakeAll(concerned)
	return nil
}

// Resync has nothing to do.
func (s *placeStore) Resync() error { return nil }

func (s *placeStore) heard(name types.NamespacedName, read func() facts) {
	var concerned []wakeUp
	w := s.watch
	w.ds.mu.Lock()
	if e := w.entries[name]; e != nil && s.epoch == w.epoch && w.cancel != nil {
		concerned = e.update(read())
	}
	w.ds.mu.Unlock()
	wakeAll(concerned)
}

// Watched is how many watches are held in a member for what objects depend on.
func (ds *Index) Watched(member string) (n int) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	for p := range ds.watches {
		if p.member == member {
			n++
		}
	}
	return n
}
