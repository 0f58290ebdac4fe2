package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/plimsoll-dev/plimsoll/reconcile"
)

// WebApp is a web application of one or more containers.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=webapps,shortName=wa,categories=all;plimsoll
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.status.replicas`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name must be at most 63 characters: it is the name of a Service"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be a DNS label that begins with a letter: it is the name of a Service"
type WebApp struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	Spec WebAppSpec `json:"spec"`
	// status is the observed state. Plimsoll writes it.
	// +optional
	Status WebAppStatus `json:"status,omitempty"`
}

// WebAppList is a list of WebApps.
//
// +kubebuilder:object:root=true
type WebAppList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []WebApp `json:"items"`
}

// WebAppSpec is the desired state of a WebApp.
//
// +kubebuilder:validation:XValidation:rule="has(self.maxReplicas) || (!has(self.minReplicas) && !has(self.targetCPUPercent))",message="minReplicas and targetCPUPercent need maxReplicas"
// +kubebuilder:validation:XValidation:rule="!has(self.maxReplicas) || !has(self.minReplicas) || self.minReplicas <= self.maxReplicas",fieldPath=".minReplicas",message="minReplicas must not be more than maxReplicas"
type WebAppSpec struct {
	// replicas is the desired number of pods. If maxReplicas is set, the autoscaler decides instead.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// minReplicas is the minimum number of replicas for the autoscaler. Default: 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	MinReplicas *int32 `json:"minReplicas,omitempty"`
	// maxReplicas is the maximum number of replicas for the autoscaler. Default: no autoscaler.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`
	// targetCPUPercent is the share of the requested CPU that the autoscaler aims at. Default: 80.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	TargetCPUPercent *int32 `json:"targetCPUPercent,omitempty"`
	// minAvailable is the minimum number of available pods while nodes are drained: a number, or a percentage.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? int(self) >= 0 : string(self).matches('^(100|[1-9]?[0-9])%$')",message="must be a number from 0, or 0% to 100%"
	// +optional
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`
	// spotPercentage of the replicas belongs on spot capacity.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	SpotPercentage *int32 `json:"spotPercentage,omitempty"`
	// minOnDemand is the minimum number of replicas on on-demand capacity.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	// +optional
	MinOnDemand *int32 `json:"minOnDemand,omitempty"`
	// containers of each pod; the first is the main one.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	Containers []Container `json:"containers"`
	// configMaps of the namespace whose entries become environment variables of every container.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	ConfigMaps []string `json:"configMaps,omitempty"`
	// secrets of the namespace whose entries become environment variables of every container. They override configMaps.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Secrets []string `json:"secrets,omitempty"`
}

// Container is one container of every pod.
type Container struct {
	// name is unique in the WebApp.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// image to run.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^\S+$`
	Image string `json:"image"`
	// port that the container and the Service listen on.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Port *int32 `json:"port,omitempty"`
	// env are environment variables.
	// +optional
	Env map[string]string `json:"env,omitempty"`
}

// WebAppStatus is the observed state of a WebApp.
type WebAppStatus struct {
	reconcile.Status `json:",inline"`

	// replicas is the number of pods.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// availableReplicas is the number of available pods.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`
	// selector of the pods, for the scale subresource.
	// +optional
	Selector string `json:"selector,omitempty"`
}
