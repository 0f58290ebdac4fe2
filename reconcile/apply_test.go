package reconcile

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// applying is a member in which a gadget's reconciler applies what the test says, and every apply is counted.
type applying struct {
	*plant
	h       *hub
	applies atomic.Int32
	refuse  atomic.Pointer[apierrors.StatusError]
	explode atomic.Bool
	leaving atomic.Pointer[func()]                           // what somebody does right before a field is left to others
	once    atomic.Pointer[func(req Request[*gadget]) error] // what the next reconcile does
	always  atomic.Pointer[func(req Request[*gadget]) error] // what the others do
	last    Applied
	err     error
}

func applyPlant(t *testing.T, test func(t *testing.T, a *applying)) {
	t.Helper()
	a := &applying{}
	funcs := interceptor.Funcs{Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
		a.applies.Add(1)
		if a.explode.Load() {
			panic("in the client")
		}
		if refused := a.refuse.Load(); refused != nil {
			return refused
		}
		if do := a.leaving.Load(); do != nil && (&client.ApplyOptions{}).ApplyOptions(opts).FieldManager == "plimsoll-c-left" {
			a.leaving.Store(nil)
			(*do)()
		}
		return c.Apply(ctx, obj, opts...)
	}}
	inPlantWith(t, funcs, func(h *hub) *Builder[*gadget] {
		return For(h.Runtime, "c", gadgets(func(ctx context.Context, req Request[*gadget]) (Result, error) {
			if do := a.once.Swap(nil); do != nil {
				return Done(), (*do)(req)
			}
			if do := a.always.Load(); do != nil {
				return Done(), (*do)(req)
			}
			return Done(), nil
		})).Owns(kindOf(&corev1.ConfigMap{}))
	}, func(t *testing.T, h *hub, s *plant) {
		a.plant, a.h = s, h
		s.create(newGadget("one"))
		test(t, a)
	})
}

// run has the reconciler run once more, and apply this.
func (a *applying) run(t *testing.T, obj client.Object, opts ...ApplyOption) Applied {
	t.Helper()
	a.last, a.err = "", nil
	want := func(req Request[*gadget]) error {
		a.last, a.err = req.Apply(t.Context(), obj.DeepCopyObject().(client.Object), opts...)
		return a.err
	}
	a.do(t, want)
	return a.last
}

// do has the reconciler run once more, and do this.
func (a *applying) do(t *testing.T, want func(req Request[*gadget]) error) {
	t.Helper()
	a.once.Store(&want)
	order, err := a.h.Requeue(keyOf("c", "a", "one"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.h.Wait(t.Context(), order.ID); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

func settings(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings", Labels: map[string]string{"app": "one"}}, Data: data}
}

func TestWhatIsAppliedIsThereAndIsNotSentAgain(t *testing.T) {
	applyPlant(t, func(t *testing.T, a *applying) {
		if got := a.run(t, settings(map[string]string{"a": "1"})); got != AppliedNew {
			t.Fatalf("%s, %v", got, a.err)
		}
		cm := mustRead[*corev1.ConfigMap](a.plant, "settings")
		owner := metav1.GetControllerOf(cm)
		if cm.Data["a"] != "1" || owner == nil || owner.UID != "uid-one" || owner.Kind != "gadget" || owner.APIVersion != "test.plimsoll.dev/v1" {
			t.Errorf("applied %+v", cm)
		}
		for range 3 {
			if got := a.run(t, settings(map[string]string{"a": "1"})); got != AppliedNothing || a.applies.Load() != 1 {
				t.Errorf("%s, %v, after %d calls", got, a.err, a.applies.Load())
			}
		}
		change(a.plant, "settings", func(cm *corev1.ConfigMap) { cm.Annotations["theirs"] = "1"; cm.Data["theirs"] = "1" })
		if got := a.run(t, settings(map[string]string{"a": "1"})); got != AppliedNothing || a.applies.Load() != 1 {
			t.Errorf("%s after somebody added a field of theirs, %d calls", got, a.applies.Load())
		}
		if got := a.run(t, settings(map[string]string{"b": "2"})); got != AppliedChange {
			t.Errorf("%s, %v", got, a.err)
		}
		cm = mustRead[*corev1.ConfigMap](a.plant, "settings")
		if _, left := cm.Data["a"]; left || cm.Data["b"] != "2" || cm.Data["theirs"] != "1" {
			t.Errorf("data %v, want ours changed, the field that is not applied any more gone, and theirs left", cm.Data)
		}
	})
}

func TestAFieldThatWasChangedByHandIsSetRightAndTold(t *testing.T) {
	applyPlant(t, func(t *testing.T, a *applying) {
		a.run(t, settings(map[string]string{"a": "1"}))
		change(a.plant, "settings", func(cm *corev1.ConfigMap) { cm.Data["a"] = "by hand" })
		if got := a.run(t, settings(map[string]string{"a": "1"})); got != AppliedRepair {
			t.Errorf("%s, %v", got, a.err)
		}
		if cm := mustRead[*corev1.ConfigMap](a.plant, "settings"); cm.Data["a"] != "1" {
			t.Errorf("data %v", cm.Data)
		}
		var events corev1.EventList
		if err := a.live.List(t.Context(), &events); err != nil || len(events.Items) != 1 || !strings.Contains(events.Items[0].Message, "data.a") {
			t.Errorf("events %+v, %v", events.Items, err)
		}
		change(a.plant, "settings", func(cm *corev1.ConfigMap) { cm.Data["a"] = "by hand" })
		if got := a.run(t, settings(map[string]string{"a": "1"}), YieldConflicts()); !apierrors.IsConflict(a.err) {
			t.Errorf("%s, %v, want the conflict", got, a.err)
		}
		remove[*corev1.ConfigMap](a.plant, "settings")
		if got := a.run(t, settings(map[string]string{"a": "1"})); got != AppliedNew {
			t.Errorf("%s after it was deleted by hand, %v", got, a.err)
		}
	})
}

func TestAWriteThatTheCacheDoesNotShowYetIsNotRepeated(t *testing.T) {
	applyPlant(t, func(t *testing.T, a *applying) {
		a.run(t, settings(map[string]string{"a": "1"}))
		a.lag()
		a.run(t, settings(map[string]string{"a": "2"}))
		if got := a.run(t, settings(map[string]string{"a": "2"})); got != AppliedNothing || a.applies.Load() != 2 {
			t.Errorf("%s after %d calls", got, a.applies.Load())
		}
	})
}

func TestWhatIsNotOursIsNotAppliedOver(t *testing.T) {
	yes := true
	another := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "u", Controller: &yes}
	earlier := metav1.OwnerReference{APIVersion: "test.plimsoll.dev/v1beta1", Kind: "gadget", Name: "one", UID: "earlier", Controller: &yes}
	for name, tc := range map[string]struct {
		owner   *metav1.OwnerReference
		options []ApplyOption
		want    Applied
		says    string
	}{
		"nobody's":                     {nil, nil, "", "apply v1 ConfigMap default/settings: it exists and has no controller"},
		"nobody's, adopted":            {nil, []ApplyOption{Adopt()}, AppliedChange, ""},
		"another's":                    {&another, []ApplyOption{Adopt()}, "", "Pod p controls it"},
		"an earlier owner's":           {&earlier, nil, AppliedLater, ""},
		"another's, and owner is none": {&another, []ApplyOption{Unowned()}, AppliedChange, ""},
	} {
		t.Run(name, func(t *testing.T) {
			applyPlant(t, func(t *testing.T, a *applying) {
				there := settings(map[string]string{"x": "y"})
				if tc.owner != nil {
					there.OwnerReferences = []metav1.OwnerReference{*tc.owner}
				}
				a.create(there)
				got := a.run(t, settings(map[string]string{"a": "1"}), tc.options...)
				if got != tc.want || (tc.says != "" && (a.err == nil || !strings.Contains(a.err.Error(), tc.says) || !IsTerminal(a.err))) {
					t.Errorf("%s, %v", got, a.err)
				}
				if cm := mustRead[*corev1.ConfigMap](a.plant, "settings"); (cm.Data["a"] == "1") != (tc.want == AppliedChange) || cm.Data["x"] != "y" {
					t.Errorf("data %v", cm.Data)
				}
			})
		})
	}
}

func TestARefusedApplyStallsWithTheServersReasonAndRecovers(t *testing.T) {
	applyPlant(t, func(t *testing.T, a *applying) {
		a.refuse.Store(apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "settings", context.DeadlineExceeded))
		want := func(req Request[*gadget]) error {
			_, err := req.Apply(t.Context(), settings(nil))
			return err
		}
		a.do(t, want)
		a.always.Store(&want)
		g := mustRead[*gadget](a.plant, "one")
		if c := condition(g, ConditionStalled); !strings.HasPrefix(c, "True/Forbidden: apply v1 ConfigMap default/settings: ") {
			t.Errorf("Stalled %q", c)
		}
		if r := gadgetRecord(a.h, "one"); r.LastOutcome != OutcomeTerminal || r.State != StateWaiting || r.Reason != reasonStalled {
			t.Errorf("record %+v", r)
		}
		a.refuse.Store(nil) // nothing shows that
		time.Sleep(2 * defaultStalledRetry)
		if g := mustRead[*gadget](a.plant, "one"); condition(g, ConditionReady) != "True/Succeeded" || condition(g, ConditionStalled) != "" {
			t.Errorf("status %+v", g.Status)
		}
	})
}

func TestOnlyWhatIsOursIsDeleted(t *testing.T) {
	applyPlant(t, func(t *testing.T, a *applying) {
		theirs := settings(nil)
		theirs.Name = "theirs"
		a.create(theirs)
		a.run(t, settings(nil))
		deleted := map[string]bool{}
		a.do(t, func(req Request[*gadget]) error {
			for _, name := range []string{"settings", "theirs", "nothing"} {
				cm := settings(nil)
				cm.Name = name
				ok, err := req.Delete(t.Context(), cm)
				if err != nil {
					return err
				}
				deleted[name] = ok
			}
			return nil
		})
		_, ours := read[*corev1.ConfigMap](a.plant, "settings")
		_, others := read[*corev1.ConfigMap](a.plant, "theirs")
		if ours || !others || !deleted["settings"] || deleted["theirs"] || deleted["nothing"] {
			t.Errorf("there: ours %v, theirs %v; deleted %v", ours, others, deleted)
		}
	})
}

func TestAnApplyThatCannotBeMeantIsRefused(t *testing.T) {
	applyPlant(t, func(t *testing.T, a *applying) {
		elsewhere := settings(nil)
		elsewhere.Namespace = "kube-system"
		a.run(t, elsewhere)
		if a.err == nil || !strings.Contains(a.err.Error(), `its owner is in namespace "default"`) || !IsTerminal(a.err) {
			t.Errorf("an object elsewhere: %v", a.err)
		}
		if a.run(t, elsewhere, Unowned()) != AppliedNew {
			t.Errorf("an object elsewhere without owner: %v", a.err)
		}
		a.run(t, settings(map[string]string{"a": "1"}), Leave("data.a"))
		if a.err == nil || !strings.Contains(a.err.Error(), "data.a is both applied and left") {
			t.Errorf("a field that is both: %v", a.err)
		}
		a.run(t, &stranger{})
		if a.err == nil || !strings.Contains(a.err.Error(), "stranger") {
			t.Errorf("a kind that no scheme knows: %v", a.err)
		}
	})
	var made Request[*gadget]
	if _, err := made.Apply(t.Context(), settings(nil)); err == nil || !strings.Contains(err.Error(), "not made by a controller") {
		t.Errorf("a request of one's own: %v", err)
	}
}

func TestAFieldThatIsLeftToOthersKeepsItsValue(t *testing.T) {
	applyPlant(t, func(t *testing.T, a *applying) {
		a.run(t, settings(map[string]string{"a": "1", "scale": "5"}))
		if got := a.run(t, settings(map[string]string{"a": "1"}), Leave("data.scale")); got != AppliedChange {
			t.Errorf("%s, %v", got, a.err)
		}
		if cm := mustRead[*corev1.ConfigMap](a.plant, "settings"); cm.Data["scale"] != "5" {
			t.Errorf("data %v, want the value to stay", cm.Data)
		}
		change(a.plant, "settings", func(cm *corev1.ConfigMap) { cm.Data["scale"] = "7" })
		if a.run(t, settings(map[string]string{"a": "1"}), Leave("data.scale")); mustRead[*corev1.ConfigMap](a.plant, "settings").Data["scale"] != "7" {
			t.Error("the other manager's value was changed")
		}
		a.run(t, settings(map[string]string{"a": "2"}), Leave("data.scale"))
		if cm := mustRead[*corev1.ConfigMap](a.plant, "settings"); cm.Data["scale"] != "7" || cm.Data["a"] != "2" {
			t.Errorf("data %v", cm.Data)
		}
	})
}

func TestWhatTheCacheDoesNotShowYetIsMadeOnceAndThenSetRight(t *testing.T) {
	applyPlant(t, func(t *testing.T, a *applying) {
		a.lag()
		if got := a.run(t, settings(map[string]string{"a": "1"})); got != AppliedNew {
			t.Fatalf("%s, %v", got, a.err)
		}
		version := liveSettings(t, a).ResourceVersion
		if got := a.run(t, settings(map[string]string{"a": "1"})); got != AppliedNothing || liveSettings(t, a).ResourceVersion != version {
			t.Errorf("%s, %v, version %s after %s", got, a.err, liveSettings(t, a).ResourceVersion, version)
		}
		if got := a.run(t, settings(map[string]string{"a": "2"})); got != AppliedChange || liveSettings(t, a).Data["a"] != "2" {
			t.Errorf("%s, %v, data %v", got, a.err, liveSettings(t, a).Data)
		}
	})
}

func TestWhatIsNotOursIsNotAppliedOverAlsoWhenTheCacheDoesNotShowIt(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1.ConfigMap)
		want   Applied
		says   string
	}{
		"nobody's": {func(*corev1.ConfigMap) {}, "", "it exists and has no controller, so the hub does not change it"},
		"another's": {func(cm *corev1.ConfigMap) {
			cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "u", Controller: new(true)}}
		}, "", "Pod p controls it, so the hub does not change it"},
		"an earlier owner's": {func(cm *corev1.ConfigMap) {
			cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "test.plimsoll.dev/v1", Kind: "gadget", Name: "one", UID: "earlier", Controller: new(true)}}
		}, AppliedLater, ""},
	} {
		t.Run(name, func(t *testing.T) {
			applyPlant(t, func(t *testing.T, a *applying) {
				a.lag()
				there := settings(map[string]string{"x": "y"})
				tc.change(there)
				a.create(there)
				version := liveSettings(t, a).ResourceVersion
				got := a.run(t, settings(map[string]string{"a": "1"}))
				if got != tc.want || (tc.says != "" && (a.err == nil || !strings.Contains(a.err.Error(), tc.says) || !IsTerminal(a.err))) {
					t.Errorf("%q, %v", got, a.err)
				}
				if is := liveSettings(t, a); is.ResourceVersion != version {
					t.Errorf("it was written: %+v", is)
				}
			})
		})
	}
}

// liveSettings reads past the cache.
func liveSettings(t *testing.T, a *applying) *corev1.ConfigMap {
	t.Helper()
	var cm corev1.ConfigMap
	if err := a.live.Get(t.Context(), client.ObjectKeyFromObject(settings(nil)), &cm); err != nil {
		t.Fatal(err)
	}
	return &cm
}

func TestWhatIsAppliedSideBySideIsAllTriedAndOnlyRefusalsAreFinal(t *testing.T) {
	var names []string
	var objects []client.Object
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		cm := settings(nil)
		cm.Name = name
		names, objects = append(names, name), append(objects, cm)
	}
	applyPlant(t, func(t *testing.T, a *applying) {
		all := func(req Request[*gadget]) error {
			a.err = req.ApplyAll(t.Context(), objects...)
			return a.err
		}
		theirs := settings(nil)
		theirs.Name = "c"
		a.create(theirs)
		a.do(t, all)
		for _, name := range names {
			if cm := mustRead[*corev1.ConfigMap](a.plant, name); (metav1.GetControllerOf(cm) != nil) != (name != "c") {
				t.Errorf("%s has the owners %v", name, cm.OwnerReferences)
			}
		}
		if !IsTerminal(a.err) || !strings.Contains(a.err.Error(), "ConfigMap default/c: it exists") {
			t.Errorf("one that is somebody else's: %v", a.err)
		}
		for _, name := range names[3:] {
			remove[*corev1.ConfigMap](a.plant, name)
		}
		a.refuse.Store(apierrors.NewTooManyRequests("later", 1))
		if a.do(t, all); a.err == nil || IsTerminal(a.err) {
			t.Errorf("one that is somebody else's, and three for which the server has no time: %v", a.err)
		}
		a.refuse.Store(nil)
		a.do(t, func(req Request[*gadget]) error { return req.ApplyAll(t.Context()) })
	})
}

func TestAPanicInAnApplyIsThatOfTheReconcile(t *testing.T) {
	applyPlant(t, func(t *testing.T, a *applying) {
		a.explode.Store(true)
		a.do(t, func(req Request[*gadget]) error { return req.ApplyAll(t.Context(), settings(nil)) })
		if r := gadgetRecord(a.h, "one"); r.LastOutcome != OutcomePanic {
			t.Errorf("record %+v", r)
		}
	})
}
