package spottest

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// MustLabels returns node labels of a configuration that is right.
func MustLabels(t testing.TB, configured ...capacity.NodeLabel) capacity.Labels {
	t.Helper()
	c, err := capacity.NewLabels(configured...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// SteersBy returns the node label by which pods go to a capacity type where nothing is known about a member's nodes.
func SteersBy(c capacity.Labels, capacityType capacity.Type) (key, value string) {
	var spec corev1.PodSpec
	c.Configured().Steer(&spec, capacityType, nil)
	for key, value = range spec.NodeSelector {
		return key, value
	}
	return "", ""
}

// Requirement is one requirement of a node selector.
func Requirement(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: op, Values: values}
}

// Term is a term of requirements.
func Term(expressions ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: expressions}
}

// Required is a node selector of terms.
func Required(terms ...corev1.NodeSelectorTerm) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: terms}
}

// PolicyOf is a policy with a percentage and a floor that the workload itself has.
func PolicyOf(percent, floor int) policy.Policy {
	return policy.Policy{Percentage: &percent, PercentageSource: policy.SourceWorkload, MinOnDemand: &floor, MinOnDemandSource: policy.SourceWorkload}
}

// DrawMix draws a mix, often one of those that people choose.
func DrawMix(t *rapid.T) policy.Mix {
	return policy.Mix{
		Percent: rapid.OneOf(rapid.IntRange(0, 100), rapid.SampledFrom([]int{0, 30, 50, 70, 100})).Draw(t, "percent"),
		Floor:   rapid.OneOf(rapid.IntRange(0, 30), rapid.IntRange(0, 3)).Draw(t, "floor"), Managed: true,
	}
}

// DefaultKeys are the keys with the default prefix.
var DefaultKeys = policy.Keys{Prefix: policy.DefaultPrefix}

// Annotations returns annotations by their keys without the prefix, and values.
func Annotations(pairs ...string) map[string]string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[DefaultKeys.Prefix+"/"+pairs[i]] = pairs[i+1]
	}
	return m
}

// MustWindow parses a window in UTC or, where one is given, another zone.
func MustWindow(t testing.TB, schedule, duration string, zone ...string) *policy.Window {
	t.Helper()
	w, err := policy.ParseWindow(schedule, duration, strings.Join(zone, ""))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// SteerKey is the node label by which Karpenter distinguishes capacity types.
const SteerKey = "karpenter.sh/capacity-type"

// ByConfiguration is how pods are steered where nothing is known about a member's nodes.
var ByConfiguration = func() *capacity.Steering {
	labels, err := capacity.NewLabels()
	if err != nil {
		panic(err)
	}
	return labels.Configured()
}()

// TB is what rapid's T and testing's have in common.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// PodWith returns a pod.
func PodWith(labels, notes, selector map[string]string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: notes}, Spec: corev1.PodSpec{NodeSelector: selector}}
}

// SpotOnly has every replica on spot.
var SpotOnly = policy.Mix{Percent: 100, Managed: true}

// UpTo returns the numbers below n.
func UpTo(n int) (slots []int) {
	for i := range n {
		slots = append(slots, i)
	}
	return slots
}

// OwnerUID is the UID of the only owner.
const OwnerUID = types.UID("owner")

// Epoch is when tests begin.
var Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
