package spot

import (
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/randfill"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/nodes"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// A cache of 80,000 pods must not hold 80,000 affinities.
func TestTheCacheKeepsTheCapacityTypeOfAnAffinityAndNotTheAffinity(t *testing.T) {
	c := spottest.MustLabels(t)
	kind := podKind(spottest.DefaultKeys, c)
	keep := func(selector map[string]string, capacityType capacity.Type) *corev1.Pod {
		t.Helper()
		pod, kept := spottest.PodWith(nil, nil, selector), spottest.PodWith(nil, nil, nil)
		steered(t, c, map[string]string{labelAKSPool: "a"}).Steer(&pod.Spec, capacityType, nil)
		kind.Keep(pod, kept)
		if got := c.OfPod(kept, nil); got != capacityType {
			t.Errorf("of a pod for %s the cache shows %q: %s", capacityType, got, capacity.JSONOf(kept.Spec))
		}
		return kept
	}
	for _, capacityType := range []capacity.Type{capacity.Spot, capacity.OnDemand} {
		if first, second := keep(nil, capacityType), keep(map[string]string{spottest.SteerKey: "strange"}, capacityType); first.Spec.Affinity != second.Spec.Affinity {
			t.Errorf("two pods for %s hold an affinity each", capacityType)
		}
	}
}

// A controller that Owns ReplicaSets indexes them by their controller as well: the cache of a member keeps that index once.
func TestReplicaSetsHaveTheIndexOfControllersThatOwnThem(t *testing.T) {
	owned := clusters.Kind{Object: &appsv1.ReplicaSet{}, Indexes: map[string]client.IndexerFunc{object.ControllerIndex: object.ControllerUID}}
	merged, err := clusters.MergeKinds([]clusters.Kind{replicaSetKind(spottest.DefaultKeys, spottest.MustLabels(t))}, []clusters.Kind{owned})
	if err != nil {
		t.Fatal(err)
	}
	if len(merged) != 1 || len(merged[0].Indexes) != 1 {
		t.Errorf("%d kinds, indexes of the first: %v", len(merged), slices.Sorted(maps.Keys(merged[0].Indexes)))
	}
}

// hostile fills an object with whatever decodes, and has it show what a hub looks for.
func hostile(seed int64, obj client.Object) {
	randfill.NewWithSeed(seed).NilChance(.4).NumElements(0, 3).MaxDepth(12).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewQuantity(c.Int63(), resource.DecimalSI)
		},
		func(*metav1.FieldsV1, randfill.Continue) {},
		func(t *corev1.Taint, c randfill.Continue) {
			c.FillNoCustom(t)
			t.Key = corev1.TaintNodeOutOfService
		},
		func(is *corev1.NodeCondition, c randfill.Continue) {
			c.FillNoCustom(is)
			is.Type, is.Status = []corev1.NodeConditionType{corev1.NodeReady, "PreemptScheduled"}[c.Intn(2)], corev1.ConditionTrue
		},
		func(is *corev1.PodCondition, c randfill.Continue) {
			c.FillNoCustom(is)
			is.Type, is.Reason = []corev1.PodConditionType{corev1.PodReady, corev1.PodScheduled}[c.Intn(2)], corev1.PodReasonUnschedulable
		},
	).Fill(obj)
	keys, annotations, labels := spottest.DefaultKeys, map[string]string{}, map[string]string{}
	values := []string{"", "true", "-1", "{}", `{"owner":"a","hash":7}`, `{"owner":"a","at":"2026-01-01T00:00:00Z"}`}
	value := func(i int) string { return values[(int(seed)+i)%len(values)] }
	for i, key := range []string{
		keys.Released(), keys.Reservation(), keys.Tried(), keys.SpotPercentage(), policy.DeletionCost, annotationRevision,
	} {
		annotations[key] = value(i)
	}
	for i, key := range []string{keys.Enabled(), keys.Slot(), plan.TemplateHash, spottest.SteerKey} {
		labels[key] = value(i)
	}
	obj.SetAnnotations(annotations)
	obj.SetLabels(labels)
}

// A member may answer with whatever decodes. A panic would take the whole kind out of the member's cache, or end the process where what is
// kept is read.
func TestWhateverDecodesCanBeKeptIndexedAndRead(t *testing.T) {
	s := newShell(t, nil, false)
	labels := spottest.MustLabels(t)
	for _, kind := range Kinds(spottest.DefaultKeys, labels, nodes.Interruptions{}) {
		for seed := range int64(200) {
			from, into := kind.Object.DeepCopyObject().(client.Object), kind.Object.DeepCopyObject().(client.Object)
			hostile(seed, from)
			into.SetNamespace(from.GetNamespace()) // this and the next are kept of every object
			into.SetName(from.GetName())
			into.SetUID(from.GetUID())
			into.SetCreationTimestamp(from.GetCreationTimestamp())
			into.SetDeletionTimestamp(from.GetDeletionTimestamp())
			into.SetOwnerReferences(from.GetOwnerReferences())
			kind.Keep(from, into)
			for _, index := range kind.Indexes {
				index(into)
			}
			s.cache(into)
			if pod, ok := from.(*corev1.Pod); ok { // as a live list shows it
				s.podFacts(s.follower.directory, pod)
				capacity.RequirementsOf(&pod.Spec, pod.Namespace, pod.Name, labels)
			}
			s.follower.gone(into)
		}
	}
}
