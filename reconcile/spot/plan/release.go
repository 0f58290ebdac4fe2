package plan

import (
	"encoding/json"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TemplateHash is the label by which a Deployment's ReplicaSets distinguish their pods.
const TemplateHash = "pod-template-hash"

// releasedPrefix stands before the hash of a pod that has left its ReplicaSet. No hash begins with it.
const releasedPrefix = "released-"

// Released is why and when a pod left its ReplicaSet. It is written on the pod as the annotation [policy.Keys.Released], so that a
// hub that starts at any moment can finish what another has begun.
type Released struct {
	// Owner is the UID of the ReplicaSet, and OwnerName its name: the pod has no controller reference any more.
	Owner     types.UID `json:"owner"`
	OwnerName string    `json:"ownerName"`
	// Workload is the name of the Deployment; empty: of the ReplicaSet itself. The plan does not look at it.
	Workload string `json:"workload,omitempty"`
	// Hash is the pod-template-hash that the pod had.
	Hash string `json:"hash"`
	// For is what the pod was released for.
	For Purpose `json:"for"`
	// At is when it was, in whole seconds.
	At time.Time `json:"at"`
	// Until is when the pod ends at the latest, with a hub or without; zero: a hub of before did not say. Before, the plan ends it.
	Until time.Time `json:"until,omitzero"`
}

// ActiveDeadline returns the spec.activeDeadlineSeconds with which Kubernetes itself ends a pod at a time; false: the pod has one
// that ends it earlier, and the API server lets nobody raise it. It counts from the start of the pod on its node.
func ActiveDeadline(pod *corev1.Pod, until time.Time) (seconds int64, ok bool) {
	start := pod.CreationTimestamp.Time
	if pod.Status.StartTime != nil {
		start = pod.Status.StartTime.Time
	}
	seconds = min(max(int64(math.Ceil(until.Sub(start).Seconds())), 1), math.MaxInt32)
	has := pod.Spec.ActiveDeadlineSeconds
	return seconds, has == nil || *has > seconds
}

// ReleasedHash is the pod-template-hash of a pod that was released. Its ReplicaSet selects it no more, and no other does.
func ReleasedHash(hash string) string { return releasedPrefix + hash }

// String returns the value of the annotation.
func (r *Released) String() string {
	text, err := json.Marshal(r)
	if err != nil {
		return "" // a time beyond the year 9999: it is no time of a release
	}
	return string(text)
}

// ParseReleased reads the value of the annotation; false when it is none of ours.
func ParseReleased(value string) (*Released, bool) {
	var r Released
	if len(value) > 4096 || json.Unmarshal([]byte(value), &r) != nil || r.Owner == "" || r.At.IsZero() {
		return nil, false
	}
	return &r, true
}

// released takes in the annotation of a pod. It counts only together with the label: one that was copied into a template,
// or a pod that somebody gave back to its ReplicaSet, is a pod like any other.
func (p *Pod) released(value string) {
	if r, ok := ParseReleased(value); ok && p.Hash == ReleasedHash(r.Hash) {
		p.Released, p.Owner = r, r.Owner
	}
}
