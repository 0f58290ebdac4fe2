package reconcile

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/plimsoll-dev/plimsoll/clusters"
)

// hub is a runtime with its controllers, as a hub would run them.
type hub struct {
	*Runtime
	t        *testing.T
	ctx      context.Context
	cancel   context.CancelFunc
	registry *prometheus.Registry
	log      *recordingLog
	wg       sync.WaitGroup

	recorders chan Recorder // of eventHub: those of further objects
}

// newHub creates a hub that is stopped when the test ends.
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

// first is when the first call was.
func (c *calls) first() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at[0]
}

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

func kindOf(obj client.Object) clusters.Kind { return clusters.Kind{Object: obj} }

// counting makes a reconciler that records its calls and is always done.
func counting(c *calls) reconciler {
	return func(_ context.Context, req Request[*corev1.ConfigMap]) (Result, error) {
		c.add(req.Member, req.Object.Name)
		return Done(), nil
	}
}
