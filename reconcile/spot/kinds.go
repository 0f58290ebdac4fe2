package spot

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/nodes"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// Annotations that the deployment controller keeps on its ReplicaSets.
const (
	annotationRevision        = "deployment.kubernetes.io/revision"
	annotationDesiredReplicas = "deployment.kubernetes.io/desired-replicas"
)

// podOwnerIndex finds the pods of a controller by its UID, released ones included, which have no owner reference any more. It is asked
// within the controller's namespace only; see [ownerKey].
const podOwnerIndex = "plimsoll.podOwner"

// nodeNameIndex finds the pods of a node.
const nodeNameIndex = "plimsoll.nodeName"

// Kinds declares what spot placement caches in a member. Workloads are cached by their enabled label and pods by their
// slot label, so that memory follows what is managed and not the size of the member.
func Kinds(keys policy.Keys, capacityType capacity.Labels, interruptions nodes.Interruptions) []clusters.Kind {
	return []clusters.Kind{
		DeploymentKind(keys), StatefulSetKind(keys, capacityType), replicaSetKind(keys, capacityType), podKind(keys, capacityType), namespaceKind(keys), nodeKind(capacityType, interruptions),
	}
}

// DeploymentKind caches the Deployments that say whether they ask for placement.
func DeploymentKind(keys policy.Keys) clusters.Kind {
	return clusters.Kind{Object: &appsv1.Deployment{}, Labels: labelledSelector(keys), Keep: func(from, into client.Object) {
		src, dst := from.(*appsv1.Deployment), into.(*appsv1.Deployment)
		dst.Labels = pick(src.Labels, keys.Enabled())
		dst.Annotations = pickPrefix(src.Annotations, keys.Prefix)
		dst.Spec.Replicas, dst.Spec.MinReadySeconds = src.Spec.Replicas, src.Spec.MinReadySeconds
		dst.Status.ObservedGeneration = src.Status.ObservedGeneration
		dst.Status.Replicas = src.Status.Replicas
		dst.Status.UpdatedReplicas = src.Status.UpdatedReplicas
		dst.Spec.Paused, dst.Status.Conditions = src.Spec.Paused, nil
		if at := slices.IndexFunc(src.Status.Conditions, gaveUp); at >= 0 {
			c := &src.Status.Conditions[at]
			dst.Status.Conditions = []appsv1.DeploymentCondition{{Type: c.Type, Status: c.Status, Reason: c.Reason}}
		}
	}}
}

// StatefulSetKind caches the StatefulSets that ask for placement.
func StatefulSetKind(keys policy.Keys, capacityType capacity.Labels) clusters.Kind {
	return clusters.Kind{Object: &appsv1.StatefulSet{}, Labels: enabledSelector(keys), Keep: func(from, into client.Object) {
		src, dst := from.(*appsv1.StatefulSet), into.(*appsv1.StatefulSet)
		dst.Labels = pick(src.Labels, keys.Enabled())
		dst.Annotations = pickPrefix(src.Annotations, keys.Prefix)
		dst.Spec.Replicas, dst.Spec.Selector, dst.Spec.Ordinals = src.Spec.Replicas, src.Spec.Selector, src.Spec.Ordinals
		dst.Spec.UpdateStrategy, dst.Spec.MinReadySeconds = src.Spec.UpdateStrategy, src.Spec.MinReadySeconds
		keepTemplate(dst, &src.Spec.Template, &dst.Spec.Template, capacityType)
		dst.Status.ObservedGeneration = src.Status.ObservedGeneration
		dst.Status.Replicas = src.Status.Replicas
		dst.Status.CurrentRevision, dst.Status.UpdateRevision = src.Status.CurrentRevision, src.Status.UpdateRevision
		dst.Status.UpdatedReplicas = src.Status.UpdatedReplicas
	}}
}

// replicaSetKind caches the link between pods and Deployments. ReplicaSets do not carry the workload's labels, so all of
// them are cached, in a few hundred bytes each. Those without a controller are workloads themselves.
func replicaSetKind(keys policy.Keys, capacityType capacity.Labels) clusters.Kind {
	return clusters.Kind{Object: &appsv1.ReplicaSet{}, Keep: func(from, into client.Object) {
		src, dst := from.(*appsv1.ReplicaSet), into.(*appsv1.ReplicaSet)
		shape := dst.Annotations[annotationShape] // by another declaration of the kind
		dst.Annotations = pick(src.Annotations, annotationRevision, annotationDesiredReplicas)
		if metav1.GetControllerOfNoCopy(src) == nil {
			dst.Labels = pick(src.Labels, keys.Enabled())
			dst.Annotations = pickPrefix(src.Annotations, keys.Prefix)
			dst.Spec.MinReadySeconds = src.Spec.MinReadySeconds
		}
		dst.Spec.Replicas, dst.Spec.Selector = src.Spec.Replicas, src.Spec.Selector
		dst.Status.Replicas, dst.Status.ObservedGeneration = src.Status.Replicas, src.Status.ObservedGeneration
		if replicasOf(src.Spec.Replicas) > 0 { // of the others, which a Deployment keeps to go back to, nobody asks
			dst.Spec.Template.Labels = src.Spec.Template.Labels
			keepShape(dst, shape, &src.Spec.Template.Spec, "", capacityType)
		}
	}, Indexes: map[string]client.IndexerFunc{object.ControllerIndex: object.ControllerUID}}
}

// podKind caches the pods that hold a slot, those that were released, and probes, which carry the label too.
func podKind(keys policy.Keys, capacityType capacity.Labels) clusters.Kind {
	managed, err := labels.NewRequirement(keys.Slot(), selection.Exists, nil)
	if err != nil {
		panic(err) // NewKeys validated the prefix: a programming error
	}
	return clusters.Kind{Object: &corev1.Pod{}, Labels: labels.NewSelector().Add(*managed), Keep: func(from, into client.Object) {
		src, dst := from.(*corev1.Pod), into.(*corev1.Pod)
		shape := dst.Annotations[annotationShape] // by another declaration of the kind
		dst.Labels = pick(src.Labels, keys.Slot(), plan.TemplateHash)
		dst.Annotations = pickPrefix(src.Annotations, keys.Prefix, policy.DeletionCost, plan.AnnotationDoNotDisrupt, plan.AnnotationSafeToEvict)
		dst.Spec.NodeName = src.Spec.NodeName
		dst.Spec.NodeSelector = pick(src.Spec.NodeSelector, capacityType.Keys()...)
		dst.Spec.Affinity = capacityType.KeepAffinity(dst.Spec.NodeSelector, src.Spec.Affinity)
		if src.Spec.NodeName == "" {
			keepShape(dst, shape, &src.Spec, src.Name, capacityType)
		}
		dst.Spec.SchedulingGates = src.Spec.SchedulingGates
		dst.Status.NominatedNodeName = src.Status.NominatedNodeName
		dst.Spec.ActiveDeadlineSeconds, dst.Status.StartTime = src.Spec.ActiveDeadlineSeconds, src.Status.StartTime
		dst.Status.Phase, dst.Status.Conditions = src.Status.Phase, nil
		for _, condition := range src.Status.Conditions {
			// Of the scheduler's word only its refusal is needed, while no node has the pod.
			if condition.Type == corev1.PodReady || (condition.Reason == corev1.PodReasonUnschedulable && src.Spec.NodeName == "") {
				dst.Status.Conditions = append(dst.Status.Conditions, corev1.PodCondition{Type: condition.Type, Status: condition.Status,
					Reason: condition.Reason, LastTransitionTime: condition.LastTransitionTime})
			}
		}
	}, Indexes: map[string]client.IndexerFunc{podOwnerIndex: ownerOfPod(keys), nodeNameIndex: nodeOfPod, releasedIndex: releasedPod(keys)}}
}

// namespaceKind keeps labels whole: the configuration's namespaceSelector may ask for any of them.
func namespaceKind(keys policy.Keys) clusters.Kind {
	return clusters.Kind{Object: &corev1.Namespace{}, Keep: func(from, into client.Object) {
		into.SetLabels(from.GetLabels())
		into.SetAnnotations(pickPrefix(from.GetAnnotations(), keys.Prefix))
	}}
}

func nodeKind(_ capacity.Labels, interruptions nodes.Interruptions) clusters.Kind {
	return clusters.Kind{Object: &corev1.Node{}, Keep: func(from, into client.Object) {
		src, dst := from.(*corev1.Node), into.(*corev1.Node)
		dst.Labels = internedLabels.Labels(src.Labels) // whole: a template may ask for any of them
		interruptions.Keep(src, dst)
	}}
}

// ownerOfPod indexes a pod by its controller, or by the one that it had before it was released.
func ownerOfPod(keys policy.Keys) client.IndexerFunc {
	return func(obj client.Object) []string {
		if pod, ok := obj.(*corev1.Pod); ok {
			if uid := ownerOf(keys, pod); uid != "" {
				return []string{string(uid)}
			}
		}
		return nil
	}
}

func releasedPod(keys policy.Keys) client.IndexerFunc {
	return func(obj client.Object) []string {
		if pod, ok := obj.(*corev1.Pod); ok && releasedOf(keys, pod) != nil {
			return []string{"true"}
		}
		return nil
	}
}

func nodeOfPod(obj client.Object) []string {
	if pod, ok := obj.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
		return []string{pod.Spec.NodeName}
	}
	return nil
}

func enabledSelector(keys policy.Keys) labels.Selector {
	return labels.SelectorFromSet(labels.Set{keys.Enabled(): policy.EnabledValue})
}

// labelledSelector selects what has the enabled label with any value: that of a WebApp's Deployment is "false" when it asks
// for no placement, and the Deployments of both are in one cache.
func labelledSelector(keys policy.Keys) labels.Selector {
	has, err := labels.NewRequirement(keys.Enabled(), selection.Exists, nil)
	if err != nil {
		panic(err) // NewKeys validated the prefix: a programming error
	}
	return labels.NewSelector().Add(*has)
}

// pick returns the entries of from with the given keys; nil when there are none.
func pick(from map[string]string, keys ...string) map[string]string {
	var into map[string]string
	for _, key := range keys {
		if value, ok := from[key]; ok {
			if into == nil {
				into = make(map[string]string, len(keys))
			}
			into[key] = value
		}
	}
	return into
}

// pickPrefix returns the entries of from below prefix, and those with one of the further keys; nil when there are none.
func pickPrefix(from map[string]string, prefix string, keys ...string) map[string]string {
	into := pick(from, keys...)
	for key, value := range from {
		if rest, ok := strings.CutPrefix(key, prefix); ok && strings.HasPrefix(rest, "/") {
			if into == nil {
				into = make(map[string]string, 2)
			}
			into[key] = value
		}
	}
	return into
}
