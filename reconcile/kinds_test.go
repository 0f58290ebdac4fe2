package reconcile

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
)

// gadget is a kind whose status the framework keeps.
type gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              gadgetSpec   `json:"spec,omitempty"`
	Status            gadgetStatus `json:"status,omitempty"`
}

type gadgetSpec struct {
	Size int32 `json:"size,omitempty"`
}

type gadgetStatus struct {
	Status `json:",inline"`
	Size   int32             `json:"size,omitempty"`
	Parts  map[string]string `json:"parts,omitempty"`
}

func (g *gadget) CommonStatus() *Status { return &g.Status.Status }

func (g *gadget) DeepCopyObject() runtime.Object {
	out := *g
	g.DeepCopyInto(&out.ObjectMeta)
	g.Status.DeepCopyInto(&out.Status.Status)
	if g.Status.Parts != nil {
		out.Status.Parts = map[string]string{}
		for k, v := range g.Status.Parts {
			out.Status.Parts[k] = v
		}
	}
	return &out
}

type gadgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []gadget `json:"items"`
}

func (l *gadgetList) DeepCopyObject() runtime.Object {
	out := &gadgetList{TypeMeta: l.TypeMeta, ListMeta: l.ListMeta}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*gadget))
	}
	return out
}

var (
	gadgetVersion = schema.GroupVersion{Group: "test.plimsoll.dev", Version: "v1"}
	gadgetScheme  = func() *runtime.Scheme {
		s := runtime.NewScheme()
		utilruntime.Must(clientgoscheme.AddToScheme(s))
		s.AddKnownTypes(gadgetVersion, &gadget{}, &gadgetList{})
		metav1.AddToGroupVersion(s, gadgetVersion)
		return s
	}()
)

func newGadget(name string) *gadget {
	return &gadget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), Generation: 1}}
}

// gadgets is a reconciler of gadgets made of a function.
type gadgets func(ctx context.Context, req Request[*gadget]) (Result, error)

func (f gadgets) Reconcile(ctx context.Context, req Request[*gadget]) (Result, error) {
	return f(ctx, req)
}

// A plant is a member in which what is written comes back through the cache, when the test lets it.
type plant struct {
	*fakeCluster

	t    *testing.T
	live client.WithWatch // its API server, which a test may also change as somebody else
	held chan struct{}    // nil: the cache follows
}

// newPlant creates a member with these kinds, whose requests go through funcs first.
func newPlant(ctx context.Context, t *testing.T, funcs interceptor.Funcs, kinds ...client.Object) *plant {
	t.Helper()
	s := &plant{t: t, live: fake.NewClientBuilder().WithScheme(gadgetScheme).WithStatusSubresource(&gadget{}).WithReturnManagedFields().Build()}
	s.fakeCluster = &fakeCluster{ctx: ctx, kinds: map[reflect.Type]*fakeKind{}}
	for _, kind := range kinds {
		s.serve(kind)
	}
	s.client = cachedClient{interceptor.NewClient(s.live, funcs), s}
	return s
}

// serve has a kind cached.
func (s *plant) serve(obj client.Object) {
	gvks, _, err := gadgetScheme.ObjectKinds(obj)
	if err != nil {
		s.t.Fatal(err)
	}
	gvk := gvks[0]
	newList := func() client.ObjectList {
		list, err := gadgetScheme.New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err != nil {
			s.t.Fatal(err)
		}
		return list.(client.ObjectList)
	}
	source := &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			list := newList()
			return list, s.live.List(ctx, list)
		},
		WatchFuncWithContext: func(ctx context.Context, _ metav1.ListOptions) (apiwatch.Interface, error) {
			from, err := s.live.Watch(ctx, newList())
			if err != nil {
				return nil, err
			}
			return s.delayed(from), nil
		},
	}
	k := &fakeKind{gone: make(chan struct{})}
	k.informer = toolscache.NewSharedIndexInformer(listThenWatch{source}, obj, 0, toolscache.Indexers{object.ControllerIndex: func(obj any) ([]string, error) {
		return object.ControllerUID(obj.(client.Object)), nil
	}})
	go k.informer.RunWithContext(s.ctx)
	synctest.Wait()
	s.kinds[reflect.TypeOf(obj)] = k
}

// listThenWatch keeps informers from asking for a watch that begins with a list, which the fake API server has not.
type listThenWatch struct{ *toolscache.ListWatch }

func (listThenWatch) IsWatchListSemanticsUnSupported() bool { return true }

// lag keeps what happens from now on from the cache; follow ends it.
func (s *plant) lag() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		s.held = make(chan struct{})
	}
}

func (s *plant) follow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held != nil {
		close(s.held)
		s.held = nil
	}
}

// following is closed when the cache follows.
func (s *plant) following() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held != nil {
		return s.held
	}
	open := make(chan struct{})
	close(open)
	return open
}

// delayed is a watch that stands still while the cache lags.
func (s *plant) delayed(from apiwatch.Interface) apiwatch.Interface {
	c := make(chan apiwatch.Event)
	out := apiwatch.NewProxyWatcher(c)
	go func() {
		defer from.Stop()
		defer close(c)
		for {
			select {
			case e, ok := <-from.ResultChan():
				if !ok {
					return
				}
				select {
				case <-s.following():
				case <-s.ctx.Done():
					return
				case <-out.StopChan():
					return
				}
				select {
				case c <- e:
				case <-s.ctx.Done():
					return
				case <-out.StopChan():
					return
				}
			case <-s.ctx.Done():
				return
			case <-out.StopChan():
				return
			}
		}
	}()
	return out
}

// cachedClient reads typed objects from the cache, as a member's client does.
type cachedClient struct {
	client.Client
	site *plant
}

func (c cachedClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if c.site.kind(obj) == nil {
		return c.Client.Get(ctx, key, obj, opts...)
	}
	return c.site.GetCache().Get(ctx, key, obj, opts...)
}

func (s *plant) GetAPIReader() client.Reader { return s.live }

// create, read and change are what somebody else does.
func (s *plant) create(obj client.Object) {
	s.t.Helper()
	if err := s.live.Create(context.Background(), obj); err != nil {
		s.t.Fatal(err)
	}
	synctest.Wait()
}

func read[T client.Object](s *plant, name string) (obj T, ok bool) {
	s.t.Helper()
	obj = object.New[T]()
	err := s.live.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: name}, obj)
	if client.IgnoreNotFound(err) != nil {
		s.t.Fatal(err)
	}
	return obj, err == nil
}

func mustRead[T client.Object](s *plant, name string) T {
	s.t.Helper()
	obj, ok := read[T](s, name)
	if !ok {
		s.t.Fatalf("%T %s does not exist", obj, name)
	}
	return obj
}

func change[T client.Object](s *plant, name string, f func(T)) {
	s.t.Helper()
	obj := mustRead[T](s, name)
	f(obj)
	if err := s.live.Update(context.Background(), obj); err != nil {
		s.t.Fatal(err)
	}
	synctest.Wait()
}

func changeStatus(s *plant, name string, f func(*gadget)) {
	s.t.Helper()
	obj := mustRead[*gadget](s, name)
	f(obj)
	if err := s.live.Status().Update(context.Background(), obj); err != nil {
		s.t.Fatal(err)
	}
	synctest.Wait()
}

func remove[T client.Object](s *plant, name string) {
	s.t.Helper()
	if err := s.live.Delete(context.Background(), mustRead[T](s, name)); err != nil {
		s.t.Fatal(err)
	}
	synctest.Wait()
}

// condition is a gadget's condition in short: "True/Succeeded: message"; empty when it is absent.
func condition(g *gadget, kind string) string {
	c := meta.FindStatusCondition(g.Status.Conditions, kind)
	if c == nil {
		return ""
	}
	s := string(c.Status) + "/" + c.Reason
	if c.Message != "" {
		s += ": " + c.Message
	}
	return s
}

// inPlant runs a test of a controller of gadgets in one member.
func inPlant(t *testing.T, build func(h *hub) *Builder[*gadget], test func(t *testing.T, h *hub, s *plant)) {
	t.Helper()
	inPlantWith(t, interceptor.Funcs{}, build, test)
}

func inPlantWith(t *testing.T, funcs interceptor.Funcs, build func(h *hub) *Builder[*gadget], test func(t *testing.T, h *hub, s *plant)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{Resync: -1, Scheme: gadgetScheme})
		c := launch(h, build(h))
		s := newPlant(h.ctx, t, funcs, &gadget{}, &corev1.ConfigMap{})
		h.engage(h.ctx, c, "a", s)
		synctest.Wait()
		test(t, h, s)
		s.follow()
		h.cancel()
	})
}

func gadgetRecord(h *hub, name string) Record {
	r, _ := h.Lookup(keyOf("c", "a", name))
	return r
}

var noFaults interceptor.Funcs

// failing makes a reconciler that records its calls and always fails.
func failing(c *calls) reconciler {
	return func(_ context.Context, req Request[*corev1.ConfigMap]) (Result, error) {
		c.add(req.Member, req.Object.Name)
		return Done(), errors.New("broken")
	}
}
