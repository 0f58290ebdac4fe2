package admission_test

import (
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/admission"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/admissiontest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/slots"
)

func TestAnAdmittedPodCarriesItsSlotAndNothingElseChanges(t *testing.T) {
	p := admissiontest.MustPatcher(t)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"", "a", `"quoted" \ ~/ é` + "\n"})
		some := func(name string, keys ...string) map[string]string {
			m := rapid.MapOfN(rapid.SampledFrom(keys), text, 0, 3).Draw(t, name)
			if len(m) == 0 {
				return nil
			}
			return m
		}
		pod := spottest.PodWith(some("labels", "app", "pod-template-hash", spottest.DefaultKeys.Slot()),
			some("annotations", "note", "a/b~c", spottest.DefaultKeys.Reservation(), spottest.DefaultKeys.Moved(), spottest.DefaultKeys.Tried(), policy.DeletionCost),
			some("selector", "disk", spottest.SteerKey, "eks.amazonaws.com/capacityType"))
		r := plan.Reservation{ID: "0b5c" + text.Draw(t, "id"), Slot: rapid.IntRange(0, 200).Draw(t, "slot"),
			Capacity: rapid.SampledFrom([]capacity.Type{capacity.Spot, capacity.OnDemand}).Draw(t, "capacity"), Moved: rapid.Bool().Draw(t, "moved")}
		tried := rapid.Bool().Draw(t, "tried")
		admitted := func(pod *corev1.Pod) *admission.Incoming {
			in := admissiontest.IncomingOf(pod)
			if tried {
				in.TriedSpot, in.TriedOnDemand = spottest.Epoch, spottest.Epoch.Add(time.Hour)
			}
			return in
		}
		got := admissiontest.Patched(t, pod, p.AppendPatch(nil, admitted(pod), spottest.ByConfiguration, r))
		check := func(what string, before, after map[string]string, want map[string]string) {
			expected := maps.Clone(before)
			if expected == nil {
				expected = map[string]string{}
			}
			maps.Copy(expected, want)
			maps.DeleteFunc(expected, func(key, _ string) bool { v, touched := want[key]; return touched && v == "absent" })
			if diff := cmp.Diff(expected, after); diff != "" {
				t.Fatalf("%s: %s", what, diff)
			}
		}
		check("labels", pod.Labels, got.Labels, map[string]string{spottest.DefaultKeys.Slot(): strconv.Itoa(r.Slot)})
		notes := map[string]string{spottest.DefaultKeys.Reservation(): r.ID, spottest.DefaultKeys.Moved(): "absent", spottest.DefaultKeys.Tried(): "absent"}
		if r.Moved {
			notes[spottest.DefaultKeys.Moved()] = "true"
		}
		if tried {
			notes[spottest.DefaultKeys.Tried()] = map[capacity.Type]time.Time{capacity.OnDemand: spottest.Epoch, capacity.Spot: spottest.Epoch.Add(time.Hour)}[r.Capacity].UTC().Format(time.RFC3339)
		}
		if pod.Annotations[policy.DeletionCost] == "" {
			notes[policy.DeletionCost] = policy.Mix{}.Cost(r.Slot)
		}
		check("annotations", pod.Annotations, got.Annotations, notes)
		check("selector", pod.Spec.NodeSelector, got.Spec.NodeSelector, map[string]string{spottest.SteerKey: string(r.Capacity)})
		if tolerates := len(got.Spec.Tolerations) == 1; tolerates != (r.Capacity == capacity.Spot) {
			t.Fatalf("%s pod has tolerations %v", r.Capacity, got.Spec.Tolerations)
		}
		if again := p.AppendPatch(nil, admitted(got), spottest.ByConfiguration, r); len(again) > 0 {
			t.Fatalf("patched again: %s", again)
		}
	})
}

func TestATemplatesOwnCapacityIsOverriddenWhereItContradicts(t *testing.T) {
	zone := spottest.Requirement("zone", corev1.NodeSelectorOpIn, "a")
	onSpot, onDemand := spottest.Requirement(spottest.SteerKey, corev1.NodeSelectorOpIn, "spot"), spottest.Requirement(spottest.SteerKey, corev1.NodeSelectorOpIn, "on-demand")
	notSpot := spottest.Requirement("cloud.google.com/gke-spot", corev1.NodeSelectorOpNotIn, "true")
	onNode := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{spottest.Requirement("metadata.name", corev1.NodeSelectorOpIn, "n")},
		MatchExpressions: []corev1.NodeSelectorRequirement{onDemand}}
	p := admissiontest.MustPatcher(t)
	for name, c := range map[string]struct{ terms, want []corev1.NodeSelectorTerm }{
		"agrees":                       {[]corev1.NodeSelectorTerm{spottest.Term(zone, onSpot)}, []corev1.NodeSelectorTerm{spottest.Term(zone, onSpot)}},
		"contradicts among others":     {[]corev1.NodeSelectorTerm{spottest.Term(onDemand, zone, notSpot)}, []corev1.NodeSelectorTerm{spottest.Term(zone)}},
		"contradicts alone":            {[]corev1.NodeSelectorTerm{spottest.Term(onDemand), spottest.Term(zone, onDemand)}, nil},
		"beside a field":               {[]corev1.NodeSelectorTerm{onNode}, []corev1.NodeSelectorTerm{{MatchFields: onNode.MatchFields}}},
		"one alternative is possible":  {[]corev1.NodeSelectorTerm{spottest.Term(onDemand), spottest.Term(zone)}, []corev1.NodeSelectorTerm{spottest.Term(onDemand), spottest.Term(zone)}},
		"every alternative needs work": {[]corev1.NodeSelectorTerm{spottest.Term(onDemand, zone), spottest.Term(zone, notSpot)}, []corev1.NodeSelectorTerm{spottest.Term(zone), spottest.Term(zone)}},
	} {
		pod := spottest.PodWith(map[string]string{"app": "a"}, nil, map[string]string{spottest.SteerKey: "on-demand", "disk": "ssd", "eks.amazonaws.com/capacityType": "ON_DEMAND"})
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: spottest.Required(c.terms...)}}
		got := admissiontest.Patched(t, pod, p.AppendPatch(nil, admissiontest.IncomingOf(pod), spottest.ByConfiguration, plan.Reservation{ID: "r", Slot: 1, Capacity: capacity.Spot}))
		if diff := cmp.Diff(map[string]string{spottest.SteerKey: "spot", "disk": "ssd"}, got.Spec.NodeSelector); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		var terms []corev1.NodeSelectorTerm
		if in := admissiontest.IncomingOf(got); in.Required != nil {
			terms = in.Required.NodeSelectorTerms
		}
		for i := range terms {
			if len(terms[i].MatchExpressions) == 0 {
				terms[i].MatchExpressions = nil
			}
		}
		if diff := cmp.Diff(c.want, terms); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestTolerationsAreAddedOnce(t *testing.T) {
	p := admissiontest.MustPatcher(t)
	other := corev1.Toleration{Key: "other", Operator: corev1.TolerationOpExists}
	for name, c := range map[string]struct{ has, want []corev1.Toleration }{
		"none":  {nil, []corev1.Toleration{admissiontest.SpotToleration}},
		"other": {[]corev1.Toleration{other}, []corev1.Toleration{other, admissiontest.SpotToleration}},
		"own":   {[]corev1.Toleration{admissiontest.SpotToleration}, []corev1.Toleration{admissiontest.SpotToleration}},
	} {
		pod := spottest.PodWith(nil, nil, nil)
		pod.Spec.Tolerations = c.has
		got := admissiontest.Patched(t, pod, p.AppendPatch(nil, admissiontest.IncomingOf(pod), spottest.ByConfiguration, plan.Reservation{ID: "r", Slot: 1, Capacity: capacity.Spot}))
		if diff := cmp.Diff(c.want, got.Spec.Tolerations); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAPodWithoutAPolicyGetsASlotAndNoDirection(t *testing.T) {
	pod := spottest.PodWith(nil, nil, nil)
	got := admissiontest.Patched(t, pod, admissiontest.MustPatcher(t).AppendPatch(nil, admissiontest.IncomingOf(pod), spottest.ByConfiguration, plan.Reservation{ID: "r", Slot: 1}))
	if got.Labels[spottest.DefaultKeys.Slot()] != "1" || got.Annotations[policy.DeletionCost] != "" || len(got.Spec.NodeSelector)+len(got.Spec.Tolerations) > 0 {
		t.Errorf("%+v", got)
	}
}

func TestStatefulSetPodsGetNoDeletionCost(t *testing.T) {
	in := admissiontest.IncomingOf(spottest.PodWith(nil, nil, nil))
	in.ReplicaSet = false
	got := admissiontest.Patched(t, spottest.PodWith(nil, nil, nil), admissiontest.MustPatcher(t).AppendPatch(nil, in, spottest.ByConfiguration, plan.Reservation{ID: "r", Slot: 1, Capacity: capacity.Spot}))
	if _, has := got.Annotations[policy.DeletionCost]; has {
		t.Errorf("%v", got.Annotations)
	}
}

// A later webhook changed the pod, so the API server asks again, with another request UID.
func TestReinvocationKeepsTheSlotAndRepairsWhatWasUndone(t *testing.T) {
	p, a := admissiontest.MustPatcher(t), slots.NewAccounting(false)
	ask := slots.Ask{ID: "first", Wanted: 4, Mix: policy.Mix{Percent: 50, Managed: true}}
	pod := spottest.PodWith(map[string]string{"app": "a"}, nil, nil)
	patch, first := p.Admit(nil, admissiontest.IncomingOf(pod), spottest.ByConfiguration, a, ask, spottest.Epoch)
	pod = admissiontest.Patched(t, pod, patch)
	ask.ID = "second"
	patch, again := p.Admit(nil, admissiontest.IncomingOf(pod), spottest.ByConfiguration, a, ask, spottest.Epoch)
	if len(patch) > 0 || again.Slot != first.Slot || again.ID != "first" || a.Reservations() != 1 {
		t.Errorf("%s, %+v", patch, again)
	}
	delete(pod.Spec.NodeSelector, spottest.SteerKey)
	patch, _ = p.Admit(nil, admissiontest.IncomingOf(pod), spottest.ByConfiguration, a, ask, spottest.Epoch)
	if got := admissiontest.Patched(t, pod, patch); got.Spec.NodeSelector[spottest.SteerKey] != "on-demand" || a.Reservations() != 1 {
		t.Errorf("%s", patch)
	}
}

// Somebody made a template of a running pod.
func TestAnAssignmentCopiedIntoATemplateIsReplaced(t *testing.T) {
	p, a := admissiontest.MustPatcher(t), slots.NewAccounting(false)
	pod := spottest.PodWith(map[string]string{spottest.DefaultKeys.Slot(): "7"},
		map[string]string{spottest.DefaultKeys.Reservation(): "long-gone", policy.DeletionCost: "-7", spottest.DefaultKeys.Moved(): "true", spottest.DefaultKeys.Tried(): "2026-01-01T00:00:00Z"}, map[string]string{spottest.SteerKey: "spot"})
	patch, answer := p.Admit(nil, admissiontest.IncomingOf(pod), spottest.ByConfiguration, a, slots.Ask{ID: "r", Wanted: 4, Mix: policy.Mix{Percent: 50, Managed: true}}, spottest.Epoch)
	got := admissiontest.Patched(t, pod, patch)
	want := map[string]string{spottest.DefaultKeys.Reservation(): "r", policy.DeletionCost: "0"}
	if diff := cmp.Diff(want, got.Annotations); diff != "" || answer.Slot != 0 || got.Labels[spottest.DefaultKeys.Slot()] != "0" || got.Spec.NodeSelector[spottest.SteerKey] != "on-demand" {
		t.Errorf("%+v %s", got, diff)
	}
}

func TestADoubtPatchesNothing(t *testing.T) {
	p, a := admissiontest.MustPatcher(t), slots.NewAccounting(false)
	ask := slots.Ask{ID: "one", Wanted: 1, Mix: policy.Mix{Percent: 50, Managed: true}}
	p.Admit(nil, &admission.Incoming{}, spottest.ByConfiguration, a, ask, spottest.Epoch)
	ask.ID = "two"
	if patch, answer := p.Admit([]byte("before"), &admission.Incoming{}, spottest.ByConfiguration, a, ask, spottest.Epoch); string(patch) != "before" || answer.Doubt == slots.DoubtNone {
		t.Errorf("%s, %+v", patch, answer)
	}
}

func TestAPodTellsItsFacts(t *testing.T) {
	c := spottest.MustLabels(t)
	pod := spottest.PodWith(map[string]string{spottest.DefaultKeys.Slot(): "12"}, map[string]string{spottest.DefaultKeys.Reservation(): "r", policy.DeletionCost: "-12", spottest.DefaultKeys.Moved(): "true"}, map[string]string{spottest.SteerKey: "spot"})
	pod.Name, pod.UID, pod.ResourceVersion = "web-1", "u", "42"
	pod.CreationTimestamp = metav1.NewTime(spottest.Epoch)
	pod.OwnerReferences = []metav1.OwnerReference{{UID: "other"}, {UID: "set", Controller: new(true)}}
	lost := metav1.NewTime(spottest.Epoch.Add(60e9))
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: lost}}
	node := func(name string) (map[string]string, bool) {
		return map[string]string{spottest.SteerKey: "on-demand"}, name == "known"
	}
	want := plan.Pod{Name: "web-1", UID: "u", Owner: "set", Version: 42, Slot: 12, Capacity: capacity.Spot, Reservation: "r", DeletionCost: policy.ParseCost("-12"),
		Moved: true, Created: spottest.Epoch, UnreadySince: lost.Time}
	if diff := cmp.Diff(want, plan.PodOf(spottest.DefaultKeys.OfPods(), pod, c.OfPod(pod, node))); diff != "" {
		t.Error(diff)
	}
	pod.Annotations[spottest.DefaultKeys.Tried()] = spottest.Epoch.UTC().Format(time.RFC3339)
	if got := plan.PodOf(spottest.DefaultKeys.OfPods(), pod, capacity.Spot); !got.TriedUntil.Equal(spottest.Epoch.Add(policy.TriedTime)) {
		t.Errorf("left alone until %s", got.TriedUntil)
	}
	pod.Annotations[spottest.DefaultKeys.Tried()] = "yesterday"
	if got := plan.PodOf(spottest.DefaultKeys.OfPods(), pod, capacity.Spot); !got.TriedUntil.IsZero() {
		t.Errorf("what is not a time leaves it alone until %s", got.TriedUntil)
	}
	pod.Spec.NodeName = "known"
	if got := plan.PodOf(spottest.DefaultKeys.OfPods(), pod, c.OfPod(pod, node)); got.Capacity != capacity.OnDemand || !got.Bound {
		t.Errorf("bound to an on-demand node: %+v", got)
	}
	pod.Spec.NodeName = "deleted"
	if got := c.OfPod(pod, node); got != capacity.Spot {
		t.Errorf("its node is gone: %q", got)
	}
	for label, slot := range map[string]int{"": plan.NoSlot, "-1": plan.NoSlot, "007": plan.NoSlot, "x": plan.NoSlot, "0": 0, "999999999": plan.NoSlot} {
		pod.Labels[spottest.DefaultKeys.Slot()] = label
		if got := plan.PodOf(spottest.DefaultKeys.OfPods(), pod, capacity.Unknown).Slot; got != slot {
			t.Errorf("label %q is slot %d", label, got)
		}
	}
}
