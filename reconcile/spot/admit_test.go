package spot

import (
	"context"
	"encoding/json"
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

const steerKey = "karpenter.sh/capacity-type"

var spotToleration = corev1.Toleration{Key: "spot", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}

func mustPatcher(t testing.TB) *Patcher {
	t.Helper()
	return NewPatcher(testKeys, []corev1.Toleration{spotToleration})
}

// byConfiguration is how pods are steered where nothing is known of a member's nodes.
var byConfiguration = func() *capacity.Steering {
	labels, err := capacity.NewLabels()
	if err != nil {
		panic(err)
	}
	return labels.Configured()
}()

// tb is what rapid's T and testing's have in common.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
}

func incomingOf(pod *corev1.Pod) *Incoming {
	in := &Incoming{Labels: pod.Labels, Annotations: pod.Annotations, NodeSelector: pod.Spec.NodeSelector,
		Tolerations: pod.Spec.Tolerations, ReplicaSet: true}
	in.Affinity = pod.Spec.Affinity != nil
	in.NodeAffinity = in.Affinity && pod.Spec.Affinity.NodeAffinity != nil
	if in.NodeAffinity {
		in.Required = pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	for i := range pod.Spec.TopologySpreadConstraints {
		c := &pod.Spec.TopologySpreadConstraints[i]
		in.Spreads = append(in.Spreads, IncomingSpread{Key: c.TopologyKey, Must: c.WhenUnsatisfiable == corev1.DoNotSchedule,
			Affinity: capacity.InclusionPolicy(c.NodeAffinityPolicy), Taints: capacity.InclusionPolicy(c.NodeTaintsPolicy)})
	}
	return in
}

// patched applies a patch the way an API server does.
func patched(t tb, pod *corev1.Pod, patch []byte) *corev1.Pod {
	t.Helper()
	if len(patch) == 0 {
		return pod.DeepCopy()
	}
	if !json.Valid(patch) {
		t.Fatalf("not JSON: %s", patch)
	}
	before := pod.DeepCopy()
	before.Name, before.Namespace = "pod", "default"
	c := fake.NewClientBuilder().WithObjects(before).Build()
	got := before.DeepCopy()
	if err := c.Patch(context.Background(), got, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		t.Fatalf("apply %s: %v", patch, err)
	}
	return got
}

func podOf(labels, notes, selector map[string]string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: notes}, Spec: corev1.PodSpec{NodeSelector: selector}}
}

func TestAnAdmittedPodCarriesItsSlotAndNothingElseChanges(t *testing.T) {
	p := mustPatcher(t)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"", "a", `"quoted" \ ~/ é` + "\n"})
		some := func(name string, keys ...string) map[string]string {
			m := rapid.MapOfN(rapid.SampledFrom(keys), text, 0, 3).Draw(t, name)
			if len(m) == 0 {
				return nil
			}
			return m
		}
		pod := podOf(some("labels", "app", "pod-template-hash", testKeys.Slot()),
			some("annotations", "note", "a/b~c", testKeys.Reservation(), testKeys.Moved(), testKeys.Tried(), policy.DeletionCost),
			some("selector", "disk", steerKey, "eks.amazonaws.com/capacityType"))
		r := Reservation{ID: "0b5c" + text.Draw(t, "id"), Slot: rapid.IntRange(0, 200).Draw(t, "slot"),
			Capacity: rapid.SampledFrom([]capacity.Type{capacity.Spot, capacity.OnDemand}).Draw(t, "capacity"), Moved: rapid.Bool().Draw(t, "moved")}
		tried := rapid.Bool().Draw(t, "tried")
		admitted := func(pod *corev1.Pod) *Incoming {
			in := incomingOf(pod)
			if tried {
				in.TriedSpot, in.TriedOnDemand = epoch, epoch.Add(time.Hour)
			}
			return in
		}
		got := patched(t, pod, p.AppendPatch(nil, admitted(pod), byConfiguration, r))
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
		check("labels", pod.Labels, got.Labels, map[string]string{testKeys.Slot(): strconv.Itoa(r.Slot)})
		notes := map[string]string{testKeys.Reservation(): r.ID, testKeys.Moved(): "absent", testKeys.Tried(): "absent"}
		if r.Moved {
			notes[testKeys.Moved()] = "true"
		}
		if tried {
			notes[testKeys.Tried()] = map[capacity.Type]time.Time{capacity.OnDemand: epoch, capacity.Spot: epoch.Add(time.Hour)}[r.Capacity].UTC().Format(time.RFC3339)
		}
		if pod.Annotations[policy.DeletionCost] == "" {
			notes[policy.DeletionCost] = policy.Mix{}.Cost(r.Slot)
		}
		check("annotations", pod.Annotations, got.Annotations, notes)
		check("selector", pod.Spec.NodeSelector, got.Spec.NodeSelector, map[string]string{steerKey: string(r.Capacity)})
		if tolerates := len(got.Spec.Tolerations) == 1; tolerates != (r.Capacity == capacity.Spot) {
			t.Fatalf("%s pod has tolerations %v", r.Capacity, got.Spec.Tolerations)
		}
		if again := p.AppendPatch(nil, admitted(got), byConfiguration, r); len(again) > 0 {
			t.Fatalf("patched again: %s", again)
		}
	})
}

func TestATemplatesOwnCapacityIsOverriddenWhereItContradicts(t *testing.T) {
	zone := requirement("zone", corev1.NodeSelectorOpIn, "a")
	onSpot, onDemand := requirement(steerKey, corev1.NodeSelectorOpIn, "spot"), requirement(steerKey, corev1.NodeSelectorOpIn, "on-demand")
	notSpot := requirement("cloud.google.com/gke-spot", corev1.NodeSelectorOpNotIn, "true")
	onNode := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{requirement("metadata.name", corev1.NodeSelectorOpIn, "n")},
		MatchExpressions: []corev1.NodeSelectorRequirement{onDemand}}
	p := mustPatcher(t)
	for name, c := range map[string]struct{ terms, want []corev1.NodeSelectorTerm }{
		"agrees":                       {[]corev1.NodeSelectorTerm{term(zone, onSpot)}, []corev1.NodeSelectorTerm{term(zone, onSpot)}},
		"contradicts among others":     {[]corev1.NodeSelectorTerm{term(onDemand, zone, notSpot)}, []corev1.NodeSelectorTerm{term(zone)}},
		"contradicts alone":            {[]corev1.NodeSelectorTerm{term(onDemand), term(zone, onDemand)}, nil},
		"beside a field":               {[]corev1.NodeSelectorTerm{onNode}, []corev1.NodeSelectorTerm{{MatchFields: onNode.MatchFields}}},
		"one alternative is possible":  {[]corev1.NodeSelectorTerm{term(onDemand), term(zone)}, []corev1.NodeSelectorTerm{term(onDemand), term(zone)}},
		"every alternative needs work": {[]corev1.NodeSelectorTerm{term(onDemand, zone), term(zone, notSpot)}, []corev1.NodeSelectorTerm{term(zone), term(zone)}},
	} {
		pod := podOf(map[string]string{"app": "a"}, nil, map[string]string{steerKey: "on-demand", "disk": "ssd", "eks.amazonaws.com/capacityType": "ON_DEMAND"})
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required(c.terms...)}}
		got := patched(t, pod, p.AppendPatch(nil, incomingOf(pod), byConfiguration, Reservation{ID: "r", Slot: 1, Capacity: capacity.Spot}))
		if diff := cmp.Diff(map[string]string{steerKey: "spot", "disk": "ssd"}, got.Spec.NodeSelector); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		var terms []corev1.NodeSelectorTerm
		if in := incomingOf(got); in.Required != nil {
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
	p := mustPatcher(t)
	other := corev1.Toleration{Key: "other", Operator: corev1.TolerationOpExists}
	for name, c := range map[string]struct{ has, want []corev1.Toleration }{
		"none":  {nil, []corev1.Toleration{spotToleration}},
		"other": {[]corev1.Toleration{other}, []corev1.Toleration{other, spotToleration}},
		"own":   {[]corev1.Toleration{spotToleration}, []corev1.Toleration{spotToleration}},
	} {
		pod := podOf(nil, nil, nil)
		pod.Spec.Tolerations = c.has
		got := patched(t, pod, p.AppendPatch(nil, incomingOf(pod), byConfiguration, Reservation{ID: "r", Slot: 1, Capacity: capacity.Spot}))
		if diff := cmp.Diff(c.want, got.Spec.Tolerations); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAPodWithoutAPolicyGetsASlotAndNoDirection(t *testing.T) {
	pod := podOf(nil, nil, nil)
	got := patched(t, pod, mustPatcher(t).AppendPatch(nil, incomingOf(pod), byConfiguration, Reservation{ID: "r", Slot: 1}))
	if got.Labels[testKeys.Slot()] != "1" || got.Annotations[policy.DeletionCost] != "" || len(got.Spec.NodeSelector)+len(got.Spec.Tolerations) > 0 {
		t.Errorf("%+v", got)
	}
}

func TestStatefulSetPodsGetNoDeletionCost(t *testing.T) {
	in := incomingOf(podOf(nil, nil, nil))
	in.ReplicaSet = false
	got := patched(t, podOf(nil, nil, nil), mustPatcher(t).AppendPatch(nil, in, byConfiguration, Reservation{ID: "r", Slot: 1, Capacity: capacity.Spot}))
	if _, has := got.Annotations[policy.DeletionCost]; has {
		t.Errorf("%v", got.Annotations)
	}
}

// A later webhook changed the pod, so the API server asks again, with another request UID.
func TestReinvocationKeepsTheSlotAndRepairsWhatWasUndone(t *testing.T) {
	p, a := mustPatcher(t), NewAccounting(false)
	ask := Ask{ID: "first", Wanted: 4, Mix: policy.Mix{Percent: 50, Managed: true}}
	pod := podOf(map[string]string{"app": "a"}, nil, nil)
	patch, first := p.Admit(nil, incomingOf(pod), byConfiguration, a, ask, epoch)
	pod = patched(t, pod, patch)
	ask.ID = "second"
	patch, again := p.Admit(nil, incomingOf(pod), byConfiguration, a, ask, epoch)
	if len(patch) > 0 || again.Slot != first.Slot || again.ID != "first" || a.Reservations() != 1 {
		t.Errorf("%s, %+v", patch, again)
	}
	delete(pod.Spec.NodeSelector, steerKey)
	patch, _ = p.Admit(nil, incomingOf(pod), byConfiguration, a, ask, epoch)
	if got := patched(t, pod, patch); got.Spec.NodeSelector[steerKey] != "on-demand" || a.Reservations() != 1 {
		t.Errorf("%s", patch)
	}
}

// Somebody made a template of a running pod.
func TestAStampCopiedIntoATemplateIsReplaced(t *testing.T) {
	p, a := mustPatcher(t), NewAccounting(false)
	pod := podOf(map[string]string{testKeys.Slot(): "7"},
		map[string]string{testKeys.Reservation(): "long-gone", policy.DeletionCost: "-7", testKeys.Moved(): "true", testKeys.Tried(): "2026-01-01T00:00:00Z"}, map[string]string{steerKey: "spot"})
	patch, answer := p.Admit(nil, incomingOf(pod), byConfiguration, a, Ask{ID: "r", Wanted: 4, Mix: policy.Mix{Percent: 50, Managed: true}}, epoch)
	got := patched(t, pod, patch)
	want := map[string]string{testKeys.Reservation(): "r", policy.DeletionCost: "0"}
	if diff := cmp.Diff(want, got.Annotations); diff != "" || answer.Slot != 0 || got.Labels[testKeys.Slot()] != "0" || got.Spec.NodeSelector[steerKey] != "on-demand" {
		t.Errorf("%+v %s", got, diff)
	}
}

func TestADoubtPatchesNothing(t *testing.T) {
	p, a := mustPatcher(t), NewAccounting(false)
	ask := Ask{ID: "one", Wanted: 1, Mix: policy.Mix{Percent: 50, Managed: true}}
	p.Admit(nil, &Incoming{}, byConfiguration, a, ask, epoch)
	ask.ID = "two"
	if patch, answer := p.Admit([]byte("before"), &Incoming{}, byConfiguration, a, ask, epoch); string(patch) != "before" || answer.Doubt == DoubtNone {
		t.Errorf("%s, %+v", patch, answer)
	}
}

func TestAPodTellsItsFacts(t *testing.T) {
	c := mustLabels(t)
	pod := podOf(map[string]string{testKeys.Slot(): "12"}, map[string]string{testKeys.Reservation(): "r", policy.DeletionCost: "-12", testKeys.Moved(): "true"}, map[string]string{steerKey: "spot"})
	pod.Name, pod.UID, pod.ResourceVersion = "web-1", "u", "42"
	pod.CreationTimestamp = metav1.NewTime(epoch)
	pod.OwnerReferences = []metav1.OwnerReference{{UID: "other"}, {UID: "set", Controller: new(true)}}
	lost := metav1.NewTime(epoch.Add(60e9))
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: lost}}
	node := func(name string) (map[string]string, bool) {
		return map[string]string{steerKey: "on-demand"}, name == "known"
	}
	want := Pod{Name: "web-1", UID: "u", Owner: "set", Version: 42, Slot: 12, Capacity: capacity.Spot, Reservation: "r", DeletionCost: "-12",
		Moved: true, Created: epoch, UnreadySince: lost.Time}
	if diff := cmp.Diff(want, PodOf(testKeys, pod, c.OfPod(pod, node))); diff != "" {
		t.Error(diff)
	}
	pod.Annotations[testKeys.Tried()] = epoch.UTC().Format(time.RFC3339)
	if got := PodOf(testKeys, pod, capacity.Spot); !got.TriedUntil.Equal(epoch.Add(policy.TriedTime)) {
		t.Errorf("left alone until %s", got.TriedUntil)
	}
	pod.Annotations[testKeys.Tried()] = "yesterday"
	if got := PodOf(testKeys, pod, capacity.Spot); !got.TriedUntil.IsZero() {
		t.Errorf("what is not a time leaves it alone until %s", got.TriedUntil)
	}
	pod.Spec.NodeName = "known"
	if got := PodOf(testKeys, pod, c.OfPod(pod, node)); got.Capacity != capacity.OnDemand || !got.Bound {
		t.Errorf("bound to an on-demand node: %+v", got)
	}
	pod.Spec.NodeName = "deleted"
	if got := c.OfPod(pod, node); got != capacity.Spot {
		t.Errorf("its node is gone: %q", got)
	}
	for label, slot := range map[string]int{"": NoSlot, "-1": NoSlot, "007": NoSlot, "x": NoSlot, "0": 0, "999999999": NoSlot} {
		pod.Labels[testKeys.Slot()] = label
		if got := PodOf(testKeys, pod, capacity.Unknown).Slot; got != slot {
			t.Errorf("label %q is slot %d", label, got)
		}
	}
}
