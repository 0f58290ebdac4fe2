package kube

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/klog/v2"
)

// fits reports whether a pod may be on a node with these labels and taints, as far as its nodeSelector, its required node
// affinity and its tolerations say.
func fits(pod *corev1.PodSpec, nodeLabels labels.Set, taints []corev1.Taint) bool {
	if !labels.SelectorFromSet(pod.NodeSelector).Matches(nodeLabels) {
		return false
	}
	if affinity := pod.Affinity; affinity != nil && affinity.NodeAffinity != nil {
		required := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		if required != nil && !anyTerm(required.NodeSelectorTerms, nodeLabels) {
			return false
		}
	}
	for i := range taints {
		if taints[i].Effect != corev1.TaintEffectPreferNoSchedule && !tolerated(pod.Tolerations, &taints[i]) {
			return false
		}
	}
	return true
}

func anyTerm(terms []corev1.NodeSelectorTerm, nodeLabels labels.Set) bool {
	for _, term := range terms {
		if termMatches(term, nodeLabels) {
			return true
		}
	}
	return false
}

// termMatches: an empty term matches nothing, and one that names fields is for a node that is there already.
func termMatches(term corev1.NodeSelectorTerm, nodeLabels labels.Set) bool {
	if len(term.MatchFields) > 0 || len(term.MatchExpressions) == 0 {
		return false
	}
	for _, expression := range term.MatchExpressions {
		requirement, err := labels.NewRequirement(expression.Key, operators[expression.Operator], expression.Values)
		if err != nil || !requirement.Matches(nodeLabels) {
			return false
		}
	}
	return true
}

var operators = map[corev1.NodeSelectorOperator]selection.Operator{
	corev1.NodeSelectorOpIn: selection.In, corev1.NodeSelectorOpNotIn: selection.NotIn,
	corev1.NodeSelectorOpExists: selection.Exists, corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist,
	corev1.NodeSelectorOpGt: selection.GreaterThan, corev1.NodeSelectorOpLt: selection.LessThan,
}

func tolerated(tolerations []corev1.Toleration, taint *corev1.Taint) bool {
	for i := range tolerations {
		if tolerations[i].ToleratesTaint(klog.Background(), taint, false) {
			return true
		}
	}
	return false
}

// room is what a node still has to give.
type room struct{ pods, milliCPU, memory int64 }

func roomOf(capacity corev1.ResourceList) room {
	return room{capacity.Pods().Value(), capacity.Cpu().MilliValue(), capacity.Memory().Value()}
}

// take puts a pod into the room, if it fits.
func (r *room) take(pod *corev1.PodSpec) bool {
	left := *r
	left.pods--
	for i := range pod.Containers {
		requests := pod.Containers[i].Resources.Requests
		left.milliCPU -= requests.Cpu().MilliValue()
		left.memory -= requests.Memory().Value()
	}
	if left.pods < 0 || left.milliCPU < 0 || left.memory < 0 {
		return false
	}
	*r = left
	return true
}

// unschedulable reports whether the scheduler has found no node for a pod.
func unschedulable(pod *corev1.Pod) bool {
	if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
		return false
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled {
			return condition.Status == corev1.ConditionFalse && condition.Reason == corev1.PodReasonUnschedulable
		}
	}
	return false
}

// finished reports whether a pod takes no room any more.
func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// onlyThere reports whether a pod is on every node, or its node's own, and so keeps none from being empty.
func onlyThere(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && (owner.Kind == "DaemonSet" || owner.Kind == "Node")
}
