package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
)

func TestAPredicateThatPanicsCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1}), &calls{}
		c := launch(h, For(h.Runtime, "c", counting(seen)).Predicate(func(_, now *corev1.ConfigMap) bool {
			return now.Labels["tier"][0] == 'x' // one object without the label is enough
		}))
		cl, _ := h.join(c, "a", &corev1.ConfigMap{})
		cl.add(configMap("one"))
		synctest.Wait()
		if seen.count() != 1 {
			t.Errorf("%d reconciles, want one: what a predicate cannot judge is looked at", seen.count())
		}
		if n := h.value("plimsoll_reconcile_panics_total", "controller=c", "member=a"); n != 1 {
			t.Errorf("the metric says %v", n)
		}
		h.cancel()
	})
}

// meter is a kind with an integer in its status.
type meter struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Status            meterStatus `json:"status,omitempty"`
}

type meterStatus struct {
	Status `json:",inline"`
	Bytes  int64 `json:"bytes,omitempty"`
}

func (m *meter) CommonStatus() *Status          { return &m.Status.Status }
func (m *meter) DeepCopyObject() runtime.Object { out := *m; return &out }

func TestLargeIntegersInAStatusAreWrittenExactly(t *testing.T) {
	before, after := &meter{}, &meter{}
	before.Status.Bytes, after.Status.Bytes = 1<<53, 1<<53+1
	body, err := statusPatch(before, before, after)
	const want = `{"metadata":{"resourceVersion":""},"status":{"bytes":9007199254740993}}`
	if string(body) != want || err != nil {
		t.Errorf("%s, %v; want %s", body, err, want)
	}
}

func TestAnyIntegerInAStatusIsWrittenExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := &meter{}, &meter{}
		before.Status.Bytes, after.Status.Bytes = rapid.Int64().Draw(t, "before"), rapid.Int64().Draw(t, "after")
		body, err := statusPatch(before, before, after)
		if err != nil {
			t.Fatal(err)
		}
		was, err := json.Marshal(before)
		if err != nil {
			t.Fatal(err)
		}
		if len(body) > 0 {
			if was, err = jsonpatch.MergePatch(was, body); err != nil {
				t.Fatal(err)
			}
		}
		var got meter
		if err := json.Unmarshal(was, &got); err != nil || got.Status.Bytes != after.Status.Bytes {
			t.Fatalf("%d, %v; want %d by %s", got.Status.Bytes, err, after.Status.Bytes, body)
		}
	})
}

// tidy has nothing to clean up.
type tidy struct{ reconciler }

func (tidy) Finalize(context.Context, Request[*corev1.ConfigMap]) (FinalizeResult, error) {
	return CleanedUp(), nil
}

func TestAFinalizerThatWasRefusedIsTriedAgain(t *testing.T) {
	for name, deleting := range map[string]bool{"to be put on": false, "to be taken off": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var refuse atomic.Bool
				h := newHub(t, Options{Scheme: gadgetScheme})
				c := launch(h, For(h.Runtime, "c", tidy{counting(&calls{})}))
				s := newPlant(h.ctx, t, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
					if refuse.Load() {
						return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, obj.GetName(), nil)
					}
					return c.Patch(ctx, obj, p, opts...)
				}}, &corev1.ConfigMap{})
				h.engage(h.ctx, c, "a", s)
				synctest.Wait()
				refuse.Store(!deleting)
				s.create(configMap("one"))
				if deleting {
					refuse.Store(true)
					remove[*corev1.ConfigMap](s, "one")
				}
				time.Sleep(10 * time.Second)
				if r, _ := h.Lookup(keyOf("c", "a", "one")); r.LastOutcome != OutcomeTerminal || r.State != StateWaiting {
					t.Errorf("%s, %s, want it to wait for another try", r.State, r.LastOutcome)
				}
				refuse.Store(false) // the right is given back, and no event says so
				time.Sleep(2 * defaultStalledRetry)
				s.follow()
				cm, there := read[*corev1.ConfigMap](s, "one")
				if deleting && there || !deleting && !slices.Contains(cm.Finalizers, ourFinalizer) {
					t.Errorf("it was not tried again; there: %t", there)
				}
				h.cancel()
			})
		})
	}
}

// untypedCleaner is the same for a kind without a Go type.
type untypedCleaner struct{}

func (untypedCleaner) Reconcile(context.Context, Request[*unstructured.Unstructured]) (Result, error) {
	return Done(), nil
}

func (untypedCleaner) Finalize(context.Context, Request[*unstructured.Unstructured]) (FinalizeResult, error) {
	return CleanedUp(), nil
}

func TestAFinalizerOfAnUntypedKindSurvivesAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{Scheme: gadgetScheme, Resync: -1})
		untyped := &unstructured.Unstructured{}
		untyped.SetGroupVersionKind(settingsKind)
		c, err := For(h.Runtime, "c", untypedCleaner{}).Kind(kindOf(untyped)).Register()
		if err != nil {
			t.Fatal(err)
		}
		conflicts := 1
		s := newPlant(h.ctx, t, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			if conflicts > 0 {
				conflicts--
				return apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, obj.GetName(), errors.New("changed"))
			}
			return c.Patch(ctx, obj, p, opts...)
		}}, &corev1.ConfigMap{})
		s.create(configMap("one"))
		work := &adapter[*unstructured.Unstructured]{controller: c, reconciler: untypedCleaner{}, primary: &primary{finalizer: ourFinalizer}}
		obj := object.Empty[*unstructured.Unstructured](settingsKind)
		if err := s.GetClient().Get(t.Context(), inDefault("one"), obj); err != nil {
			t.Fatal(err)
		}
		held, err := work.setFinalizer(t.Context(), &engagement{cluster: s}, obj, true)
		if err != nil || !slices.Contains(held.GetFinalizers(), ourFinalizer) {
			t.Errorf("finalizers %v, %v", held.GetFinalizers(), err)
		}
		h.cancel()
	})
}

// forgetful keeps something about objects elsewhere.
type forgetful struct{ reconciler }

func (forgetful) Forget(context.Context, string, types.NamespacedName) {}

func TestADetachedMembersLedgerLosesWhatIsDeletedThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1}), &calls{}
		release := make(chan struct{})
		c := launch(h, For(h.Runtime, "c", forgetful{func(_ context.Context, req Request[*corev1.ConfigMap]) (Result, error) {
			seen.add(req.Member, req.Object.Name)
			if req.Object.Name == "running" {
				<-release
			}
			return Done(), nil
		}}))
		cl, _ := h.join(c, "a", &corev1.ConfigMap{})
		for _, name := range []string{"before", "after", "running", "stays"} {
			cl.add(configMap(name))
		}
		synctest.Wait()
		h.Hold("a", HoldBreaker, "it does not answer")
		cl.remove(configMap("before"))
		h.Detach("a", "it burnt down")
		cl.remove(configMap("after"))
		cl.remove(configMap("running"))
		close(release)
		synctest.Wait()
		var left []string
		for r := range h.Records("a") {
			left = append(left, r.Key.Name)
		}
		if !slices.Equal(left, []string{"stays"}) {
			t.Errorf("the ledger has %v, and only \"stays\" is there", left)
		}
		h.cancel()
	})
}

func TestAReplicaThatStopsTakesNoOrders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{Resync: -1})
		c := launch(h, For(h.Runtime, "c", counting(&calls{})))
		cl, _ := h.join(c, "a", &corev1.ConfigMap{})
		cl.add(configMap("one"))
		synctest.Wait()
		h.Retire("this replica stops")
		if _, err := h.Requeue(keyOf("c", "a", "one")); !errors.Is(err, ErrRetired) {
			t.Errorf("an order that never runs gets an operation: %v", err)
		}
		if reason, held := h.Held("a"); !held || reason != "this replica stops" {
			t.Errorf("held: %t, because %q", held, reason)
		}
		h.cancel()
	})
}
