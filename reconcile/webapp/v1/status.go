package v1

import (
	"k8s.io/apimachinery/pkg/labels"

	"github.com/plimsoll-dev/plimsoll/reconcile"
)

// Condition types beside those that the framework keeps (Ready, Reconciling, Stalled and Paused).
const (
	// ConditionCreated is true once everything that the WebApp consists of has been made.
	ConditionCreated = "Created"
	// ConditionPlaced reports whether spot placement does what spec.spot asks; it is there only with spec.spot.
	ConditionPlaced = "Placed"
)

// Reasons of Ready, and of Reconciling while it is there: where in its life a WebApp is.
const (
	ReasonCreating       = "Creating"       // something that it consists of is not there yet
	ReasonWaitingForPods = "WaitingForPods" // a rollout is under way, or pods are not available yet
	ReasonScaling        = "Scaling"        // pods of the current revision come or go
	ReasonDeleting       = "Deleting"       // it is being deleted, with its objects
	ReasonReady          = "Ready"          // everything is as the spec says
)

// Reasons of Stalled, beside those of the API server (Invalid, Forbidden and their like).
const (
	ReasonPodsRefused = "PodsRefused" // pods cannot be made, for instance because of a quota
	ReasonStuck       = "Stuck"       // the rollout makes no progress
)

// Reasons of Created and Placed.
const (
	ReasonCreated             = "Created"
	ReasonNamespaceNotEnabled = "NamespaceNotEnabled" // the namespace lacks the label that placement needs
	ReasonPlacing             = "Placing"             // replicas are not all where they belong yet
	ReasonPlaced              = "Placed"              // every replica is where it belongs
)

// WebAppStatus is the observed state of a WebApp.
type WebAppStatus struct {
	reconcile.Status `json:",inline"`

	// replicas is the number of pods.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// readyReplicas is the number of ready pods.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// availableReplicas is the number of available pods.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`
	// spotReplicas is the number of pods on spot capacity; unset without spec.spot.
	// +optional
	SpotReplicas *int32 `json:"spotReplicas,omitempty"`
	// onDemandReplicas is the number of pods on on-demand capacity; unset without spec.spot.
	// +optional
	OnDemandReplicas *int32 `json:"onDemandReplicas,omitempty"`
	// selector of the pods, for the scale subresource.
	// +optional
	Selector string `json:"selector,omitempty"`
}

// CommonStatus implements [reconcile.StatusObject].
func (w *WebApp) CommonStatus() *reconcile.Status { return &w.Status.Status }

// LabelWebApp is the label of everything that a WebApp consists of, its pods included; its value is the name of the WebApp.
const LabelWebApp = "apps.plimsoll.dev/webapp"

// Selector selects the pods of a WebApp. It follows from the name alone, for that of a Deployment can never change.
func (w *WebApp) Selector() labels.Set {
	return labels.Set{LabelWebApp: w.Name}
}
