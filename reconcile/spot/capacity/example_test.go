package capacity_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
)

// Nodes say by a label which capacity they are, and pods are sent to it by the same label.
func ExampleNewLabels() {
	labels, err := capacity.NewLabels()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(labels.OfNode(map[string]string{"karpenter.sh/capacity-type": "spot"}))
	fmt.Println(labels.OfNode(map[string]string{"eks.amazonaws.com/capacityType": "ON_DEMAND"}))

	// A cluster with labels of its own.
	labels, err = capacity.NewLabels(capacity.NodeLabel{Key: "example.com/market", Spot: []string{"cheap"}, OnDemand: []string{"firm"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	var pod corev1.PodSpec
	labels.Configured().Steer(&pod, capacity.Spot, nil)
	fmt.Println(pod.NodeSelector)
	// Output:
	// spot
	// on-demand
	// map[example.com/market:cheap]
}
