package inprocess

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile"
)

const (
	frameworkKeys    = 100_000
	frameworkRounds  = 15 // pairs that count, after one that does not
	frameworkWorkers = 10 // of either side, the framework's own default for a member
	ownerField       = "owner"
)

// Framework compares what the framework makes of the machine with what a bare controller-runtime controller does: in this
// process, in turns, over one cache. The cache is controller-runtime's own, with its indexes; what fills it is a list in
// memory instead of an API server, which neither side asks for anything. A round is from the moment at which a controller is
// started over a filled cache, through handlers, queue and workers, to the end of the last of 100,000 reconciles, each of
// which reads its Deployment and lists the ReplicaSets that it controls, and writes nothing.
func Framework(ctx context.Context, b Bench) error {
	log.SetLogger(logr.Discard())
	site, err := newFrameworkSite(ctx)
	if err != nil {
		return err
	}
	defer site.stop()
	var ratios, processor, ours, bares []float64
	for round := range frameworkRounds + 1 {
		var framework, bare spent
		for i := range 2 { // who is first changes
			if (round+i)%2 == 0 {
				framework, err = site.round(ctx, site.frameworkSide)
			} else {
				bare, err = site.round(ctx, site.bareSide)
			}
			if err != nil {
				return err
			}
		}
		b.Logf("framework %.0f keys/s, bare %.0f keys/s", framework.rate(), bare.rate())
		if round == 0 {
			continue
		}
		ours, bares = append(ours, framework.rate()), append(bares, bare.rate())
		ratios = append(ratios, framework.rate()/bare.rate())
		processor = append(processor, framework.cpu.Seconds()/bare.cpu.Seconds())
	}
	b.Report.Record("framework-overhead-percent", max(100*(1-middle(ratios)), 0))
	b.Report.Note("framework: medians of %d rounds of %d keys: %.0f keys/s, bare controller-runtime %.0f keys/s, ratio %.3f (%.3f to %.3f); "+
		"it takes %.3f of the processor time", frameworkRounds, frameworkKeys, middle(ours), middle(bares),
		middle(ratios), slices.Min(ratios), slices.Max(ratios), middle(processor))
	return nil
}

// spent is what one round took.
type spent struct{ time, cpu time.Duration }

func (s spent) rate() float64 { return frameworkKeys / s.time.Seconds() }

func middle(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

// A frameworkSite is a cluster in memory: a filled cache, and a client that reads from it.
type frameworkSite struct {
	cluster.Cluster // nil: nothing else of it is used

	cache  cache.Cache
	client client.Client
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func (s *frameworkSite) GetCache() cache.Cache         { return s.cache }
func (s *frameworkSite) GetClient() client.Client      { return s.client }
func (s *frameworkSite) GetAPIReader() client.Reader   { return s.client }
func (s *frameworkSite) GetScheme() *apiruntime.Scheme { return scheme.Scheme }

func newFrameworkSite(ctx context.Context) (*frameworkSite, error) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), meta.RESTScopeNamespace)
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), meta.RESTScopeNamespace)
	config := &rest.Config{Host: "https://nowhere.invalid"}
	filled, err := cache.New(config, cache.Options{Scheme: scheme.Scheme, Mapper: mapper, NewInformer: listedInMemory})
	if err != nil {
		return nil, fmt.Errorf("create the cache: %w", err)
	}
	s := &frameworkSite{cache: filled}
	if err := filled.IndexField(ctx, &appsv1.ReplicaSet{}, ownerField, byOwner); err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	if _, err := filled.GetInformer(ctx, &appsv1.Deployment{}, cache.BlockUntilSynced(false)); err != nil {
		return nil, fmt.Errorf("informer: %w", err)
	}
	if s.client, err = client.New(config, client.Options{Scheme: scheme.Scheme, Mapper: mapper, Cache: &client.CacheOptions{Reader: filled}}); err != nil {
		return nil, fmt.Errorf("create the client: %w", err)
	}
	ctx, s.cancel = context.WithCancel(ctx)
	s.done.Go(func() { _ = filled.Start(ctx) }) // fails only when it is started twice
	if !filled.WaitForCacheSync(ctx) {
		s.stop()
		return nil, errors.New("the cache was not filled")
	}
	return s, nil
}

func (s *frameworkSite) stop() {
	s.cancel()
	s.done.Wait()
}

// round lets one side reconcile every key once, and returns how long it took.
func (s *frameworkSite) round(ctx context.Context, side func(done func()) (func(context.Context) error, error)) (spent, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var count atomic.Int64
	finished := make(chan struct{})
	done := func() {
		if count.Add(1) == frameworkKeys {
			close(finished)
		}
	}
	start, err := side(done)
	if err != nil {
		return spent{}, err
	}
	runtime.GC()
	began, cpu := time.Now(), ownCPU()
	ended := make(chan error, 1)
	go func() { ended <- start(ctx) }()
	select {
	case <-finished:
		took := spent{time: time.Since(began), cpu: ownCPU() - cpu}
		cancel()
		return took, <-ended
	case err := <-ended:
		return spent{}, fmt.Errorf("a round ended after %d keys: %w", count.Load(), errors.Join(err, ctx.Err()))
	}
}

// measured is the work of either side beyond reading the object: one indexed list.
type measured struct{ done func() }

// Reconcile implements reconcile.Reconciler.
func (m measured) Reconcile(ctx context.Context, req reconcile.Request[*appsv1.Deployment]) (reconcile.Result, error) {
	defer m.done()
	var owned appsv1.ReplicaSetList
	return reconcile.Done(), req.Client.List(ctx, &owned, ownedBy(req.Object)...)
}

// ownedBy is the indexed list of both sides.
func ownedBy(d *appsv1.Deployment) []client.ListOption {
	return []client.ListOption{client.InNamespace(d.Namespace), client.MatchingFields{ownerField: string(d.UID)}}
}

func byOwner(obj client.Object) []string {
	if owner := metav1.GetControllerOfNoCopy(obj); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}

func newFrameworkSide(done func()) (*reconcile.Controller, error) {
	rt, err := reconcile.NewRuntime(reconcile.Options{WorkersPerMember: frameworkWorkers, Resync: -1, Log: frameworkLog(), Registerer: prometheus.NewRegistry()})
	if err != nil {
		return nil, err
	}
	return reconcile.For(rt, "measured", measured{done}).Workers(frameworkWorkers).
		Uses(clusters.Kind{Object: &appsv1.ReplicaSet{}}).Index(&appsv1.ReplicaSet{}, ownerField, byOwner).Register()
}

func (s *frameworkSite) frameworkSide(done func()) (start func(context.Context) error, err error) {
	c, err := newFrameworkSide(done)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		if err := c.Engage(ctx, "member", s); err != nil {
			return err
		}
		return c.Start(ctx)
	}, nil
}

func (s *frameworkSite) bareSide(done func()) (start func(context.Context) error, err error) {
	logger := logr.FromSlogHandler(frameworkLog().Handler()).WithValues("controller", "measured", "controllerGroup", "apps", "controllerKind", "Deployment")
	c, err := controller.NewTypedUnmanaged("measured", controller.TypedOptions[ctrlreconcile.Request]{
		MaxConcurrentReconciles: frameworkWorkers, SkipNameValidation: ptr.To(true),
		LogConstructor: func(req *ctrlreconcile.Request) logr.Logger { // as controller-runtime's builder makes it
			if req == nil {
				return logger
			}
			return logger.WithValues("Deployment", klog.KRef(req.Namespace, req.Name)).WithValues("namespace", req.Namespace, "name", req.Name)
		},
		Reconciler: ctrlreconcile.Func(func(ctx context.Context, req ctrlreconcile.Request) (ctrlreconcile.Result, error) {
			defer done()
			var d appsv1.Deployment
			if err := s.client.Get(ctx, req.NamespacedName, &d); err != nil {
				return ctrlreconcile.Result{}, err
			}
			var owned appsv1.ReplicaSetList
			return ctrlreconcile.Result{}, s.client.List(ctx, &owned, ownedBy(&d)...)
		}),
	})
	if err != nil {
		return nil, err
	}
	return c.Start, c.Watch(source.Kind(s.cache, &appsv1.Deployment{}, &handler.TypedEnqueueRequestForObject[*appsv1.Deployment]{}))
}

// frameworkLog is the log of both sides, which as in the hub is JSON, and goes nowhere.
func frameworkLog() *slog.Logger { return slog.New(slog.NewJSONHandler(io.Discard, nil)) }

// listedInMemory makes an informer whose list is in memory and whose watch is silent.
func listedInMemory(_ toolscache.ListerWatcher, obj apiruntime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	listed := &toolscache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (apiruntime.Object, error) {
			if _, owned := obj.(*appsv1.ReplicaSet); owned {
				return replicaSets(), nil
			}
			return deployments(), nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
	}
	return toolscache.NewSharedIndexInformer(withoutStreams{listed}, obj, resync, indexers)
}

// withoutStreams has the list listed.
type withoutStreams struct{ *toolscache.ListWatch }

// IsWatchListSemanticsUnSupported implements what client-go asks.
func (withoutStreams) IsWatchListSemanticsUnSupported() bool { return true }

func deployments() *appsv1.DeploymentList {
	list := &appsv1.DeploymentList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: make([]appsv1.Deployment, frameworkKeys)}
	for i := range list.Items {
		labels := map[string]string{"app.kubernetes.io/name": fmt.Sprint("app-", i), "app.kubernetes.io/part-of": "shop"}
		list.Items[i] = appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: fmt.Sprint("team-", i%100), Name: fmt.Sprint("app-", i), UID: types.UID(fmt.Sprint("uid-", i)), ResourceVersion: "1",
				Labels: labels,
			},
			Spec: appsv1.DeploymentSpec{
				Replicas: ptr.To[int32](3), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: podTemplate(labels),
			},
		}
	}
	return list
}

func replicaSets() *appsv1.ReplicaSetList {
	list := &appsv1.ReplicaSetList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: make([]appsv1.ReplicaSet, frameworkKeys)}
	for i := range list.Items {
		labels := map[string]string{"app.kubernetes.io/name": fmt.Sprint("app-", i), "pod-template-hash": "5d4f8c7b9"}
		list.Items[i] = appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: fmt.Sprint("team-", i%100), Name: fmt.Sprintf("app-%d-5d4f8c7b9", i), ResourceVersion: "1", Labels: labels,
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: "apps/v1", Kind: "Deployment", Name: fmt.Sprint("app-", i), UID: types.UID(fmt.Sprint("uid-", i)),
					Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
				}},
			},
			Spec: appsv1.ReplicaSetSpec{
				Replicas: ptr.To[int32](3), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: podTemplate(labels),
			},
		}
	}
	return list
}

// podTemplate is that of a service of one container.
func podTemplate(labels map[string]string) corev1.PodTemplateSpec {
	cpu, memory := resource.MustParse("250m"), resource.MustParse("256Mi")
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "app", Image: "registry.example.com/shop/app:1.2.3", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
			Env:       []corev1.EnvVar{{Name: "STAGE", Value: "prod"}, {Name: "REGION", Value: "eu"}},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory}},
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
				HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)},
			}},
		}}},
	}
}

// ownCPU is the processor time that this process has taken.
func ownCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
