package inprocess

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	spotreport "github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp"
	v1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
)

const (
	ledgerEach      = 1000 // WebApps of each member
	ledgerNamespace = "shops"
)

var ledgerMembers = []string{"alpha", "beta", "gamma"}

// Ledger measures what the hub keeps of a WebApp beyond its cached objects. The real controller works in this process on
// three members, which share a cache that is filled before: so the heap that is live afterwards, less the heap that was live
// before, is the ledger with its timers, the memory of what was applied, the dependencies and their facts, and what the
// informers keep for the handlers. Each WebApp waits for a Secret of its own. What spot placement keeps of its Deployment, which
// is not to be placed, is a second record, and counted.
func Ledger(ctx context.Context, b Bench) error {
	site, err := newLedgerSite(ctx)
	if err != nil {
		return err
	}
	defer site.stop()
	empty := heap()
	ctx, cancel := context.WithCancel(ctx)
	rt, ended, err := site.work(ctx)
	if err != nil {
		cancel()
		return err
	}
	err = site.rest(ctx, rt)
	full := heap()
	runtime.KeepAlive(rt)
	cancel()
	for range cap(ended) {
		err = errors.Join(err, <-ended)
	}
	if err != nil {
		return err
	}
	kilobytes := float64(full-empty) / 1000 / float64(ledgerEach*len(ledgerMembers))
	b.Report.Record("webapp-ledger-kb", kilobytes)
	return nil
}

// heap is what is live.
func heap() uint64 {
	var stats runtime.MemStats
	for range 3 { // what has finalizers, and what pools keep for one collection more, goes later
		runtime.GC()
	}
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// A ledgerSite is a cluster in memory, with WebApps that have all that they consist of.
type ledgerSite struct {
	*frameworkSite
	scheme *apiruntime.Scheme
}

func newLedgerSite(ctx context.Context) (*ledgerSite, error) {
	s := &ledgerSite{frameworkSite: &frameworkSite{}, scheme: apiruntime.NewScheme()}
	if err := errors.Join(scheme.AddToScheme(s.scheme), v1.AddToScheme(s.scheme)); err != nil {
		return nil, err
	}
	objects := newLedgerObjects()
	mapper := meta.NewDefaultRESTMapper(nil)
	for gvk := range s.scheme.AllKnownTypes() {
		mapper.Add(gvk, meta.RESTScopeNamespace)
	}
	config := &rest.Config{Host: "https://nowhere.invalid"}
	var err error
	s.cache, err = cache.New(config, cache.Options{Scheme: s.scheme, Mapper: mapper, NewInformer: objects.informer})
	if err != nil {
		return nil, fmt.Errorf("create the cache: %w", err)
	}
	for _, kind := range ledgerKinds() {
		if _, err := s.cache.GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
			return nil, fmt.Errorf("informer: %w", err)
		}
	}
	reader, err := client.New(config, client.Options{Scheme: s.scheme, Mapper: mapper, Cache: &client.CacheOptions{Reader: s.cache}})
	if err != nil {
		return nil, fmt.Errorf("create the client: %w", err)
	}
	s.client = agreeing{reader}
	ctx, s.cancel = context.WithCancel(ctx)
	s.done.Go(func() { _ = s.cache.Start(ctx) }) // fails only when it is started twice
	if !s.cache.WaitForCacheSync(ctx) {
		s.stop()
		return nil, errors.New("the cache was not filled")
	}
	return s, nil
}

func ledgerKinds() []client.Object {
	return []client.Object{
		&v1.WebApp{}, &appsv1.Deployment{}, &corev1.Service{}, &corev1.ServiceAccount{}, &corev1.Namespace{},
		&policyv1.PodDisruptionBudget{}, &autoscalingv2.HorizontalPodAutoscaler{},
	}
}

func (s *ledgerSite) GetScheme() *apiruntime.Scheme { return s.scheme }
func (s *ledgerSite) WatchClient() client.WithWatch { return secretsOnly{} }
func (s *ledgerSite) GetAPIReader() client.Reader   { return secretsOnly{} }

// work starts the controllers in all members. They have ended when each has said how.
func (s *ledgerSite) work(ctx context.Context) (*reconcile.Runtime, chan error, error) {
	rt, err := reconcile.NewRuntime(reconcile.Options{Scheme: s.scheme, Log: frameworkLog(), Registerer: prometheus.NewRegistry()})
	if err != nil {
		return nil, nil, err
	}
	keys := policy.Keys{Prefix: policy.DefaultPrefix}
	webApps, err := (&webapp.Reconciler{Keys: keys, Placer: nobody{}}).Register(rt, webapp.Schedule{})
	if err != nil {
		return nil, nil, err
	}
	placement, err := reconcile.For(rt, spot.DeploymentController, nothing{}).Register()
	if err != nil {
		return nil, nil, err
	}
	controllers := []*reconcile.Controller{webApps, placement}
	ended := make(chan error, len(controllers))
	for _, controller := range controllers {
		for _, name := range ledgerMembers {
			if err := controller.Engage(ctx, multicluster.ClusterName(name), s); err != nil {
				return nil, nil, err
			}
		}
		go func() { ended <- controller.Start(ctx) }()
	}
	return rt, ended, nil
}

// rest waits until every WebApp and every Deployment was looked at, and none is about to be.
func (s *ledgerSite) rest(ctx context.Context, rt *reconcile.Runtime) error {
	for {
		at := 0
		for record := range rt.Records("") {
			if record.Runs > 0 && record.LastOutcome == reconcile.OutcomeDone && record.State == reconcile.StateIdle {
				at++
			}
		}
		if at == 2*ledgerEach*len(ledgerMembers) {
			return nil
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ledgerObjects are what is cached, by kind.
type ledgerObjects map[string][]apiruntime.Object

// newLedgerObjects are WebApps, and what they consist of.
func newLedgerObjects() ledgerObjects {
	all := ledgerObjects{}
	add := func(object client.Object, owner *v1.WebApp) {
		object.SetUID(types.UID(fmt.Sprintf("%T-%s", object, object.GetName())))
		object.SetResourceVersion("1")
		if owner != nil {
			object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, v1.GroupVersion.WithKind(v1.Kind))})
		}
		kind := fmt.Sprintf("%T", object)
		all[kind] = append(all[kind], object)
	}
	add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ledgerNamespace}}, nil)
	for i := range ledgerEach {
		app := WebApp(ledgerNamespace, WebAppName(i))
		app.Generation = 1
		app.Spec.EnvFrom = []v1.EnvFrom{{Secret: secretName(i)}}
		app.Spec.SetDefaults()
		add(app, nil)
		desired := webapp.Desire(app, policy.Keys{Prefix: policy.DefaultPrefix}, true)
		desired.Deployment.Generation = 1
		desired.Deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
		for _, object := range append(slices.Clone(desired.Others), desired.Deployment) {
			add(object, app)
		}
	}
	return all
}

func secretName(i int) string { return fmt.Sprint("settings-of-shop-", i) }

// informer makes an informer whose list is in memory and whose watch is silent.
func (o ledgerObjects) informer(_ toolscache.ListerWatcher, obj apiruntime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	listed := &toolscache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (apiruntime.Object, error) {
			list := &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
			for _, object := range o[fmt.Sprintf("%T", obj)] {
				list.Items = append(list.Items, apiruntime.RawExtension{Object: object})
			}
			return list, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
	}
	return toolscache.NewSharedIndexInformer(withoutStreams{listed}, obj, resync, indexers)
}

// agreeing is a client whose member does what it is asked, and whose cache does not show it.
type agreeing struct{ client.Client }

// Apply answers as an API server does that has stored another version.
func (a agreeing) Apply(_ context.Context, config apiruntime.ApplyConfiguration, _ ...client.ApplyOption) error {
	config.(interface{ SetResourceVersion(version string) }).SetResourceVersion("2")
	return nil
}

func (a agreeing) Status() client.SubResourceWriter { return agreeingStatus{} }

type agreeingStatus struct{ client.SubResourceWriter }

func (agreeingStatus) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return nil
}

// secretsOnly is a member's API server that has every Secret that is asked for, and nothing else.
type secretsOnly struct{ client.WithWatch }

func (secretsOnly) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	object.SetName(key.Name)
	object.SetNamespace(key.Namespace)
	object.SetResourceVersion("1")
	return nil
}

func (secretsOnly) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	list, ok := into.(*metav1.PartialObjectMetadataList)
	if !ok {
		return fmt.Errorf("list %T: only names and versions of Secrets are known", into)
	}
	list.ResourceVersion = "1"
	for i := range ledgerEach {
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: ledgerNamespace, Name: secretName(i), ResourceVersion: fmt.Sprint(1000 + i),
		}})
	}
	return nil
}

func (secretsOnly) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	return watch.NewFake(), nil
}

// nobody knows where replicas are.
type nobody struct{}

func (nobody) Summary(string, string, string, string) (spotreport.Workload, bool) {
	return spotreport.Workload{}, false
}

func (nobody) Notify(func(member, kind, namespace, name string)) {}

// nothing is to be done about a Deployment that is not to be placed.
type nothing struct{}

func (nothing) Reconcile(context.Context, reconcile.Request[*appsv1.Deployment]) (reconcile.Result, error) {
	return reconcile.Done(), nil
}

// WebApp is a small WebApp: one replica of one container behind a headless Service.
func WebApp(namespace, name string) *v1.WebApp {
	app := &v1.WebApp{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	app.Spec.Replicas = new(int32(1))
	app.Spec.Service = &v1.Service{Headless: true} // the testbed has 254 Service addresses
	app.Spec.Containers = []v1.Container{{Name: "web", Image: "shop:1", Ports: []v1.Port{{Name: "http", ContainerPort: 8080}}}}
	return app
}

// WebAppName names the i-th WebApp.
func WebAppName(i int) string { return fmt.Sprint("shop-", i) }
