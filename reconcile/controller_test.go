package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/plimsoll-dev/plimsoll/clusters"
)

// counting makes a reconciler that records its calls and is always done.
func counting(c *calls) reconciler {
	return func(_ context.Context, req Request[*corev1.ConfigMap]) (Result, error) {
		c.add(req.Member, req.Object.Name)
		return Done(), nil
	}
}

func TestAReconcilerSeesEveryObjectOfEveryMemberAndItsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1}), &calls{}
		c := launch(h, For(h.Runtime, "c", counting(seen)))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		b, _ := h.join(c, "b", &corev1.ConfigMap{})
		a.add(configMap("one"))
		b.add(configMap("one"))
		synctest.Wait()
		changed := configMap("one")
		changed.Data = map[string]string{"k": "v"}
		b.modify(changed)
		synctest.Wait()
		got := seen.list()
		slices.Sort(got)
		if diff := cmp.Diff([]string{"a/one", "b/one", "b/one"}, got); diff != "" {
			t.Error(diff)
		}
		r, ok := h.Lookup(keyOf("c", "b", "one"))
		if !ok || r.State != StateIdle || r.LastOutcome != OutcomeDone || r.Runs != 2 || r.LastEnded.IsZero() {
			t.Errorf("record %+v", r)
		}
		h.cancel()
	})
}

func TestTheRequestCarriesACopyThatMayBeChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{Resync: -1})
		c := launch(h, For(h.Runtime, "c", reconciler(func(_ context.Context, req Request[*corev1.ConfigMap]) (Result, error) {
			if req.Client == nil || req.Live == nil || req.Events == nil {
				t.Error("the request lacks a client, a live reader or a recorder")
			}
			req.Object.Data["k"] = "changed"
			return Done(), nil
		})))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		cm := configMap("one")
		cm.Data = map[string]string{"k": "v"}
		a.add(cm)
		synctest.Wait()
		var cached corev1.ConfigMap
		if err := a.GetCache().Get(t.Context(), client.ObjectKeyFromObject(cm), &cached); err != nil || cached.Data["k"] != "v" {
			t.Errorf("the cache holds %v, %v: the reconciler's change must not reach it", cached.Data, err)
		}
		h.cancel()
	})
}

func TestErrorsBackOffWithGrowingDelays(t *testing.T) {
	for name, answer := range map[string]func() (Result, error){
		"error":   func() (Result, error) { return Done(), errors.New("broken") },
		"requeue": func() (Result, error) { return Requeue("not yet"), nil },
		"panic":   func() (Result, error) { panic("oops") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, seen := newHub(t, Options{}), &calls{}
				c := launch(h, For(h.Runtime, "c", reconciler(func(_ context.Context, req Request[*corev1.ConfigMap]) (Result, error) {
					seen.add(req.Member, req.Object.Name)
					return answer()
				})))
				a, _ := h.join(c, "a", &corev1.ConfigMap{})
				a.add(configMap("one"))
				for seen.count() < 14 {
					time.Sleep(time.Minute)
				}
				middle := backoffFirst
				for i, gap := range seen.gaps() {
					if d := gap - middle; d < -middle/10 || d > middle/10 {
						t.Errorf("delay %d is %v, want %v give or take a tenth", i, gap, middle)
					}
					middle = min(2*middle, backoffMost)
				}
				r, _ := h.Lookup(keyOf("c", "a", "one"))
				if r.State != StateWaiting || r.Attempts != seen.count() || r.NextTry.Before(time.Now()) || r.Reason == "" {
					t.Errorf("record %+v after %d attempts", r, seen.count())
				}
				h.cancel()
			})
		})
	}
}

func TestAChangeEndsABackOffAndSuccessForgetsTheFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{Resync: -1})
		var broken atomic.Bool
		broken.Store(true)
		c := launch(h, For(h.Runtime, "c", reconciler(func(context.Context, Request[*corev1.ConfigMap]) (Result, error) {
			if broken.Load() {
				return Done(), errors.New("broken")
			}
			return Done(), nil
		})))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("one"))
		time.Sleep(time.Minute)
		broken.Store(false)
		a.modify(configMap("one"))
		synctest.Wait() // no time passes
		r, _ := h.Lookup(keyOf("c", "a", "one"))
		if r.State != StateIdle || r.Attempts != 0 || r.LastError != "" || r.LastOutcome != OutcomeDone {
			t.Errorf("record %+v, want it done without a trace of failures", r)
		}
		h.cancel()
	})
}

func TestATerminalErrorWaitsForAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{}), &calls{}
		c := launch(h, For(h.Runtime, "c", reconciler(func(_ context.Context, req Request[*corev1.ConfigMap]) (Result, error) {
			seen.add(req.Member, req.Object.Name)
			return Done(), fmt.Errorf("reading it: %w", TerminalError(errors.New("never valid")))
		})))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("one"))
		time.Sleep(time.Hour)
		if n := seen.count(); n != 1 {
			t.Errorf("%d reconciles, want 1 until something changes", n)
		}
		r, _ := h.Lookup(keyOf("c", "a", "one"))
		if r.LastOutcome != OutcomeTerminal || r.State != StateIdle || r.Attempts != 1 {
			t.Errorf("record %+v", r)
		}
		a.modify(configMap("one"))
		synctest.Wait()
		if n := seen.count(); n != 2 {
			t.Errorf("%d reconciles after a change, want 2", n)
		}
		h.cancel()
	})
}

func TestRequeueAfterLooksAgainAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{}), &calls{}
		c := launch(h, For(h.Runtime, "c", reconciler(func(_ context.Context, req Request[*corev1.ConfigMap]) (Result, error) {
			seen.add(req.Member, req.Object.Name)
			return RequeueAfter(7*time.Second, "cooling down"), nil
		})))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("one"))
		synctest.Wait()
		r, _ := h.Lookup(keyOf("c", "a", "one"))
		if r.State != StateWaiting || r.Reason != "cooling down" || r.LastOutcome != OutcomeRequeue || r.Attempts != 0 {
			t.Errorf("record %+v", r)
		}
		time.Sleep(time.Minute)
		for _, gap := range seen.gaps() {
			if gap.Round(time.Millisecond) != 7*time.Second {
				t.Errorf("looked again after %v, want 7s", gap)
			}
		}
		if n := seen.count(); n != 9 {
			t.Errorf("%d reconciles in a minute, want 9", n)
		}
		h.cancel()
	})
}

func TestResyncLooksAgainInTheBackgroundAlsoAtKeysThatWaitForLater(t *testing.T) {
	for name, result := range map[string]Result{"done": Done(), "later": RequeueAfter(24*time.Hour, "window")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, seen := newHub(t, Options{}), &calls{}
				c := launch(h, For(h.Runtime, "c", reconciler(func(_ context.Context, req Request[*corev1.ConfigMap]) (Result, error) {
					seen.add(req.Member, req.Object.Name)
					if r, _ := h.Lookup(keyOf("c", "a", "one")); r.Band != BandBackground || r.State != StateRunning {
						t.Errorf("record %+v, want it running in the background band", r)
					}
					return result, nil
				})).Resync(20*time.Second))
				a := newFakeCluster(h.ctx)
				a.install(&corev1.ConfigMap{}, configMap("one"))
				h.engage(h.ctx, c, "a", a)
				time.Sleep(10 * time.Minute)
				if n := seen.count(); n < 27 || n > 34 {
					t.Errorf("%d looks in 10 minutes, want about 30", n)
				}
				same := true
				for _, gap := range seen.gaps() {
					same = same && gap == seen.gaps()[0]
				}
				if same {
					t.Error("resyncs have no jitter")
				}
				h.cancel()
			})
		})
	}
}

func TestAChangeDuringAReconcileRunsTheKeyAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1}), &calls{}
		proceed := make(chan struct{})
		c := launch(h, For(h.Runtime, "c", reconciler(func(_ context.Context, req Request[*corev1.ConfigMap]) (Result, error) {
			seen.add(req.Member, req.Object.Data["k"])
			<-proceed
			return Done(), nil
		})))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		cm := configMap("one")
		a.add(cm)
		synctest.Wait()
		changed := cm.DeepCopy()
		changed.Data = map[string]string{"k": "new"}
		a.modify(changed)
		synctest.Wait()
		if n := seen.count(); n != 1 {
			t.Fatalf("%d reconciles of one key at once", n)
		}
		close(proceed)
		synctest.Wait()
		if diff := cmp.Diff([]string{"a/", "a/new"}, seen.list()); diff != "" {
			t.Error(diff)
		}
		h.cancel()
	})
}

func TestAReconcileEndsAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{Resync: -1})
		c := launch(h, For(h.Runtime, "c", reconciler(func(ctx context.Context, _ Request[*corev1.ConfigMap]) (Result, error) {
			<-ctx.Done()
			return Done(), ctx.Err()
		})).Deadline(3*time.Second))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("one"))
		time.Sleep(2 * time.Second)
		if r, _ := h.Lookup(keyOf("c", "a", "one")); r.State != StateRunning {
			t.Fatalf("record %+v, want it running", r)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		r, _ := h.Lookup(keyOf("c", "a", "one"))
		if r.State != StateWaiting || r.LastOutcome != OutcomeTimeout || r.Attempts != 1 {
			t.Errorf("record %+v, want a missed deadline that is retried", r)
		}
		h.cancel()
	})
}

func TestAPanicIsCaughtCountedLoggedAndRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{Resync: -1})
		c := launch(h, For(h.Runtime, "c", reconciler(func(_ context.Context, req Request[*corev1.ConfigMap]) (Result, error) {
			if req.Object.Name == "bad" {
				panic("an index out of somewhere")
			}
			return Done(), nil
		})).Workers(1))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("bad"))
		synctest.Wait()
		a.add(configMap("good"))
		synctest.Wait()
		bad, _ := h.Lookup(keyOf("c", "a", "bad"))
		if bad.LastOutcome != OutcomePanic || bad.State != StateWaiting || !strings.Contains(bad.LastError, "index out of somewhere") {
			t.Errorf("record %+v", bad)
		}
		if good, _ := h.Lookup(keyOf("c", "a", "good")); good.LastOutcome != OutcomeDone {
			t.Errorf("record %+v: the worker did not survive the panic", good)
		}
		if n := h.value("plimsoll_reconcile_panics_total", "controller=c", "member=a"); n != 1 {
			t.Errorf("%v panics counted, want 1", n)
		}
		var stacks int
		for _, line := range h.log.at(levelError) {
			if strings.Contains(line.attrs["stack"], "controller_test.go") {
				stacks++
			}
		}
		if stacks != 1 {
			t.Errorf("%d stacks logged, want 1", stacks)
		}
		h.cancel()
	})
}

func TestAFailureIsOneLogLineThatSaysWhatAndWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{Resync: -1})
		c := launch(h, For(h.Runtime, "c", reconciler(func(context.Context, Request[*corev1.ConfigMap]) (Result, error) {
			return Done(), errors.New("the reason")
		})))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("one"))
		synctest.Wait()
		lines := h.log.at(levelError)
		if len(lines) != 1 {
			t.Fatalf("%d lines, want 1: %v", len(lines), lines)
		}
		if _, err := time.Parse(time.RFC3339Nano, strings.Split(lines[0].attrs["nextTry"], " +")[0]); lines[0].attrs["nextTry"] == "" {
			t.Errorf("no nextTry: %v", err)
		}
		delete(lines[0].attrs, "nextTry")
		want := map[string]string{"controller": "c", "member": "a", "namespace": "default", "name": "one", "outcome": "error",
			"attempt": "1", "error": "the reason"}
		if diff := cmp.Diff(want, lines[0].attrs); diff != "" {
			t.Error(diff)
		}
		h.cancel()
	})
}

// forgetter is a reconciler that is told of objects that are gone.
type forgetter struct {
	reconciler
	forgotten *calls
}

func (f forgetter) Forget(_ context.Context, member string, key types.NamespacedName) {
	f.forgotten.add(member, key.Name)
}

func TestADeletedObjectIsForgottenByReconcilerAndLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen, forgotten := newHub(t, Options{}), &calls{}, &calls{}
		c := launch(h, For[*corev1.ConfigMap](h.Runtime, "c", forgetter{counting(seen), forgotten}))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("one"))
		synctest.Wait()
		a.remove(configMap("one"))
		synctest.Wait()
		if diff := cmp.Diff([]string{"a/one"}, forgotten.list()); diff != "" {
			t.Error(diff)
		}
		if r, ok := h.Lookup(keyOf("c", "a", "one")); ok {
			t.Errorf("%+v is still in the ledger", r)
		}
		time.Sleep(time.Hour)
		if n := seen.count(); n < 1 || forgotten.count() != 1 {
			t.Errorf("%d reconciles, %d times forgotten", n, forgotten.count())
		}
		h.cancel()
	})
}

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
	if name, ok := controllerOf(child, appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind()); !ok || name != "owner" {
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
	if _, _, ok := changed(cm, cm.DeepCopy()); ok {
		t.Error("an update without a change counts")
	}
	newer := cm.DeepCopy()
	newer.ResourceVersion = "8"
	if _, _, ok := changed(cm, newer); !ok {
		t.Error("a change does not count")
	}
}

func TestAMissingKindJoinsLaterWithoutARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1}), &calls{}
		c := launch(h, For(h.Runtime, "c", counting(seen)).Uses(kindOf(&appsv1.Deployment{})))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		whole, _ := h.join(c, "whole", &corev1.ConfigMap{}, &appsv1.Deployment{})
		a.add(configMap("one"))
		whole.add(configMap("one"))
		synctest.Wait()
		if diff := cmp.Diff([]string{"whole/one"}, seen.list()); diff != "" {
			t.Fatal(diff)
		}
		a.install(&appsv1.Deployment{})
		for range 3 { // as often as anything changes about the member
			h.engage(h.ctx, c, "a", a)
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"whole/one", "a/one"}, seen.list()); diff != "" {
			t.Error(diff)
		}
		if n := a.handlers(&corev1.ConfigMap{}); n != 1 {
			t.Errorf("%d handlers after engaging three times, want 1", n)
		}
		h.cancel()
	})
}

func TestAKindThatGoesEndsTheEngagementUntilItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{}), &calls{}
		c := launch(h, For(h.Runtime, "c", counting(seen)).Uses(kindOf(&appsv1.Deployment{})))
		a, _ := h.join(c, "a", &corev1.ConfigMap{}, &appsv1.Deployment{})
		a.add(configMap("one"))
		synctest.Wait()
		a.uninstall(&appsv1.Deployment{})
		synctest.Wait()
		if len(c.Members()) != 0 || a.handlers(&corev1.ConfigMap{}) != 0 {
			t.Errorf("members %v, %d handlers: want no trace", c.Members(), a.handlers(&corev1.ConfigMap{}))
		}
		for r := range h.Records("") {
			t.Errorf("%+v is still in the ledger", r)
		}
		before := seen.count()
		time.Sleep(time.Hour)
		if seen.count() != before {
			t.Error("reconciled over stale data")
		}
		a.install(&appsv1.Deployment{})
		h.engage(h.ctx, c, "a", a)
		synctest.Wait()
		if seen.count() != before+1 {
			t.Errorf("%d reconciles since the kind is back, want 1", seen.count()-before)
		}
		h.cancel()
	})
}

func TestAKindThatIsBackBeforeAnybodyNoticedItsLossIsFollowedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1}), &calls{}
		c := launch(h, For(h.Runtime, "c", counting(seen)))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		synctest.Wait()
		a.uninstall(&corev1.ConfigMap{})
		a.install(&corev1.ConfigMap{})
		h.engage(h.ctx, c, "a", a)
		a.add(configMap("one"))
		synctest.Wait()
		if seen.count() != 1 {
			t.Errorf("%d reconciles, want 1", seen.count())
		}
		h.cancel()
	})
}

func TestAnOptionalKindComesAndGoesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1}), &calls{}
		c := launch(h, For(h.Runtime, "c", counting(seen)).Owns(clusters.Kind{Object: &appsv1.Deployment{}, Optional: true}))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("owner"))
		synctest.Wait()
		child := deployment("child")
		child.OwnerReferences = ownedBy("v1", "ConfigMap", "owner", ptrTo(true))
		for round := 1; round <= 2; round++ {
			a.install(&appsv1.Deployment{})
			h.engage(h.ctx, c, "a", a)
			synctest.Wait()
			a.add(child)
			synctest.Wait()
			if n := seen.count(); n != 1+round {
				t.Errorf("round %d: %d reconciles, want %d", round, n, 1+round)
			}
			a.uninstall(&appsv1.Deployment{})
			synctest.Wait()
			if diff := cmp.Diff([]string{"a"}, c.Members()); diff != "" {
				t.Errorf("round %d: %s", round, diff)
			}
		}
		h.cancel()
	})
}

func TestAMemberThatLeavesCancelsWhatRunsAndLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{})
		ended, proceed := make(chan error, 1), make(chan struct{})
		c := launch(h, For(h.Runtime, "c", reconciler(func(ctx context.Context, req Request[*corev1.ConfigMap]) (Result, error) {
			if req.Object.Name == "slow" {
				<-ctx.Done()
				ended <- ctx.Err()
				<-proceed
			}
			return Done(), ctx.Err()
		})))
		a, leave := h.join(c, "a", &corev1.ConfigMap{})
		b, _ := h.join(c, "b", &corev1.ConfigMap{})
		a.add(configMap("slow"))
		a.add(configMap("fast"))
		b.add(configMap("fast"))
		synctest.Wait()
		leave()
		synctest.Wait()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the reconcile in flight ended with %v", err)
		}
		close(proceed)
		synctest.Wait()
		for r := range h.Records("a") {
			t.Errorf("%+v is left", r)
		}
		if series := h.series("member=a"); len(series) > 0 {
			t.Errorf("series left: %v", series)
		}
		if series := h.series("member=b"); len(series) == 0 {
			t.Error("the series of another member are gone")
		}
		if lines := h.log.at(levelError); len(lines) > 0 {
			t.Errorf("a member that leaves is no failure: %v", lines)
		}
		if diff := cmp.Diff([]string{"b"}, c.Members()); diff != "" {
			t.Error(diff)
		}
		h.cancel()
	})
}

func TestAReplacedMemberIsListedAnewAndItsOldInstanceIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1}), &calls{}
		c := launch(h, For(h.Runtime, "c", counting(seen)))
		old, _ := h.join(c, "a", &corev1.ConfigMap{})
		old.add(configMap("one"))
		synctest.Wait()
		fresh, _ := h.join(c, "a", &corev1.ConfigMap{})
		synctest.Wait()
		fresh.add(configMap("two"))
		old.add(configMap("three"))
		synctest.Wait()
		if diff := cmp.Diff([]string{"a/one", "a/two"}, seen.list()); diff != "" {
			t.Error(diff)
		}
		var names []string
		for r := range h.Records("a") {
			names = append(names, r.Key.Name)
		}
		if diff := cmp.Diff([]string{"two"}, names); diff != "" {
			t.Error(diff)
		}
		if n := old.handlers(&corev1.ConfigMap{}); n != 0 {
			t.Errorf("%d handlers left in the old instance", n)
		}
		h.cancel()
	})
}

func TestAPlainClusterHasEveryKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1}), &calls{}
		c := launch(h, For(h.Runtime, "c", counting(seen)))
		cl := newFakeCluster(h.ctx, &corev1.ConfigMap{})
		h.engage(h.ctx, c, "plain", struct{ cluster.Cluster }{cl})
		cl.add(configMap("one"))
		synctest.Wait()
		if seen.count() != 1 {
			t.Errorf("%d reconciles, want 1", seen.count())
		}
		h.cancel()
	})
}

// hungMember has kinds whose informers never come.
type hungMember struct{ *fakeCluster }

func (m hungMember) GetCache() cache.Cache { return hungCache{} }

type hungCache struct{ cache.Cache }

func (hungCache) GetInformer(ctx context.Context, _ client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestAMemberWhoseInformersHangBlocksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1}), &calls{}
		c := launch(h, For(h.Runtime, "c", counting(seen)))
		hung := hungMember{newFakeCluster(h.ctx, &corev1.ConfigMap{})}
		h.engage(h.ctx, c, "hung", hung)
		h.engage(h.ctx, c, "hung", hung)
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("one"))
		synctest.Wait()
		if diff := cmp.Diff([]string{"a/one"}, seen.list()); diff != "" {
			t.Error(diff)
		}
		h.cancel()
	})
}

// lateMember has a reconciled kind whose informer comes late.
type lateMember struct {
	*fakeCluster
	release chan struct{}
}

func (m lateMember) GetCache() cache.Cache {
	return lateCache{fakeCache{cluster: m.fakeCluster}, m.release}
}

type lateCache struct {
	fakeCache
	release chan struct{}
}

func (c lateCache) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	if _, ok := obj.(*corev1.ConfigMap); ok {
		<-c.release
	}
	return c.fakeCache.GetInformer(ctx, obj, opts...)
}

func TestAStandbyKeepsNoKeysOfObjectsThatDoNotExistWhicheverKindComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{Resync: -1})
		h.HoldAll(GateOwnership, "standby")
		c := launch(h, For(h.Runtime, "c", counting(&calls{})).Owns(kindOf(&appsv1.Deployment{})))
		late := lateMember{newFakeCluster(h.ctx), make(chan struct{})}
		left, kept := deployment("left"), deployment("kept")
		left.OwnerReferences = ownedBy("v1", "ConfigMap", "gone", ptrTo(true))
		kept.OwnerReferences = ownedBy("v1", "ConfigMap", "there", ptrTo(true))
		late.install(&appsv1.Deployment{}, left, kept)
		late.install(&corev1.ConfigMap{}, configMap("there"))
		h.engage(h.ctx, c, "a", late)
		synctest.Wait()
		close(late.release)
		synctest.Wait()
		var names []string
		for r := range h.Records("a") {
			names = append(names, r.Key.Name)
		}
		if diff := cmp.Diff([]string{"there"}, names); diff != "" {
			t.Error(diff)
		}
		h.cancel()
	})
}

func TestAMemberWhoseReconcilesHangCostsTheOthersNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1, Deadline: time.Hour, Workers: 30}), &calls{}
		c := launch(h, For(h.Runtime, "c", reconciler(func(ctx context.Context, req Request[*corev1.ConfigMap]) (Result, error) {
			if req.Member == "hung" {
				<-ctx.Done()
				return Done(), ctx.Err()
			}
			seen.add(req.Member, req.Object.Name)
			return Done(), nil
		})))
		hung, _ := h.join(c, "hung", &corev1.ConfigMap{})
		for i := range 100 {
			hung.add(configMap(fmt.Sprint(i)))
		}
		synctest.Wait()
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		for i := range 100 {
			a.add(configMap(fmt.Sprint(i)))
		}
		synctest.Wait() // no time passes
		if n := seen.count(); n != 100 {
			t.Errorf("%d reconciles of the healthy member, want 100", n)
		}
		if n := h.value("plimsoll_reconciles_running", "member=hung"); n != defaultWorkers {
			t.Errorf("the hung member holds %v workers, want %d", n, defaultWorkers)
		}
		h.cancel()
	})
}

func TestAStandbyFillsItsQueueAndRunsNothingUntilItsGateOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{}), &calls{}
		h.HoldAll(GateOwnership, "owned by hub-1")
		c := launch(h, For(h.Runtime, "c", counting(seen)))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("one"))
		a.add(configMap("two"))
		time.Sleep(time.Hour)
		a.remove(configMap("two"))
		synctest.Wait()
		var records []Record
		for r := range h.Records("") {
			records = append(records, r)
		}
		if len(records) != 1 || records[0].State != StateHeld || records[0].Reason != "owned by hub-1" || seen.count() != 0 {
			t.Fatalf("records %+v, %d reconciles", records, seen.count())
		}
		if n := h.value("plimsoll_queue_depth", "controller=c", "member=a"); n != 1 {
			t.Errorf("depth %v, want 1", n)
		}
		h.ReleaseAll(GateOwnership)
		synctest.Wait()
		if diff := cmp.Diff([]string{"a/one"}, seen.list()); diff != "" {
			t.Error(diff)
		}
		if err := h.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		if n := h.value("plimsoll_queue_wait_seconds", "member=a"); n > 1 {
			t.Errorf("a held key counts as having waited %v s for a worker", n)
		}
		h.cancel()
	})
}

func TestAReplicaThatStopsEndsItsEngagements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, seen := newHub(t, Options{Resync: -1}), &calls{}
		c := launch(h, For(h.Runtime, "c", counting(seen)))
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		a := newFakeCluster(ctx, &corev1.ConfigMap{})
		h.engage(ctx, c, "a", a)
		synctest.Wait()
		h.stop()
		synctest.Wait()
		if n := a.handlers(&corev1.ConfigMap{}); n != 0 {
			t.Errorf("%d handlers are left", n)
		}
		h.engage(ctx, c, "a", a)
		if len(c.Members()) != 0 {
			t.Error("engaged after it stopped")
		}
	})
}
