package reconciletest

import (
	"context"
	"errors"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/plimsoll-dev/plimsoll/clusters"
)

// member is a cluster whose API server is controller-runtime's fake: its cache is never behind. It does not count
// generations, run admission, or collect garbage.
type member struct {
	cluster.Cluster // nil: nothing else of it is used
	journal

	scheme *runtime.Scheme
}

func newMember(scheme *runtime.Scheme, kinds []clusters.Kind, given []client.Object, fail []Failure) (m *member, err error) {
	b := fake.NewClientBuilder().WithScheme(scheme)
	for _, kind := range kinds {
		for name, extract := range kind.Indexes {
			b = b.WithIndex(kind.Object, name, extract)
		}
	}
	m = &member{scheme: scheme}
	m.store = fake.NewClientBuilder().WithScheme(scheme).Build() // knows kinds, until there is the real one
	subjects := append([]client.Object{}, given...)
	for i := range kinds {
		subjects = append(subjects, kinds[i].Object)
	}
	b = b.WithStatusSubresource(withStatus(subjects)...)
	for _, obj := range given {
		obj = obj.DeepCopyObject().(client.Object)
		if _, err := m.store.GroupVersionKindFor(obj); err != nil {
			return nil, err
		}
		m.identify(obj)
		b = b.WithObjects(obj)
	}
	defer func() { // the fake does not return what it finds wrong with an object
		if p := recover(); p != nil {
			m, err = nil, errors.New(strings.TrimSpace(toText(p)))
		}
	}()
	m.store = b.Build()
	for i := range fail {
		m.failures = append(m.failures, &failure{Failure: fail[i]})
	}
	return m, nil
}

func toText(p any) string {
	if err, ok := p.(error); ok {
		return err.Error()
	}
	return reflect.ValueOf(p).String()
}

// withStatus are objects of the kinds that have a status, one of each.
func withStatus(objects []client.Object) (some []client.Object) {
	seen := map[reflect.Type]bool{}
	for _, obj := range objects {
		t := reflect.TypeOf(obj)
		if seen[t] || t.Elem().Kind() != reflect.Struct {
			continue
		}
		seen[t] = true
		if _, has := t.Elem().FieldByName("Status"); has {
			some = append(some, obj)
		}
	}
	return some
}

// GetClient returns the client whose calls are noted.
func (m *member) GetClient() client.Client { return m.client() }

// GetAPIReader returns a live reader.
func (m *member) GetAPIReader() client.Reader { return m.client() }

// GetScheme returns the scheme.
func (m *member) GetScheme() *runtime.Scheme { return m.scheme }

// GetRESTMapper returns the fake's.
func (m *member) GetRESTMapper() meta.RESTMapper { return m.store.RESTMapper() }

// GetCache returns a cache that always shows what there is.
func (m *member) GetCache() cache.Cache { return memberCache{reader: m.client()} }

// WatchClient returns the client for what objects depend on; its calls are no business of a case.
func (m *member) WatchClient() client.WithWatch { return dependencyClient{m.store} }

// memberCache reads from the API server.
type memberCache struct {
	cache.Cache // nil: nothing else of it is used
	reader      client.Reader
}

func (c memberCache) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return c.reader.Get(ctx, key, obj, opts...)
}

func (c memberCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.reader.List(ctx, list, opts...)
}

// dependencyClient lists and watches as a real API server does what the fake cannot: field selectors are dropped, as more
// is returned than was asked for, and watches send what their list is made of.
type dependencyClient struct{ client.WithWatch }

// List lists without field selectors.
func (c dependencyClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.WithWatch.List(ctx, list, anyField(opts))
}

// Watch watches without field selectors.
func (c dependencyClient) Watch(ctx context.Context, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	w, err := c.WithWatch.Watch(ctx, list, anyField(opts))
	if err != nil {
		return nil, err
	}
	gvk := list.GetObjectKind().GroupVersionKind()
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	_, whole := list.(*unstructured.UnstructuredList)
	return watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
		obj, ok := e.Object.(client.Object)
		if ok {
			e.Object, ok = itemOf(gvk, whole, obj)
		}
		return e, ok
	}), nil
}

func itemOf(gvk schema.GroupVersionKind, whole bool, obj client.Object) (runtime.Object, bool) {
	if !whole {
		m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: obj.GetNamespace(), Name: obj.GetName(), ResourceVersion: obj.GetResourceVersion(),
		}}
		m.SetGroupVersionKind(gvk)
		return m, true
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	u := &unstructured.Unstructured{Object: fields}
	if err == nil {
		u.SetGroupVersionKind(gvk)
	}
	return u, err == nil
}

func anyField(opts []client.ListOption) client.ListOption {
	var o client.ListOptions
	o.ApplyOptions(opts)
	return &client.ListOptions{Namespace: o.Namespace, LabelSelector: o.LabelSelector}
}
