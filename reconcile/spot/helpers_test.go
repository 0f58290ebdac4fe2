package spot

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
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

func policyOf(percent, floor int) policy.Policy {
	return policy.Policy{Percentage: &percent, PercentageSource: policy.SourceWorkload, MinOnDemand: &floor, MinOnDemandSource: policy.SourceWorkload}
}

func drawMix(t *rapid.T) policy.Mix {
	return policy.Mix{
		Percent: rapid.OneOf(rapid.IntRange(0, 100), rapid.SampledFrom([]int{0, 30, 50, 70, 100})).Draw(t, "percent"),
		Floor:   rapid.OneOf(rapid.IntRange(0, 30), rapid.IntRange(0, 3)).Draw(t, "floor"), Managed: true,
	}
}

var testKeys = policy.Keys{Prefix: policy.DefaultPrefix}

func annotations(pairs ...string) map[string]string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[testKeys.Prefix+"/"+pairs[i]] = pairs[i+1]
	}
	return m
}

// mustWindow parses a window in UTC or, where one is given, another zone.
func mustWindow(t testing.TB, schedule, duration string, zone ...string) *policy.Window {
	t.Helper()
	w, err := policy.ParseWindow(schedule, duration, strings.Join(zone, ""))
	if err != nil {
		t.Fatal(err)
	}
	return w
}
