package plan

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// NoSlot is the slot of a pod that holds none.
const NoSlot = -1

// Annotations by which a pod asks to be left where it is.
const (
	AnnotationDoNotDisrupt = "karpenter.sh/do-not-disrupt"                    // of Karpenter: "true"
	AnnotationSafeToEvict  = "cluster-autoscaler.kubernetes.io/safe-to-evict" // of Cluster Autoscaler: "false"
)

// Pod is what placement knows of one pod. Use [PodOf] to read it off a pod.
//
// The fields that a plan reads of every pod come first, in one cache line: a plan passes over the pods of its workload about twenty
// times, and those of a very large one do not fit into the processor's caches.
type Pod struct {
	// Ready is the pod's own condition.
	Ready bool
	// Bound says that a node has it.
	Bound bool
	// Moved says that the pod replaces one that we evicted.
	Moved bool
	// Finished pods have succeeded or failed, and run nothing any more.
	Finished bool
	// Evicted says that we evicted it, as far as we know, or saw by a live read that it is gone, and the cache does not show
	// that yet.
	Evicted bool
	// NodeComing says that a node is on its way for the pod, or set aside for it, by a sign that an autoscaler or the scheduler
	// gives: it waits for that node, and does not show that capacity is missing.
	NodeComing bool
	// DoNotDisrupt says that the pod asks to be left where it is: by karpenter.sh/do-not-disrupt: "true" or
	// cluster-autoscaler.kubernetes.io/safe-to-evict: "false".
	DoNotDisrupt bool
	// DeletionCost is the annotation's.
	DeletionCost policy.Cost
	// Slot that the pod's label names; NoSlot when it has none, or not a number.
	Slot int
	// Capacity of its node or, while no node has it yet, what its spec asks for.
	Capacity capacity.Type
	// Interruption is set by the caller of a pod whose node goes or has gone; nil: none. Pods of a node may share it.
	Interruption *Interruption
	// Released is set of a pod that has left its ReplicaSet; Owner is then the UID of that ReplicaSet. Pods that share it
	// only read it.
	Released *Released

	UID types.UID
	// Owner is the UID of the controller: a ReplicaSet or a StatefulSet.
	Owner types.UID
	// GoneBy is when a pod that is being deleted should be gone; zero: it is not being deleted.
	GoneBy time.Time
	// Version is the resourceVersion as a number; 0 when it is none. Of two facts about a pod the higher version counts.
	Version uint64

	// Created is the time of its creation, in whole seconds.
	Created time.Time
	// UnreadySince is when Ready last changed or, if it never did, the creation: of a pod that is ready it is since when.
	UnreadySince time.Time
	Name         string

	// UnschedulableSince is when the scheduler first found no node for the pod; zero: it did not say so, or a node has it.
	UnschedulableSince time.Time
	// TriedUntil is until when an ordinal of a StatefulSet is left on its capacity type, for when it was moved to the other it found
	// no node; zero: it may be moved. [PodOf] reads what the pod itself says, and the caller adds what it knows.
	TriedUntil time.Time
	// Budgets are set by the caller: indexes into [Observed.Budgets] of all that select the pod. Pods may share the slice.
	Budgets []int
	// Reservation is the id of the reservation that the pod was admitted on; empty: none.
	Reservation string
	// Node is the name of its node; empty: it has none.
	Node string
	// NodeJoined is set by the caller: when the pod's node came; zero: that is not known, or it has none.
	NodeJoined time.Time
	// Domains are set by the caller: in which domain of each of its owner's [Spread]s the pod runs, negative for none; nil: that is
	// not known, or it has no node. Pods of a node may share them.
	Domains []int32
	// Hash is the pod-template-hash of a ReplicaSet's pod; empty: it has none, and cannot be released.
	Hash string
}

// Alive reports whether the pod counts as a replica: it is not being deleted, not finished and not evicted by us.
func (p *Pod) Alive() bool { return p.GoneBy.IsZero() && !p.Finished && !p.Evicted }

// Supply reports whether the pod counts towards the replicas that are wanted: it is alive, its node does not go for certain, and
// its controller counts on it.
func (p *Pod) Supply() bool { return p.Alive() && !p.Leaving() && p.Released == nil }

// PodOf reads the facts off a pod. Its capacity type is given by the caller; see [capacity.Labels.OfPod]. It looks at each label and
// annotation once: the cache keeps few, and a plan of a large workload reads all of its pods.
func PodOf(keys *policy.PodKeys, pod *corev1.Pod, capacityType capacity.Type) Pod {
	p := Pod{
		Name: pod.Name, UID: pod.UID, Slot: NoSlot, Capacity: capacityType, Created: pod.CreationTimestamp.Time,
		Finished: pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed,
		Bound:    pod.Spec.NodeName != "", Node: pod.Spec.NodeName, UnreadySince: pod.CreationTimestamp.Time,
	}
	p.Version, _ = strconv.ParseUint(pod.ResourceVersion, 10, 64)
	if pod.DeletionTimestamp != nil {
		p.GoneBy = pod.DeletionTimestamp.Time
	}
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil {
		p.Owner = ref.UID
	}
	p.conditions(pod)
	p.NodeComing = !p.Bound && pod.Status.NominatedNodeName != ""
	for key, value := range pod.Labels {
		switch key {
		case keys.Slot:
			p.Slot = ParseSlot(value)
		case TemplateHash:
			p.Hash = value
		}
	}
	if released := p.annotations(keys, pod.Annotations); released != "" {
		p.released(released)
	}
	return p
}

// annotations takes in what the annotations say, but for that of a release, which it returns.
func (p *Pod) annotations(keys *policy.PodKeys, all map[string]string) (released string) {
	for key, value := range all {
		switch key {
		case keys.Reservation:
			p.Reservation = value
		case policy.DeletionCost:
			p.DeletionCost = policy.ParseCost(value)
		case keys.Moved:
			p.Moved = value == policy.MovedValue
		case keys.Tried:
			p.triedBefore(value)
		case keys.Released:
			released = value
		case AnnotationDoNotDisrupt:
			p.DoNotDisrupt = p.DoNotDisrupt || value == "true"
		case AnnotationSafeToEvict:
			p.DoNotDisrupt = p.DoNotDisrupt || value == "false"
		}
	}
	return released
}

// triedBefore takes in what the annotation says; what is not a time says nothing.
func (p *Pod) triedBefore(text string) {
	if text == "" {
		return
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		p.TriedUntil = at.Add(policy.TriedTime)
	}
}

func (p *Pod) conditions(pod *corev1.Pod) {
	for i := range pod.Status.Conditions {
		condition := &pod.Status.Conditions[i]
		switch {
		case condition.Type == corev1.PodReady:
			p.Ready = condition.Status == corev1.ConditionTrue
			if condition.LastTransitionTime.After(p.UnreadySince) {
				p.UnreadySince = condition.LastTransitionTime.Time
			}
		case condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable && !p.Bound:
			p.UnschedulableSince = condition.LastTransitionTime.Time
		}
	}
}

// ParseSlot reads the value of a slot label; NoSlot for anything that we do not write.
func ParseSlot(value string) int {
	slot, ok := phrase.Number(value, policy.MaxSlot)
	if !ok || (len(value) > 1 && value[0] == '0') {
		return NoSlot
	}
	return slot
}

// Waiting reports whether the scheduler found no node for a pod that counts.
func (p *Pod) Waiting() bool {
	return p.Alive() && p.Capacity != capacity.Unknown && !p.Bound && !p.UnschedulableSince.IsZero()
}
