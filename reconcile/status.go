package reconcile

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Status is the part of a kind's status that the framework keeps. A kind that wants it embeds it inline in the struct of
// its Status field and implements [StatusObject]; its CRD needs the status subresource.
//
//	type BackupStatus struct {
//		reconcile.Status  `json:",inline"`
//		Snapshots         int32 `json:"snapshots,omitempty"`
//	}
//
//	func (b *Backup) CommonStatus() *reconcile.Status { return &b.Status.Status }
type Status struct {
	// ObservedGeneration is the generation of the spec that was reconciled last, with whatever outcome.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// LastHandledRequest is the value that the annotation plimsoll.dev/requested-at had when the last reconcile began.
	// +optional
	LastHandledRequest string `json:"lastHandledRequest,omitempty"`
	// Conditions are Ready, Reconciling, Stalled and Paused, and those that the kind's reconciler adds.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DeepCopyInto copies s into out.
func (s *Status) DeepCopyInto(out *Status) {
	*out = *s
	out.Conditions = copyConditions(s.Conditions)
}

// DeepCopy copies s.
func (s *Status) DeepCopy() *Status {
	if s == nil {
		return nil
	}
	out := new(Status)
	s.DeepCopyInto(out)
	return out
}

// A StatusObject is an object of a kind whose status the framework keeps. For such kinds:
//
//   - The reconciler changes fields of its own in Request.Object's Status, and conditions through Request.Conditions; it
//     never writes the status itself. When the reconcile has ended, however it ended, everything that changed is written
//     with one patch, and when nothing changed, nothing is.
//   - The patch carries only what this reconcile changed, and the resourceVersion it was computed from. When another
//     writer was faster, it is computed again from the live object, so that neither loses anything.
//   - What the reconciler leaves open of Ready, Reconciling and Stalled follows from its result; see [Conditions].
//   - A change of nothing but the status wakes no key, so that writing it does not reconcile again.
//   - A TerminalError is tried again slowly; see [Builder.StalledRetry].
//   - The whole object is cached: Kind.Keep is an error at set-up.
type StatusObject interface {
	client.Object
	// CommonStatus points to the framework's part of the object's status; never nil.
	CommonStatus() *Status
}
