package nodes

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// PodReader reads pods, with what their nodes say about them. It asks the [Table] once for each node, so that it is meant for one pass over
// pods and not to be kept. It is not safe for concurrent use.
type PodReader struct {
	table  *Table
	keys   *policy.PodKeys
	labels capacity.Labels
	asked  map[string]nodeOfPods
	last   string // the name that was looked up last: pods of a node often come together
	at     nodeOfPods
}

// nodeOfPods is what the pods of a node have from it.
type nodeOfPods struct {
	known        bool
	capacity     capacity.Type
	interruption *plan.Interruption
	joined       time.Time
}

// Pods returns a reader of pods by what the table knows now.
func (t *Table) Pods(keys policy.Keys, labels capacity.Labels) *PodReader {
	return &PodReader{table: t, keys: keys.OfPods(), labels: labels}
}

// Facts reads one pod. It keeps strings of the pod, and nothing else of it.
func (r *PodReader) Facts(pod *corev1.Pod) plan.Pod {
	node := r.node(pod.Spec.NodeName)
	capacityType := node.capacity
	if !node.known {
		capacityType = r.labels.OfPod(pod, r.table.LabelsOf)
	}
	facts := plan.PodOf(r.keys, pod, capacityType)
	facts.Interruption, facts.NodeJoined = node.interruption, node.joined
	return facts
}

func (r *PodReader) node(name string) nodeOfPods {
	switch name {
	case "":
		return nodeOfPods{}
	case r.last:
		return r.at
	}
	node, asked := r.asked[name]
	if !asked {
		if f := r.table.find(name); f != nil {
			node = nodeOfPods{known: true, capacity: r.labels.OfNode(f.labels), interruption: f.interruption, joined: f.start.joined()}
		}
		if r.asked == nil {
			r.asked = map[string]nodeOfPods{}
		}
		r.asked[name] = node
	}
	r.last, r.at = name, node
	return node
}
