package spot

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/admission"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/admissiontest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/nodes"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
)

const (
	labelEKS            = "eks.amazonaws.com/capacityType"
	labelGKEPool        = "cloud.google.com/gke-nodepool"
	labelGKEProvisions  = "cloud.google.com/gke-provisioning"
	labelGKESpot        = "cloud.google.com/gke-spot"
	labelGKEPreemptible = "cloud.google.com/gke-preemptible"
	labelAKSPool        = "kubernetes.azure.com/agentpool"
	labelAKS            = "kubernetes.azure.com/scalesetpriority"
)

// nodeSet is a member's nodes as its provider labels and taints them.
type nodeSet struct {
	spot, onDemand []map[string]string
	taints         []corev1.Taint // of the spot nodes
}

func noSchedule(key, value string) corev1.Taint {
	return corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffectNoSchedule}
}

// providers are members as they are found: which labels are on which nodes was read off their documentation.
var providers = map[string]nodeSet{
	"karpenter": {spot: []map[string]string{{spottest.SteerKey: "spot"}}, onDemand: []map[string]string{{spottest.SteerKey: "on-demand"}}},
	"karpenter with reserved capacity alone": {
		spot: []map[string]string{{spottest.SteerKey: "spot"}}, onDemand: []map[string]string{{spottest.SteerKey: "reserved"}}},
	"eks": {spot: []map[string]string{{labelEKS: "SPOT"}}, onDemand: []map[string]string{{labelEKS: "ON_DEMAND"}}},
	"eks with a capacity block": {
		spot: []map[string]string{{labelEKS: "SPOT"}}, onDemand: []map[string]string{{labelEKS: "CAPACITY_BLOCK"}}},
	"gke": {
		spot:     []map[string]string{{labelGKEPool: "a", labelGKESpot: "true", labelGKEProvisions: "spot"}},
		onDemand: []map[string]string{{labelGKEPool: "b", labelGKEProvisions: "standard"}},
		taints:   []corev1.Taint{noSchedule(labelGKESpot, "true")}},
	"gke of an older version": {
		spot:     []map[string]string{{labelGKEPool: "a", labelGKESpot: "true"}},
		onDemand: []map[string]string{{labelGKEPool: "b"}}},
	"gke with preemptible nodes": {
		spot:     []map[string]string{{labelGKEPool: "a", labelGKEPreemptible: "true"}},
		onDemand: []map[string]string{{labelGKEPool: "b"}}, taints: []corev1.Taint{noSchedule(labelGKEPreemptible, "true")}},
	"aks": {
		spot:     []map[string]string{{labelAKSPool: "a", labelAKS: "spot"}},
		onDemand: []map[string]string{{labelAKSPool: "b"}}, taints: []corev1.Taint{noSchedule(labelAKS, "spot")}},
	"karpenter beside eks": {
		spot:     []map[string]string{{spottest.SteerKey: "spot"}, {labelEKS: "SPOT"}},
		onDemand: []map[string]string{{spottest.SteerKey: "on-demand"}, {labelEKS: "ON_DEMAND"}}},
	"karpenter for spot and eks for the rest": {
		spot: []map[string]string{{spottest.SteerKey: "spot"}}, onDemand: []map[string]string{{labelEKS: "ON_DEMAND"}}},
	"eks for spot and karpenter for the rest": {
		spot: []map[string]string{{labelEKS: "SPOT"}}, onDemand: []map[string]string{{spottest.SteerKey: "on-demand"}, {spottest.SteerKey: "reserved"}}},
	"karpenter on aks": {
		spot:     []map[string]string{{spottest.SteerKey: "spot", labelAKS: "spot"}},
		onDemand: []map[string]string{{spottest.SteerKey: "on-demand", labelAKS: "regular"}, {labelAKSPool: "system"}}},
}

// steered returns the steering of a member with these nodes.
func steered(t spottest.TB, labels capacity.Labels, carried ...map[string]string) *capacity.Steering {
	t.Helper()
	var c nodes.Census
	c.Begin(labels, nil, nil)
	for _, node := range carried {
		c.Replace(nil, node)
	}
	return c.Steering()
}

// schedulable reports whether the scheduler would let a pod onto a node, as far as labels and taints go.
func schedulable(pod *corev1.PodSpec, labels map[string]string, taints ...corev1.Taint) bool {
	for key, value := range pod.NodeSelector {
		if labels[key] != value {
			return false
		}
	}
	if pod.Affinity != nil && pod.Affinity.NodeAffinity != nil && pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		terms := pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		if !slices.ContainsFunc(terms, func(term corev1.NodeSelectorTerm) bool {
			return len(term.MatchExpressions)+len(term.MatchFields) > 0 && capacity.NodeRequirements{{term}}.Fit("node", labels)
		}) {
			return false
		}
	}
	for i := range taints {
		if !slices.ContainsFunc(pod.Tolerations, func(own corev1.Toleration) bool { return toleratesTaint(&own, &taints[i]) }) {
			return false
		}
	}
	return true
}

func toleratesTaint(own *corev1.Toleration, taint *corev1.Taint) bool {
	return own.Key == taint.Key && (own.Effect == "" || own.Effect == taint.Effect) &&
		(own.Operator == corev1.TolerationOpExists || own.Value == taint.Value)
}

// checkPlaces fails unless a pod fits a node of its type and none of the other.
func checkPlaces(t spottest.TB, name string, pod *corev1.PodSpec, set nodeSet, capacityType capacity.Type) {
	t.Helper()
	own, other := set.spot, set.onDemand
	if capacityType == capacity.OnDemand {
		own, other = other, own
	}
	fits := func(list []map[string]string, taints ...corev1.Taint) bool {
		return slices.ContainsFunc(list, func(labels map[string]string) bool { return schedulable(pod, labels, taints...) })
	}
	var taints []corev1.Taint
	if capacityType == capacity.Spot {
		taints = set.taints
	}
	if !fits(own, taints...) {
		t.Fatalf("%s: a pod that belongs on %s fits no such node: %s", name, capacityType, capacity.JSONOf(pod))
	}
	if fits(other) { // taints of the others are no reason
		t.Fatalf("%s: a pod that belongs on %s fits other nodes: %s", name, capacityType, capacity.JSONOf(pod))
	}
}

func TestNewPodsOfEveryProviderFitNodesOfTheirTypeAndNoOthers(t *testing.T) {
	for name, nodes := range providers {
		s := newShell(t, nil, false)
		for i, labels := range slices.Concat(nodes.spot, nodes.onDemand) {
			s.cache(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i), Labels: labels}})
		}
		s.cache(namespace("true", nil), deployment(10, "true", mixed("70")), replicaSet(10, 10))
		for i := range 10 {
			placed := s.place(incoming(i))
			pod := admissiontest.Patched(t, spottest.PodWith(nil, nil, nil), placed.Patch)
			checkPlaces(t, name, &pod.Spec, nodes, placed.Reservation.Capacity)
			if got := s.options.Capacity.OfPod(pod, nil); got != placed.Reservation.Capacity {
				t.Errorf("%s: while no node has it, a pod for %s is taken for %q", name, placed.Reservation.Capacity, got)
			}
		}
	}
}

func TestWhereNodesCarryKarpentersLabelPodsHaveTheNodeSelectorAlone(t *testing.T) {
	p := admissiontest.MustPatcher(t)
	spot, onDemand := map[string]string{spottest.SteerKey: "spot"}, map[string]string{spottest.SteerKey: "on-demand"}
	system := map[string]string{labelEKS: "ON_DEMAND"}
	for name, nodes := range map[string][]map[string]string{
		"nothing is known":       nil,
		"nodes of no known type": {{"kubernetes.io/hostname": "a"}, {spottest.SteerKey: "strange"}},
		"both types":             {spot, onDemand},
		"spot is scaled to zero": {onDemand},
		"it runs on other nodes": {spot, onDemand, system},
	} {
		s := steered(t, spottest.MustLabels(t), nodes...)
		for _, capacityType := range []capacity.Type{capacity.Spot, capacity.OnDemand} {
			pod := spottest.PodWith(nil, nil, nil)
			got := admissiontest.Patched(t, pod, p.AppendPatch(nil, admissiontest.IncomingOf(pod), s, plan.Reservation{ID: "r", Slot: 1, Capacity: capacityType}))
			if diff := cmp.Diff(map[string]string{spottest.SteerKey: string(capacityType)}, got.Spec.NodeSelector); diff != "" || got.Spec.Affinity != nil {
				t.Errorf("%s: %s affinity %v", name, diff, got.Spec.Affinity)
			}
		}
	}
}

// Reserved capacity is on-demand. The expression names the values, as the nodeSelector did, so that a node of unknown type does
// not take a part of the floor.
func TestOnDemandPodsMayUseReservedNodes(t *testing.T) {
	s := steered(t, spottest.MustLabels(t), map[string]string{spottest.SteerKey: "spot"}, map[string]string{spottest.SteerKey: "on-demand"}, map[string]string{spottest.SteerKey: "reserved"})
	var pod corev1.PodSpec
	s.Steer(&pod, capacity.OnDemand, nil)
	for _, c := range []struct {
		labels map[string]string
		want   bool
	}{
		{map[string]string{spottest.SteerKey: "on-demand"}, true}, {map[string]string{spottest.SteerKey: "reserved"}, true},
		{map[string]string{spottest.SteerKey: "spot"}, false}, {map[string]string{}, false},
	} {
		if got := schedulable(&pod, c.labels); got != c.want {
			t.Errorf("on %v: %t", c.labels, got)
		}
	}
	if s.Spot.Key != spottest.SteerKey || s.Spot.Value != "spot" {
		t.Errorf("spot pods go by %s", &s.Spot)
	}
}

// An autoscaler's template of a node has the labels that the pool's nodes will have, and no node of it may have been there yet.
func TestPodsFitTheNodesOfPoolsThatAreAtZero(t *testing.T) {
	for name, c := range map[string]struct {
		there []map[string]string
		comes map[string]string
		for_  capacity.Type
	}{
		"karpenter, where it runs on a managed node group": {[]map[string]string{{labelEKS: "ON_DEMAND"}}, map[string]string{spottest.SteerKey: "spot"}, capacity.Spot},
		"eks spot":            {[]map[string]string{{labelEKS: "ON_DEMAND"}}, map[string]string{labelEKS: "SPOT"}, capacity.Spot},
		"gke spot":            {[]map[string]string{{labelGKEPool: "a"}}, map[string]string{labelGKEPool: "b", labelGKESpot: "true"}, capacity.Spot},
		"aks spot":            {[]map[string]string{{labelAKSPool: "a"}}, map[string]string{labelAKSPool: "b", labelAKS: "spot"}, capacity.Spot},
		"aks on-demand":       {[]map[string]string{{labelAKSPool: "a", labelAKS: "spot"}}, map[string]string{labelAKSPool: "b"}, capacity.OnDemand},
		"an unlabelled group": {[]map[string]string{{labelEKS: "SPOT"}}, map[string]string{}, capacity.OnDemand},
	} {
		var pod corev1.PodSpec
		steered(t, spottest.MustLabels(t), c.there...).Steer(&pod, c.for_, nil)
		if !schedulable(&pod, c.comes) {
			t.Errorf("%s: a %s pod fits no node of %v: %s", name, c.for_, c.comes, capacity.JSONOf(pod))
		}
	}
	// Karpenter would choose spot nodes, which are cheaper, for on-demand pods that do not say otherwise.
	var pod corev1.PodSpec
	steered(t, spottest.MustLabels(t), map[string]string{labelEKS: "ON_DEMAND"}).Steer(&pod, capacity.OnDemand, nil)
	if schedulable(&pod, map[string]string{spottest.SteerKey: "spot"}) {
		t.Error("an on-demand pod may go to a spot node that Karpenter brings")
	}
}

func TestWhatNodesCarriedStaysKnownWhenTheyAreGone(t *testing.T) {
	var c nodes.Census
	var told []string
	c.Begin(spottest.MustLabels(t), nil, func(s *capacity.Steering) { told = append(told, s.String()) })
	gke := map[string]string{labelGKEPool: "a", labelGKESpot: "true"}
	c.Replace(nil, gke)
	first := c.Steering()
	for range 3 {
		c.Replace(nil, gke)
	}
	for range 4 {
		c.Replace(gke, nil)
	}
	if got := c.Steering(); got.String() != first.String() || len(told) != 1 {
		t.Errorf("pods are steered by %q after the nodes are gone, before by %q; it was notified of %d changes", got, first, len(told))
	}
	if allocated := testing.AllocsPerRun(100, func() { c.Steering() }); allocated > 0 {
		t.Errorf("asking costs %v allocations", allocated)
	}
}

// While Karpenter has nodes of a type it makes more of them; when it has none, nothing is known about it but its label.
func TestAMixedMemberUsesItsOtherNodesWhereKarpenterHasNone(t *testing.T) {
	var c nodes.Census
	c.Begin(spottest.MustLabels(t), nil, nil)
	own := map[string]string{spottest.SteerKey: "spot"}
	c.Replace(nil, map[string]string{labelEKS: "SPOT"})
	c.Replace(nil, own)
	if s := c.Steering(); s.Spot.Key != spottest.SteerKey {
		t.Errorf("with nodes of Karpenter's pods go to spot by %s", &s.Spot)
	}
	c.Replace(own, nil)
	var pod corev1.PodSpec
	c.Steering().Steer(&pod, capacity.Spot, nil)
	for _, labels := range []map[string]string{own, {labelEKS: "SPOT"}} {
		if !schedulable(&pod, labels) {
			t.Errorf("a spot pod does not fit %v: %s", labels, capacity.JSONOf(pod))
		}
	}
}

func TestTheConfiguredLabelSteersInMembersThatCarryIt(t *testing.T) {
	market := capacity.NodeLabel{Key: "example.com/market", Spot: []string{"cheap", "idle"}, OnDemand: []string{"firm"}}
	labels := spottest.MustLabels(t, market)
	s := steered(t, labels, map[string]string{market.Key: "cheap"}, map[string]string{market.Key: "firm"})
	if s.Spot.Key != market.Key || s.Spot.Value != "cheap" || s.OnDemand.Value != "firm" {
		t.Errorf("%s", s)
	}
	var pod corev1.PodSpec
	steered(t, labels, map[string]string{market.Key: "cheap"}, map[string]string{market.Key: "idle"}).Steer(&pod, capacity.Spot, nil)
	if !schedulable(&pod, map[string]string{market.Key: "idle"}) || !schedulable(&pod, map[string]string{market.Key: "cheap"}) {
		t.Errorf("the second value of spot is not used: %s", capacity.JSONOf(pod))
	}
	if s := steered(t, labels, map[string]string{spottest.SteerKey: "spot"}); s.Spot.Key != spottest.SteerKey {
		t.Errorf("where nodes carry Karpenter's label alone: %s", s)
	}
	// A label that only spot nodes carry cannot be asked for by on-demand pods, whatever is known.
	aks := capacity.NodeLabel{Key: labelAKS, Spot: []string{"spot"}, OnDemand: []string{"regular"}}
	pod = corev1.PodSpec{}
	spottest.MustLabels(t, aks).Configured().Steer(&pod, capacity.OnDemand, nil)
	if !schedulable(&pod, map[string]string{labelAKSPool: "b"}) {
		t.Errorf("on-demand pods fit no node of AKS: %s", capacity.JSONOf(pod))
	}
}

func TestARegistrationSaysWhatItsPodsAreSteeredBy(t *testing.T) {
	value := ""
	var c nodes.Census
	changes := 0
	c.Begin(spottest.MustLabels(t), func() string { return value }, func(*capacity.Steering) { changes++ })
	c.Replace(nil, map[string]string{labelGKEPool: "a", labelGKESpot: "true"})
	told := c.Steering().String()
	for text, want := range map[string]string{
		"karpenter":        "Spot pods of the member are scheduled by the nodeSelector karpenter.sh/capacity-type=spot, on-demand pods by the nodeSelector karpenter.sh/capacity-type=on-demand.",
		labelGKESpot:       "Spot pods of the member are scheduled by required node affinity: cloud.google.com/gke-spot In (true), on-demand pods by required node affinity: cloud.google.com/gke-spot NotIn (true).",
		" eks, karpenter ": "Spot pods of the member are scheduled by required node affinity: karpenter.sh/capacity-type In (spot) or eks.amazonaws.com/capacityType In (SPOT), on-demand pods by required node affinity: karpenter.sh/capacity-type NotIn (spot) and eks.amazonaws.com/capacityType NotIn (SPOT).",
		"":                 told,
		"openstack":        told,
		"karpenter,":       told,
	} {
		value = text
		if got := c.Steering().String(); got != want {
			t.Errorf("%q: %s", text, got)
		}
	}
	if changes < 4 {
		t.Errorf("it was notified of %d changes", changes)
	}
	labels := spottest.MustLabels(t)
	for _, good := range []string{"", "gke", "aks", "karpenter,eks", spottest.SteerKey} {
		if err := labels.CheckSteerBy(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	if err := labels.CheckSteerBy("openstack"); err == nil || !strings.Contains(err.Error(), `"openstack"`) || !strings.Contains(err.Error(), capacity.RuleSteerBy) {
		t.Errorf("%v", err)
	}
}

// drawTerms draws the required node affinity of a template.
func drawTerms(t *rapid.T) []corev1.NodeSelectorTerm {
	expression := rapid.SampledFrom([]corev1.NodeSelectorRequirement{
		spottest.Requirement("zone", corev1.NodeSelectorOpIn, "a"), spottest.Requirement("zone", corev1.NodeSelectorOpNotIn, "b"), spottest.Requirement("disk", corev1.NodeSelectorOpExists),
		spottest.Requirement(spottest.SteerKey, corev1.NodeSelectorOpIn, "spot"), spottest.Requirement(spottest.SteerKey, corev1.NodeSelectorOpIn, "on-demand"),
		spottest.Requirement(labelEKS, corev1.NodeSelectorOpIn, "SPOT"), spottest.Requirement(labelEKS, corev1.NodeSelectorOpNotIn, "SPOT"),
		spottest.Requirement(labelGKESpot, corev1.NodeSelectorOpDoesNotExist), spottest.Requirement(labelAKS, corev1.NodeSelectorOpNotIn, "spot"),
	})
	list := rapid.SliceOfN(expression, 0, 3)
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) corev1.NodeSelectorTerm { return spottest.Term(list.Draw(t, "term")...) }), 1, 3).Draw(t, "terms")
}

// drawTemplate draws a pod as its template makes it.
func drawTemplate(t *rapid.T) *corev1.Pod {
	pod := spottest.PodWith(nil, nil, rapid.SampledFrom([]map[string]string{nil, {"disk": "ssd"}, {spottest.SteerKey: "spot"}, {labelEKS: "ON_DEMAND", "disk": "ssd"}}).Draw(t, "selector"))
	switch rapid.IntRange(0, 4).Draw(t, "affinity") {
	case 0:
		pod.Spec.Affinity = &corev1.Affinity{}
	case 1:
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
	case 2, 3:
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: spottest.Required(drawTerms(t)...)}}
	}
	return pod
}

// Whatever a template asks for and whatever nodes are there, a patched pod fits no node of the other type, needs no second
// patch, has the shape of its template, and fits a node of its type if the template's other demands leave one.
func TestSteeringComesOnTopOfWhatATemplateAsksFor(t *testing.T) {
	names := slices.Sorted(maps.Keys(providers))
	labels, p := spottest.MustLabels(t), admissiontest.MustPatcher(t)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "provider")
		nodes := providers[name]
		s := steered(t, labels, slices.Concat(nodes.spot, nodes.onDemand)...)
		capacityType := rapid.SampledFrom([]capacity.Type{capacity.Spot, capacity.OnDemand}).Draw(t, "capacity")
		pod := drawTemplate(t)
		r := plan.Reservation{ID: "r", Slot: 1, Capacity: capacityType}
		got := admissiontest.Patched(t, pod, p.AppendPatch(nil, admissiontest.IncomingOf(pod), s, r))
		if again := p.AppendPatch(nil, admissiontest.IncomingOf(got), s, r); len(again) > 0 {
			t.Fatalf("patched again: %s\nafter %s", again, capacity.JSONOf(got.Spec))
		}
		own, other := nodes.spot, nodes.onDemand
		if capacityType == capacity.OnDemand {
			own, other = other, own
		}
		if fitsAny(&got.Spec, other) {
			t.Fatalf("%s: a pod for %s fits a node of the other type: %s", name, capacityType, capacity.JSONOf(got.Spec))
		}
		if !asksForCapacity(labels, &pod.Spec) && fitsAny(&pod.Spec, own) != fitsAny(&got.Spec, own) {
			t.Fatalf("%s: a pod for %s fits %t, as its template %t: %s", name, capacityType, fitsAny(&got.Spec, own), fitsAny(&pod.Spec, own), capacity.JSONOf(got.Spec))
		}
		if of := labels.OfPod(got, nil); of != capacityType && fitsAny(&got.Spec, own) {
			t.Fatalf("%s: a pod for %s is taken for %q: %s", name, capacityType, of, capacity.JSONOf(got.Spec))
		}
		if diff := cmp.Diff(capacity.RequirementsOf(&pod.Spec, "shop", "", labels).Constraints, capacity.RequirementsOf(&got.Spec, "shop", "", labels).Constraints); diff != "" {
			t.Fatalf("the shape has changed: %s", diff)
		}
	})
}

// fitsAny reports whether a pod fits any of the nodes, which are all in zone a and have an SSD.
func fitsAny(pod *corev1.PodSpec, nodes []map[string]string) bool {
	return slices.ContainsFunc(nodes, func(labels map[string]string) bool {
		at := maps.Clone(labels)
		maps.Copy(at, map[string]string{"zone": "a", "disk": "ssd"})
		return schedulable(pod, at)
	})
}

// asksForCapacity reports whether a template asks for a capacity label itself.
func asksForCapacity(labels capacity.Labels, pod *corev1.PodSpec) bool {
	return slices.ContainsFunc(labels.Keys(), func(key string) bool { return strings.Contains(capacity.JSONOf(pod), key) })
}

// What an admission costs where pods are steered by affinity, with one of their own and without.
func BenchmarkAdmitPatchByAffinity(b *testing.B) {
	p := admissiontest.MustPatcher(b)
	s := steered(b, spottest.MustLabels(b), map[string]string{labelGKEPool: "a", labelGKESpot: "true", labelGKEProvisions: "spot"})
	r := plan.Reservation{ID: "0b5c2c3e-3f6f-4a52-9d1b-000000000001", Slot: 57, Capacity: capacity.Spot}
	for name, own := range map[string]*corev1.NodeSelector{
		"pod without one": nil, "pod with one": spottest.Required(spottest.Term(spottest.Requirement("zone", corev1.NodeSelectorOpIn, "a", "b"))),
	} {
		b.Run(name, func(b *testing.B) {
			in := &admission.Incoming{ReplicaSet: true, Labels: map[string]string{"app": "web"}, Affinity: own != nil, NodeAffinity: own != nil, Required: own}
			dst := make([]byte, 0, 4096)
			b.ReportAllocs()
			for b.Loop() {
				dst = p.AppendPatch(dst[:0], in, s, r)
			}
		})
	}
}
