package reconcile

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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

// rude is an error that cannot say what it is.
type rude struct{}

func (*rude) Error() string { panic("no text") }

func TestAnErrorThatPanicsIsAPanicOfItsReconcile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{Resync: -1})
		c := launch(h, For(h.Runtime, "c", reconciler(func(context.Context, Request[*corev1.ConfigMap]) (Result, error) {
			return Done(), &rude{}
		})))
		a, _ := h.join(c, "a", &corev1.ConfigMap{})
		a.add(configMap("one"))
		synctest.Wait()
		r, ok := h.Lookup(keyOf("c", "a", "one"))
		if !ok || r.LastOutcome != OutcomePanic || r.State != StateWaiting || r.Attempts != 1 || !strings.Contains(r.LastError, "no text") {
			t.Errorf("record %+v (%v), want a panic that is tried again", r, ok)
		}
		if n := h.value("plimsoll_reconcile_panics_total", "controller=c", "member=a"); n != 1 {
			t.Errorf("%v panics counted, want 1", n)
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
			if strings.Contains(line.attrs["stack"], "adapter_test.go") {
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

// forgetter is a reconciler that is notified of objects that are gone.
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
