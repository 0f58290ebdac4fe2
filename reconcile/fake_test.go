package reconcile

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	framework "k8s.io/client-go/tools/cache/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
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

// newFakeCluster creates a cluster that has the given kinds until ctx ends.
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
	go func() {
		k.informer.RunWithContext(c.ctx)
		k.source.Broadcaster.Shutdown() // not the source's own: it stays locked, and may lock the informer in
	}()
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
	found, ok, err := k.informer.GetIndexer().GetByKey(object.StoreKey(key))
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
