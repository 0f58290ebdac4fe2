package spot

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
)

func mustLabels(t testing.TB, configured ...capacity.NodeLabel) capacity.Labels {
	t.Helper()
	c, err := capacity.NewLabels(configured...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// steersBy returns the node label by which pods go to a capacity type where nothing is known of a member's nodes.
func steersBy(c capacity.Labels, capacityType capacity.Type) (key, value string) {
	var spec corev1.PodSpec
	c.Configured().Steer(&spec, capacityType, nil)
	for key, value = range spec.NodeSelector {
		return key, value
	}
	return "", ""
}

func requirement(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: op, Values: values}
}

func term(expressions ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: expressions}
}

func required(terms ...corev1.NodeSelectorTerm) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: terms}
}
