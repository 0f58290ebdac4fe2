package capacity

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func mustLabels(t testing.TB, configured ...NodeLabel) Labels {
	t.Helper()
	c, err := NewLabels(configured...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// steersBy returns the node label by which pods go to a capacity type where nothing is known of a member's nodes.
func steersBy(c Labels, capacity Type) (key, value string) {
	var spec corev1.PodSpec
	c.Configured().Steer(&spec, capacity, nil)
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

const testZone = corev1.LabelTopologyZone

// spreading is a pod spec with constraints over a key that must hold.
func spreading(key string, change func(*corev1.TopologySpreadConstraint)) *corev1.PodSpec {
	c := corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule}
	if change != nil {
		change(&c)
	}
	return &corev1.PodSpec{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{c}}
}

const labelGKEPool = "cloud.google.com/gke-nodepool"
