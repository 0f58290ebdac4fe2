package reconcile

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

func TestAnEventOfAnOwnedOrWatchedKindCountsWhenItsPredicatesSaySo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1}), &calls{}
		grown := When(func(old, now client.Object) bool {
			if now.GetName() == "bad" {
				panic("predicate")
			}
			return old == nil || now.GetGeneration() > old.GetGeneration()
		})
		labelled := When(func(_, now client.Object) bool { return now.GetLabels()["ignored"] == "" })
		toOne := func(context.Context, *Member, client.Object) []types.NamespacedName {
			return []types.NamespacedName{{Namespace: "default", Name: "one"}}
		}
		c := launch(h, For(h.Runtime, "c", counting(seen)).Owns(kindOf(&appsv1.Deployment{}), grown, labelled).Watches(kindOf(&corev1.Secret{}), toOne, labelled))
		a, _ := h.join(c, "a", &corev1.ConfigMap{}, &appsv1.Deployment{}, &corev1.Secret{})
		a.add(configMap("one"))
		owned := deployment("owned")
		owned.OwnerReferences = ownedBy("v1", "ConfigMap", "one", ptrTo(true))
		a.add(owned)
		synctest.Wait()
		step := func(what string, wakes bool, do func()) {
			t.Helper()
			before := seen.count()
			do()
			synctest.Wait()
			if n := seen.count() - before; (n > 0) != wakes {
				t.Errorf("%s: %d reconciles; it wakes the key: want %v", what, n, wakes)
			}
		}
		step("a status", false, func() { d := owned.DeepCopy(); d.Status.Replicas = 3; a.modify(d) })
		step("a new generation", true, func() { d := owned.DeepCopy(); d.Generation++; a.modify(d) })
		step("a label that is ignored", false, func() {
			d := owned.DeepCopy()
			d.Generation, d.Labels = 9, map[string]string{"ignored": "yes"}
			a.modify(d)
		})
		step("a predicate that panics", true, func() {
			bad := deployment("bad")
			bad.OwnerReferences = owned.OwnerReferences
			a.add(bad)
		})
		secret := &corev1.Secret{}
		secret.Namespace, secret.Name, secret.Labels = "default", "s", map[string]string{"ignored": "yes"}
		step("a watched object that is ignored", false, func() { a.add(secret) })
		step("one that is gone", true, func() { a.remove(secret) })
		h.cancel()
	})
}

func TestAnyOwnerWakesThoseThatDoNotControl(t *testing.T) {
	for name, test := range map[string]struct {
		options []WatchOption
		want    []string
	}{
		"controllers": {nil, []string{"a/one"}},
		"any owner":   {[]WatchOption{AnyOwner()}, []string{"a/one", "a/two"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, seen := newHub(t, Options{Resync: -1}), &calls{}
				c := launch(h, For(h.Runtime, "c", counting(seen)).Owns(kindOf(&appsv1.Deployment{}), test.options...))
				a, _ := h.join(c, "a", &corev1.ConfigMap{}, &appsv1.Deployment{})
				for _, name := range []string{"one", "two", "three"} {
					a.add(configMap(name))
				}
				synctest.Wait()
				before := seen.count()
				shared := deployment("shared")
				shared.OwnerReferences = slices.Concat(ownedBy("v1", "ConfigMap", "one", ptrTo(true)), ownedBy("v1", "ConfigMap", "two", nil),
					ownedBy("example.com/v1", "ConfigMap", "three", nil), ownedBy("v1", "Secret", "three", nil))
				a.add(shared)
				synctest.Wait()
				woken := seen.list()[before:]
				slices.Sort(woken)
				if diff := cmp.Diff(test.want, woken); diff != "" {
					t.Error(diff)
				}
				h.cancel()
			})
		})
	}
	rt, err := NewRuntime(Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = For(rt, "c", counting(&calls{})).Watches(kindOf(&corev1.Node{}), func(context.Context, *Member, client.Object) []types.NamespacedName { return nil }, AnyOwner()).Register()
	if err == nil || !strings.Contains(err.Error(), "AnyOwner is for Owns") {
		t.Errorf("AnyOwner on a watched kind: %v", err)
	}
}

func TestARequestsLoggerNamesControllerMemberAndObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{Resync: -1})
		c := launch(h, For(h.Runtime, "c", reconciler(func(ctx context.Context, req Request[*corev1.ConfigMap]) (Result, error) {
			req.Log.With("more", "yes").Info("with more")
			req.Log.Info("seen")
			ctrllog.FromContext(ctx).Info("seen by a library")
			return Done(), nil
		})))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("one"))
		synctest.Wait()
		h.cancel()
		want := map[string]string{"controller": "c", "member": "a", "namespace": "default", "name": "one"}
		for message, want := range map[string]map[string]string{"seen": want, "seen by a library": want, "with more": {"controller": "c", "member": "a", "namespace": "default", "name": "one", "more": "yes"}} {
			lines := h.log.at(slog.LevelInfo)
			i := slices.IndexFunc(lines, func(line logLine) bool { return line.message == message })
			if i < 0 {
				t.Fatalf("%q was not logged", message)
			}
			if diff := cmp.Diff(want, lines[i].attrs); diff != "" {
				t.Error(diff)
			}
		}
	})
}

func TestAControllersMarksAreOfItsAuthorsDomain(t *testing.T) {
	rt, err := NewRuntime(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for domain, want := range map[string]marks{
		"":            {"plimsoll.dev/c", "plimsoll-c", "applied.plimsoll.dev/c"},
		"example.com": {"example.com/c", "c.example.com", "applied.example.com/c"},
	} {
		b := For(rt, "c", counting(&calls{}))
		if domain != "" {
			b.Domain(domain)
		}
		if is := b.marks(); is != want {
			t.Errorf("domain %q: %+v, want %+v", domain, is, want)
		}
	}
	for _, domain := range []string{"", "Example", "a/b"} {
		if _, err := For(rt, "d", counting(&calls{})).Domain(domain).Register(); err == nil || !strings.Contains(err.Error(), "must be a DNS name") {
			t.Errorf("domain %q: %v", domain, err)
		}
	}
}

// What a controller leaves in a member is found by its author's names, and by no others.
func TestAControllerWritesUnderItsAuthorsDomain(t *testing.T) {
	work := cleaner{
		gadgets: func(ctx context.Context, req Request[*gadget]) (Result, error) {
			made := &corev1.ConfigMap{Data: map[string]string{"size": "1"}}
			made.Namespace, made.Name = "default", "made"
			_, err := req.Apply(ctx, made)
			return Done(), err
		},
		finalize: func(context.Context, Request[*gadget]) (FinalizeResult, error) { return CleanedUp(), nil },
	}
	inPlant(t, func(h *hub) *Builder[*gadget] {
		return For[*gadget](h.Runtime, "c", work).Domain("example.com").Owns(kindOf(&corev1.ConfigMap{}))
	}, func(t *testing.T, _ *hub, s *plant) {
		s.create(newGadget("one"))
		if g := mustRead[*gadget](s, "one"); !slices.Equal(g.Finalizers, []string{"example.com/c"}) {
			t.Errorf("the finalizers are %v", g.Finalizers)
		}
		made := mustRead[*corev1.ConfigMap](s, "made")
		if len(made.Annotations) != 1 || made.Annotations["applied.example.com/c"] == "" {
			t.Errorf("the annotations are %v", made.Annotations)
		}
		if len(made.ManagedFields) != 1 || made.ManagedFields[0].Manager != "c.example.com" {
			t.Errorf("the fields are managed by %v", made.ManagedFields)
		}
	})
}
