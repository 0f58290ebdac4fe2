package reconcile

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
)

// indexedClient is a client whose lists know the indexes of a controller's kinds.
func indexedClient(c *Controller, objects ...client.Object) client.WithWatch {
	b := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...)
	for _, kind := range c.Kinds() {
		for name, extract := range kind.Indexes {
			b = b.WithIndex(kind.Object, name, extract)
		}
	}
	return b.Build()
}

func controlledBy(name, apiVersion, kind, owner string, uid types.UID) *appsv1.Deployment {
	d := deployment(name)
	d.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: owner, UID: uid, Controller: ptrTo(true)}}
	return d
}

func names(list []appsv1.Deployment) []string {
	var all []string
	for i := range list {
		all = append(all, list[i].Name)
	}
	slices.Sort(all)
	return all
}

func TestOwnedObjectsAreFoundByUIDAndKindInAnyVersion(t *testing.T) {
	rt, err := NewRuntime(Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := For(rt, "c", counting(&calls{})).Owns(kindOf(&appsv1.Deployment{})).Register()
	if err != nil {
		t.Fatal(err)
	}
	owner := configMap("owner")
	plain := controlledBy("not-a-controller", "v1", "ConfigMap", "owner", owner.UID)
	plain.OwnerReferences[0].Controller = nil
	foreign := controlledBy("lies-about-namespace", "v1", "ConfigMap", "owner", owner.UID)
	foreign.Namespace = "elsewhere"
	cl := indexedClient(c, foreign,
		controlledBy("core", "v1", "ConfigMap", "owner", owner.UID),
		controlledBy("other-version", "v7beta1", "ConfigMap", "owner", owner.UID),
		controlledBy("same-name", "v1", "ConfigMap", "owner", "uid-of-a-predecessor"),
		controlledBy("lies-about-kind", "v1", "Secret", "owner", owner.UID),
		controlledBy("lies-about-group", "example.com/v1", "ConfigMap", "owner", owner.UID),
		plain, deployment("alone"))
	req := Request[*corev1.ConfigMap]{Member: "a", Object: owner, Client: cl}
	var owned appsv1.DeploymentList
	if err := req.ListOwned(t.Context(), &owned); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"core", "other-version"}, names(owned.Items)); diff != "" {
		t.Error(diff)
	}
	if err := req.ListOwned(t.Context(), &owned, client.InNamespace("elsewhere")); err != nil || len(owned.Items) > 0 {
		t.Errorf("another namespace: %v, %v", names(owned.Items), err)
	}
	if err := req.ListOwned(t.Context(), &owned, client.InNamespace(metav1.NamespaceAll)); err != nil || len(owned.Items) != 2 {
		t.Errorf("all namespaces: %v, %v", names(owned.Items), err)
	}
	var byUID appsv1.DeploymentList
	if err := cl.List(t.Context(), &byUID, ownedByUID(owner.UID)); err != nil {
		t.Fatal(err)
	}
	if len(byUID.Items) != 5 {
		t.Errorf("by UID alone: %v, want all five that name it", names(byUID.Items))
	}
}

func TestListingOwnedObjectsNamesItsCulprit(t *testing.T) {
	rt, err := NewRuntime(Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := For(rt, "c", counting(&calls{})).Uses(kindOf(&appsv1.Deployment{})).Register()
	if err != nil {
		t.Fatal(err)
	}
	req := Request[*corev1.ConfigMap]{Member: "prod", Object: configMap("owner"), Client: indexedClient(c)}
	err = req.ListOwned(t.Context(), &appsv1.DeploymentList{})
	if err == nil || !strings.Contains(err.Error(), "member prod: list owned *v1.DeploymentList: the controller does not Own the kind") {
		t.Errorf("a kind that is not owned: %v", err)
	}
	req.Object = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "made-up", Namespace: "default"}}
	if err = req.ListOwned(t.Context(), &appsv1.DeploymentList{}); err == nil || !strings.Contains(err.Error(), "default/made-up has no UID") {
		t.Errorf("an object without UID: %v", err)
	}
}

func byApp(obj client.Object) []string { return []string{obj.GetLabels()["app"]} }
func byTier(obj client.Object) []string {
	return []string{obj.GetLabels()["tier"]}
}

func TestADeclaredIndexIsInTheKind(t *testing.T) {
	rt, err := NewRuntime(Options{})
	if err != nil {
		t.Fatal(err)
	}
	own := clusters.Kind{Object: &corev1.ConfigMap{}, Indexes: map[string]client.IndexerFunc{"own": byTier}}
	first, err := For(rt, "first", counting(&calls{})).Kind(own).Uses(kindOf(&appsv1.Deployment{})).
		Index(&appsv1.Deployment{}, "app", byApp).Index(&corev1.ConfigMap{}, "app", byApp).Register()
	if err != nil {
		t.Fatal(err)
	}
	second, err := For(rt, "second", counting(&calls{})).Owns(kindOf(&appsv1.Deployment{})).
		Index(&appsv1.Deployment{}, "app", byApp).Register()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clusters.MergeKinds(first.Kinds(), second.Kinds()); err != nil {
		t.Errorf("two controllers with the same index: %v", err)
	}
	if len(own.Indexes) != 1 {
		t.Errorf("the caller's kind was changed: %v", own.Indexes)
	}
	front := deployment("front")
	front.Labels = map[string]string{"app": "shop"}
	cl := indexedClient(first, front, deployment("back"))
	var list appsv1.DeploymentList
	if err := cl.List(t.Context(), &list, client.MatchingFields{"app": "shop"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"front"}, names(list.Items)); diff != "" {
		t.Error(diff)
	}
}

func TestAWrongIndexNamesItsCulprit(t *testing.T) {
	rt, err := NewRuntime(Options{})
	if err != nil {
		t.Fatal(err)
	}
	build := func(name string) *Builder[*corev1.ConfigMap] {
		return For(rt, name, counting(&calls{})).Uses(kindOf(&appsv1.Deployment{}))
	}
	if _, err := build("first").Index(&appsv1.Deployment{}, "app", byApp).Register(); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		b    *Builder[*corev1.ConfigMap]
		want string
	}{
		"kind":     {build("c").Index(&corev1.Pod{}, "app", byApp), `Index(*v1.Pod, "app"): the controller has no such kind`},
		"function": {build("c").Index(&appsv1.Deployment{}, "app", nil), `Index(*v1.Deployment, "app"): the function is nil`},
		"object":   {build("c").Index(nil, "app", byApp), `Index("app"): the object is nil`},
		"reserved": {build("c").Index(&appsv1.Deployment{}, object.ControllerIndex, byApp), `must not be empty or begin with "plimsoll.dev/"`},
		"twice": {build("c").Index(&corev1.ConfigMap{}, "x", byApp).Index(&corev1.ConfigMap{}, "x", byApp),
			`Index(*v1.ConfigMap, "x"): the kind has an index of this name already`},
		"another's": {build("c").Index(&appsv1.Deployment{}, "app", byTier), `controller "first" declares another index of this name`},
	} {
		if _, err := tc.b.Register(); err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), `controller "c"`) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

func TestAnIndexFunctionThatPanicsFindsNothingAndHurtsNobody(t *testing.T) {
	h := newHub(t, Options{})
	c, err := For(h.Runtime, "c", counting(&calls{})).Index(&corev1.ConfigMap{}, "broken", func(obj client.Object) []string {
		return []string{obj.GetAnnotations()["x"][7:]}
	}).Register()
	if err != nil {
		t.Fatal(err)
	}
	if values := c.Kinds()[0].Indexes["broken"](configMap("short")); len(values) > 0 {
		t.Errorf("found by %v", values)
	}
	lines := h.log.at(levelError)
	if len(lines) != 1 || lines[0].message != "index function panicked" {
		t.Errorf("log %v", lines)
	}
}
