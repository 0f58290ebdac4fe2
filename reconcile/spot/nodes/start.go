package nodes

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/when"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/shortage"
)

// nodeStart is what is known about how a node starts.
type nodeStart struct {
	made   time.Time
	ready  time.Time // since when it has been ready; zero: it is not, or does not say
	closed bool      // a taint keeps pods away until something on the node is ready
}

// startTaints are those that are on a node until it can take pods.
var startTaints = []string{
	corev1.TaintNodeNotReady, corev1.TaintNodeNetworkUnavailable, "node.cloudprovider.kubernetes.io/uninitialized", "karpenter.sh/unregistered",
}

// isStartTaint recognises the taints of Kubernetes and Karpenter, those that storage and network drivers have until their agent
// is ready, and those that are named as Cluster Autoscaler asks for.
func isStartTaint(t *corev1.Taint) bool {
	return slices.Contains(startTaints, t.Key) || strings.HasSuffix(t.Key, "/agent-not-ready") ||
		strings.HasPrefix(t.Key, "startup-taint.cluster-autoscaler.kubernetes.io/") || strings.HasPrefix(t.Key, "ignore-taint.cluster-autoscaler.kubernetes.io/")
}

// keepStart copies what shows a node's start: its readiness, without its beat, and start taints. It comes after
// [Interruptions.keepSigns], which may have copied one of them.
func keepStart(src, dst *corev1.Node) {
	for i := range src.Spec.Taints {
		t := &src.Spec.Taints[i]
		if isStartTaint(t) && !slices.ContainsFunc(dst.Spec.Taints, func(kept corev1.Taint) bool { return kept.MatchTaint(t) }) {
			dst.Spec.Taints = append(dst.Spec.Taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
		}
	}
	if slices.ContainsFunc(dst.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady }) {
		return
	}
	for i := range src.Status.Conditions {
		if c := &src.Status.Conditions[i]; c.Type == corev1.NodeReady {
			dst.Status.Conditions = append(dst.Status.Conditions, corev1.NodeCondition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime})
		}
	}
}

func startOf(node *corev1.Node) nodeStart {
	s := nodeStart{made: node.CreationTimestamp.Time, closed: slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return isStartTaint(&t) })}
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			s.ready = c.LastTransitionTime.Time
		}
	}
	return s
}

// coming reports whether a node is still starting, or has just started so that pods are not bound to it yet. One that takes
// longer than the limit will not.
func (s *nodeStart) coming(now time.Time, limit time.Duration) bool {
	if s.made.IsZero() || now.Sub(s.made) >= limit {
		return false
	}
	return s.closed || s.ready.IsZero() || now.Sub(s.ready) < shortage.BindTime
}

// joined returns when the node could take pods, as far as it says.
func (s *nodeStart) joined() time.Time { return when.Later(s.made, s.ready) }

// JoinedOf returns when a node came; zero: that is not known.
func (t *Table) JoinedOf(name string) time.Time {
	if f := t.find(name); f != nil {
		return f.start.joined()
	}
	return time.Time{}
}

// MadeOf returns when a node was made; zero: that is not known.
func (t *Table) MadeOf(name string) time.Time {
	if f := t.find(name); f != nil {
		return f.start.made
	}
	return time.Time{}
}

// Starting reports whether a node is on its way that a pod can have. One that takes longer than the limit will not come.
func (t *Table) Starting(pod *Awaited, labels capacity.Labels, now time.Time, limit time.Duration) bool {
	needs := capacity.NodeRequirementsOf(pod.Requirements)
	t.mu.RLock()
	defer t.mu.RUnlock()
	for name, facts := range t.known {
		if facts.interruption == nil && facts.start.coming(now, limit) && labels.OfNode(facts.labels) == pod.Capacity && needs.Fit(name, facts.labels) {
			return true
		}
	}
	return false
}

// Autoscaled takes in that an autoscaler was seen at work.
func (t *Table) Autoscaled() {
	if !t.scaled.Swap(true) {
		t.generation.Add(1)
	}
}

// Fits reports whether a node of a capacity type is what a pod asks for.
func (t *Table) Fits(needs capacity.NodeRequirements, labels capacity.Labels, capacityType capacity.Type) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for name, facts := range t.known {
		if labels.OfNode(facts.labels) == capacityType && needs.Fit(name, facts.labels) {
			return true
		}
	}
	return false
}
