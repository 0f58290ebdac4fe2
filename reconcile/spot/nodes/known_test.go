package nodes_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/nodes"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
)

// node is one that Karpenter has made, of a capacity type.
func node(name, capacityType string, taints ...corev1.Taint) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{spottest.SteerKey: capacityType}}, Spec: corev1.NodeSpec{Taints: taints}}
}

func TestWhoeverFollowsATableHearsWhichNodesGo(t *testing.T) {
	var signs nodes.Interruptions // those that are known without configuration
	table, heard := nodes.NewTable(), 0
	table.Announced = func(before, now *plan.Interruption) {
		if before == nil && now != nil {
			heard++
		}
	}
	table.Set(node("a", "spot"), &signs, spottest.Epoch)
	table.Set(node("b", "spot"), &signs, spottest.Epoch)
	if table.InterruptionOf("a") != nil || heard != 0 {
		t.Fatalf("nodes that stay are said to go: %+v, heard of %d", table.InterruptionOf("a"), heard)
	}
	going := corev1.Taint{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}
	table.Set(node("a", "spot", going), &signs, spottest.Epoch)
	table.Set(node("a", "spot", going), &signs, spottest.Epoch.Add(time.Minute))
	if interruption := table.InterruptionOf("a"); interruption == nil || interruption.Gone || table.InterruptionOf("b") != nil || heard != 1 {
		t.Errorf("a: %+v, b: %+v, heard of %d", interruption, table.InterruptionOf("b"), heard)
	}
	table.Remove("a", spottest.Epoch)
	labels, known := table.LabelsOf("a")
	if interruption := table.InterruptionOf("a"); interruption == nil || !interruption.Gone || !known || labels[spottest.SteerKey] != "spot" {
		t.Errorf("a node that has gone: %+v, labels %v", interruption, labels)
	}
}

// Pods are steered by the label that a member's nodes carry, whichever provider made them.
func TestPodsAreSteeredByTheLabelThatNodesCarry(t *testing.T) {
	var census nodes.Census
	changes := 0
	census.Begin(spottest.MustLabels(t), nil, func(*capacity.Steering) { changes++ })
	selected := func() map[string]string {
		var spec corev1.PodSpec
		census.Steering().Steer(&spec, capacity.Spot, nil)
		return spec.NodeSelector
	}
	if got := selected(); len(got) != 1 || got[spottest.SteerKey] != "spot" {
		t.Errorf("before a node is known: %v", got)
	}
	google := map[string]string{"cloud.google.com/gke-spot": "true"}
	census.Replace(nil, google)
	census.Replace(nil, map[string]string{"cloud.google.com/gke-provisioning": "standard"})
	if got := selected(); got[spottest.SteerKey] != "" || changes == 0 {
		t.Errorf("GKE's nodes came, and pods are steered by %v after %d changes", got, changes)
	}
}

func TestWhatNodePoolsOfferIsReadFromTheMember(t *testing.T) {
	autoscalers := nodes.NewAutoscalers(func() client.Reader { return fake.NewClientBuilder().Build() })
	values, err := autoscalers.PoolValues(t.Context())
	if err != nil || len(values) > 0 {
		t.Errorf("a member without Karpenter: %v, %v", values, err)
	}
}

func TestASignThatCannotBeIsRefused(t *testing.T) {
	for name, sign := range map[string]nodes.Sign{
		"neither a taint nor a condition": {}, "both": {Taint: "a", Condition: "B"}, "a deadline in the past": {Taint: "a", Within: -time.Second},
	} {
		if _, err := nodes.NewInterruptions(sign); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
