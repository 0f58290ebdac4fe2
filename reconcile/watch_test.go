package reconcile

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
)

func TestAChangeOfAnOwnedObjectWakesItsOwner(t *testing.T) {
	controller, no := true, false
	for name, tc := range map[string]struct {
		kind, version string
		controller    *bool
		want          bool
	}{
		"core group":       {"ConfigMap", "v1", &controller, true},
		"another version":  {"ConfigMap", "v2", &controller, true},
		"another group":    {"ConfigMap", "example.com/v1", &controller, false},
		"broken version":   {"ConfigMap", "a/b/c", &controller, false},
		"another kind":     {"Secret", "v1", &controller, false},
		"not a controller": {"ConfigMap", "v1", &no, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, seen := newHub(t, Options{Resync: -1}), &calls{}
				c := launch(h, For(h.Runtime, "c", counting(seen)).Owns(kindOf(&appsv1.Deployment{})))
				a, _ := h.join(c, "a", &corev1.ConfigMap{}, &appsv1.Deployment{})
				a.add(configMap("owner"))
				synctest.Wait()
				child := deployment("child")
				child.OwnerReferences = ownedBy(tc.version, tc.kind, "owner", tc.controller)
				a.add(child)
				synctest.Wait()
				if woken := seen.count() == 2; woken != tc.want {
					t.Errorf("woken: %v, want %v", woken, tc.want)
				}
				h.cancel()
			})
		})
	}
}

func TestAnOwnerInAnotherGroupIsMatchedByItsGroup(t *testing.T) {
	child := configMap("child")
	child.OwnerReferences = ownedBy("apps/v1", "Deployment", "owner", ptrTo(true))
	if name, ok := object.ControllerOf(child, appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind()); !ok || name != "owner" {
		t.Errorf("owner %q, %v", name, ok)
	}
}

// nodes is a reconciler of a kind without namespaces.
type nodes struct{ seen *calls }

func (n nodes) Reconcile(_ context.Context, req Request[*corev1.Node]) (Result, error) {
	n.seen.add(req.Member, req.Object.Name)
	return Done(), nil
}

func TestAChangeOfAnOwnedObjectWakesAnOwnerWithoutANamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1}), &calls{}
		c := launch(h, For[*corev1.Node](h.Runtime, "c", nodes{seen}).Owns(kindOf(&corev1.ConfigMap{})))
		a, _ := h.join(c, "a", &corev1.Node{}, &corev1.ConfigMap{})
		a.add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
		synctest.Wait()
		child := configMap("child")
		child.OwnerReferences = ownedBy("v1", "Node", "n", ptrTo(true))
		a.add(child)
		synctest.Wait()
		if n := seen.count(); n != 2 {
			t.Errorf("%d reconciles, want 2", n)
		}
		h.cancel()
	})
}

func TestAMapperWakesKeysBeforeAndAfterAChangeAndMayPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1}), &calls{}
		mapper := func(_ context.Context, member *Member, obj client.Object) []types.NamespacedName {
			if obj.GetName() == "bad" {
				panic("mapper")
			}
			if member.Name != "a" || member.Reader == nil {
				t.Errorf("member %+v", member)
			}
			return []types.NamespacedName{{Namespace: "default", Name: obj.GetLabels()["wakes"]}}
		}
		c := launch(h, For(h.Runtime, "c", counting(seen)).Watches(kindOf(&appsv1.Deployment{}), mapper))
		a, _ := h.join(c, "a", &corev1.ConfigMap{}, &appsv1.Deployment{})
		for _, name := range []string{"one", "two", "three"} {
			a.add(configMap(name))
		}
		watched := deployment("watched")
		watched.Labels = map[string]string{"wakes": "one"}
		a.add(watched)
		a.add(deployment("bad"))
		synctest.Wait()
		before := seen.count()
		moved := watched.DeepCopy()
		moved.Labels["wakes"] = "two"
		a.modify(moved)
		synctest.Wait()
		woken := seen.list()[before:]
		slices.Sort(woken)
		if diff := cmp.Diff([]string{"a/one", "a/two"}, woken); diff != "" {
			t.Error(diff)
		}
		h.cancel()
	})
}

func TestAPredicateDropsEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1}), &calls{}
		c := launch(h, For(h.Runtime, "c", counting(seen)).Predicate(func(old, obj *corev1.ConfigMap) bool {
			return obj.Data["run"] == "yes" || old != nil && old.Data["run"] == "yes"
		}))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		for _, run := range []string{"no", "yes", "no", "no"} {
			cm := configMap("one")
			cm.Data = map[string]string{"run": run}
			a.modify(cm)
			synctest.Wait()
		}
		if n := seen.count(); n != 2 {
			t.Errorf("%d reconciles, want 2: when it became true and when it stopped", n)
		}
		h.cancel()
	})
}

func TestTheInformersResyncIsNotAChange(t *testing.T) {
	cm := configMap("one")
	cm.ResourceVersion = "7"
	if _, _, ok := object.Changed(cm, cm.DeepCopy()); ok {
		t.Error("an update without a change counts")
	}
	newer := cm.DeepCopy()
	newer.ResourceVersion = "8"
	if _, _, ok := object.Changed(cm, newer); !ok {
		t.Error("a change does not count")
	}
}

func TestNewsThatNoWatchShowsWakeAKeyThatIsKnownAndNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1}), &calls{}
		c := launch(h, For(h.Runtime, "c", counting(seen)))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("one"))
		synctest.Wait()
		c.Wake("a", inDefault("one"))
		c.Wake("a", inDefault("nobody"))
		c.Wake("nowhere", inDefault("one"))
		synctest.Wait()
		if diff := cmp.Diff([]string{"a/one", "a/one"}, seen.list()); diff != "" {
			t.Error(diff)
		}
		h.cancel()
	})
}
