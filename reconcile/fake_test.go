package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	framework "k8s.io/client-go/tools/cache/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/plimsoll-dev/plimsoll/clusters"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

// fakeCluster is a member whose informers are real and whose API server is not: each kind has a source that tests change.
type fakeCluster struct {
	cluster.Cluster // nil: what is not faked is not used; to be used in a synctest bubble

	client client.Client
	ctx    context.Context
	mu     sync.Mutex
	kinds  map[reflect.Type]*fakeKind
}

type fakeKind struct {
	source   *framework.FakeControllerSource
	informer toolscache.SharedIndexInformer
	gone     chan struct{}
	handlers atomic.Int32
}

// newFakeCluster makes a cluster that has the given kinds until ctx ends.
func newFakeCluster(ctx context.Context, objects ...client.Object) *fakeCluster {
	c := &fakeCluster{
		client: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build(),
		ctx:    ctx, kinds: map[reflect.Type]*fakeKind{},
	}
	for _, obj := range objects {
		c.install(obj)
	}
	return c
}

// install makes a kind appear, with objects of it that are there when it is first listed.
func (c *fakeCluster) install(obj client.Object, objects ...client.Object) *fakeKind {
	k := &fakeKind{source: framework.NewFakeControllerSource(), gone: make(chan struct{})}
	for _, o := range objects {
		k.source.Add(o)
	}
	k.informer = toolscache.NewSharedIndexInformer(k.source, obj, 0, toolscache.Indexers{})
	go k.informer.RunWithContext(c.ctx)
	context.AfterFunc(c.ctx, k.source.Shutdown)
	synctest.Wait() // until it watches: this source lets a watch start only where its first change is not newer
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kinds[reflect.TypeOf(obj)] = k
	return k
}

// uninstall makes a kind disappear.
func (c *fakeCluster) uninstall(obj client.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.kinds[reflect.TypeOf(obj)].gone)
	delete(c.kinds, reflect.TypeOf(obj))
}

func (c *fakeCluster) kind(obj client.Object) *fakeKind {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kinds[reflect.TypeOf(obj)]
}

func (c *fakeCluster) add(obj client.Object)    { c.kind(obj).source.Add(obj) }
func (c *fakeCluster) modify(obj client.Object) { c.kind(obj).source.Modify(obj) }
func (c *fakeCluster) remove(obj client.Object) { c.kind(obj).source.Delete(obj) }

func (c *fakeCluster) Watch(obj client.Object) (<-chan struct{}, bool) {
	if k := c.kind(obj); k != nil {
		return k.gone, true
	}
	return nil, false
}

func (c *fakeCluster) GetCache() cache.Cache       { return fakeCache{cluster: c} }
func (c *fakeCluster) GetClient() client.Client    { return c.client }
func (c *fakeCluster) GetAPIReader() client.Reader { return c.client }

// handlers is how many event handlers a kind has.
func (c *fakeCluster) handlers(obj client.Object) int { return int(c.kind(obj).handlers.Load()) }

// countedInformer counts the handlers of an informer.
type countedInformer struct {
	toolscache.SharedIndexInformer
	kind *fakeKind
}

func (i countedInformer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	i.kind.handlers.Add(1)
	return i.SharedIndexInformer.AddEventHandler(h)
}

func (i countedInformer) RemoveEventHandler(h toolscache.ResourceEventHandlerRegistration) error {
	i.kind.handlers.Add(-1)
	return i.SharedIndexInformer.RemoveEventHandler(h)
}

type fakeCache struct {
	cache.Cache
	cluster *fakeCluster
}

func (f fakeCache) Get(_ context.Context, key client.ObjectKey, out client.Object, _ ...client.GetOption) error {
	k := f.cluster.kind(out)
	if k == nil {
		return fmt.Errorf("%T is not cached", out)
	}
	found, ok, err := k.informer.GetIndexer().GetByKey(storeKey(key))
	if err != nil {
		return err
	}
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(found.(client.Object).DeepCopyObject()).Elem())
	return nil
}

func (f fakeCache) GetInformer(_ context.Context, obj client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	k := f.cluster.kind(obj)
	if k == nil {
		return nil, fmt.Errorf("%T is not cached", obj)
	}
	return countedInformer{k.informer, k}, nil
}

// hub is a runtime with its controllers, as a hub would run them.
type hub struct {
	*Runtime
	t        *testing.T
	ctx      context.Context
	cancel   context.CancelFunc
	registry *prometheus.Registry
	log      *recordingLog
	wg       sync.WaitGroup
}

// newHub makes a hub that is stopped when the test ends.
func newHub(t *testing.T, opts Options) *hub {
	t.Helper()
	h := &hub{t: t, registry: prometheus.NewRegistry(), log: &recordingLog{}}
	opts.Registerer, opts.Log = h.registry, slog.New(h.log)
	if opts.Workers == 0 {
		opts.Workers = 16
	}
	rt, err := NewRuntime(opts)
	if err != nil {
		t.Fatal(err)
	}
	h.Runtime = rt
	h.ctx, h.cancel = context.WithCancel(context.Background())
	t.Cleanup(h.stop)
	return h
}

func (h *hub) stop() {
	h.cancel()
	h.wg.Wait()
}

// launch registers a controller and starts it.
func launch[T client.Object](h *hub, b *Builder[T]) *Controller {
	h.t.Helper()
	c, err := b.Register()
	if err != nil {
		h.t.Fatal(err)
	}
	h.wg.Go(func() {
		if err := c.Start(h.ctx); err != nil {
			h.t.Errorf("controller %s stopped: %v", c.Name(), err)
		}
	})
	return c
}

// join engages a controller in a new member that has the given kinds; leave makes the member leave.
func (h *hub) join(c *Controller, name string, kinds ...client.Object) (cl *fakeCluster, leave func()) {
	h.t.Helper()
	ctx, cancel := context.WithCancel(h.ctx)
	cl = newFakeCluster(ctx, kinds...)
	h.engage(ctx, c, name, cl)
	return cl, cancel
}

func (h *hub) engage(ctx context.Context, c *Controller, name string, cl cluster.Cluster) {
	h.t.Helper()
	if err := c.Engage(ctx, multicluster.ClusterName(name), cl); err != nil {
		h.t.Fatal(err)
	}
}

// reconciler is a Reconciler of ConfigMaps made of a function.
type reconciler func(ctx context.Context, req Request[*corev1.ConfigMap]) (Result, error)

func (r reconciler) Reconcile(ctx context.Context, req Request[*corev1.ConfigMap]) (Result, error) {
	return r(ctx, req)
}

// calls records reconciles: who and when.
type calls struct {
	mu   sync.Mutex
	keys []string
	at   []time.Time
}

func (c *calls) add(member, name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys = append(c.keys, member+"/"+name)
	c.at = append(c.at, time.Now())
	return len(c.keys)
}

func (c *calls) list() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.keys...)
}

func (c *calls) count() int { return len(c.list()) }

// gaps are the times between calls.
func (c *calls) gaps() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	var gaps []time.Duration
	for i := 1; i < len(c.at); i++ {
		gaps = append(gaps, c.at[i].Sub(c.at[i-1]))
	}
	return gaps
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)}}
}

func deployment(name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

func keyOf(controller, member, name string) Key {
	return Key{Controller: controller, Member: member, NamespacedName: types.NamespacedName{Namespace: "default", Name: name}}
}

// recordingLog is a slog.Handler that keeps what is logged.
type recordingLog struct {
	mu    sync.Mutex
	lines []logLine
}

type logLine struct {
	level   slog.Level
	message string
	attrs   map[string]string
}

type boundLog struct {
	*recordingLog
	attrs []slog.Attr
}

func (l *recordingLog) Enabled(context.Context, slog.Level) bool { return true }
func (l *recordingLog) Handle(ctx context.Context, r slog.Record) error {
	return boundLog{recordingLog: l}.Handle(ctx, r)
}
func (l *recordingLog) WithAttrs(attrs []slog.Attr) slog.Handler { return boundLog{l, attrs} }
func (l *recordingLog) WithGroup(string) slog.Handler            { return l }

func (b boundLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return boundLog{b.recordingLog, append(append([]slog.Attr(nil), b.attrs...), attrs...)}
}

func (b boundLog) Handle(_ context.Context, r slog.Record) error {
	line := logLine{level: r.Level, message: r.Message, attrs: map[string]string{}}
	for _, a := range b.attrs {
		line.attrs[a.Key] = a.Value.String()
	}
	r.Attrs(func(a slog.Attr) bool {
		line.attrs[a.Key] = a.Value.String()
		return true
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, line)
	return nil
}

// at returns the lines of a level.
func (l *recordingLog) at(level slog.Level) []logLine {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []logLine
	for _, line := range l.lines {
		if line.level == level {
			found = append(found, line)
		}
	}
	return found
}

func kindOf(obj client.Object) clusters.Kind { return clusters.Kind{Object: obj} }
