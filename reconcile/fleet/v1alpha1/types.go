package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FleetPlacement says how many replicas of a workload run over the members of a fleet, and where they may be. The workload
// itself is delivered to the members by others, without replicas.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=fleetplacements,shortName=fp,categories=plimsoll
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.targetRef.kind`
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.targetRef.name`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Wanted",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Running",type=integer,JSONPath=`.status.replicas`
// +kubebuilder:printcolumn:name="Serving",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Spot",type=integer,JSONPath=`.status.spot.running`
// +kubebuilder:printcolumn:name="On-Demand",type=integer,JSONPath=`.status.onDemand.running`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type FleetPlacement struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	Spec FleetPlacementSpec `json:"spec"`
	// status is the observed state. Plimsoll writes it.
	// +optional
	Status FleetPlacementStatus `json:"status,omitempty"`
}

// FleetPlacementList is a list of FleetPlacements.
//
// +kubebuilder:object:root=true
type FleetPlacementList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []FleetPlacement `json:"items"`
}

// FleetPlacementSpec is the desired state of a FleetPlacement.
//
// +kubebuilder:validation:XValidation:rule="self.targetRef == oldSelf.targetRef",fieldPath=".targetRef",reason=FieldValueForbidden,message="targetRef cannot be changed: create another FleetPlacement, and delete this one"
// +kubebuilder:validation:XValidation:rule="!has(self.gatherInto) || (has(self.onDelete) && self.onDelete == 'Gather')",fieldPath=".gatherInto",message="gatherInto needs onDelete Gather"
type FleetPlacementSpec struct {
	// targetRef is the workload, which has the same name in every member. Its namespace is that of the FleetPlacement.
	TargetRef TargetRef `json:"targetRef"`
	// replicas is the desired number of ready replicas in the fleet.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// capacity says how many of them are on spot and how many on on-demand capacity.
	// +optional
	Capacity Capacity `json:"capacity,omitempty"`
	// clusters are tiers of members, in order of preference: a later tier is used only for what the earlier ones cannot run.
	// Without any, all members are one tier.
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	Clusters []Tier `json:"clusters,omitempty"`
	// spread limits the share of the replicas in one member or failure domain.
	// +optional
	Spread Spread `json:"spread,omitempty"`
	// prices of a replica, for members that a selector matches. The first that matches counts, and comes before the annotations
	// of the registration. Where none is known, a replica on on-demand costs three times one on spot.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Prices []Price `json:"prices,omitempty"`
	// clusterLossGrace is how long a member may be unreachable before other members replace its replicas.
	// +kubebuilder:default="60s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="must be a duration from 1s to 24h"
	// +optional
	ClusterLossGrace *Duration `json:"clusterLossGrace,omitempty"`
	// pace limits moves of ready replicas.
	// +optional
	Pace Pace `json:"pace,omitempty"`
	// onDelete selects what happens to the replicas when the FleetPlacement is deleted: Keep leaves them where they are, Gather
	// moves all of them to one member.
	// +kubebuilder:default=Keep
	// +optional
	OnDelete OnDelete `json:"onDelete,omitempty"`
	// gatherInto is the member to which Gather moves them. Default: the member of the first tier that runs most of them.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	GatherInto string `json:"gatherInto,omitempty"`
}

// TargetRef names a workload.
type TargetRef struct {
	// apiVersion of the workload, such as apps/v1.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	APIVersion string `json:"apiVersion"`
	// kind is one that spot placement knows: Deployment, StatefulSet, ReplicaSet, WebApp, or a configured one.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// name of the workload.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// Capacity says how many replicas are on spot, and how many on on-demand capacity.
type Capacity struct {
	// minOnDemand replicas of the fleet are on on-demand capacity.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	// +optional
	MinOnDemand int32 `json:"minOnDemand,omitempty"`
	// spotPercentage of the replicas may be on spot.
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	SpotPercentage *int32 `json:"spotPercentage,omitempty"`
	// extraSpot is the maximum number of additional spot replicas, as insurance against interruptions. Only as many run as pay off.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	ExtraSpot int32 `json:"extraSpot,omitempty"`
}

// Tier is a set of members with the same preference.
type Tier struct {
	// members of the tier. If several choices match a member, the first applies.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	Members []Choice `json:"members"`
}

// Choice selects members in which replicas may run.
//
// +kubebuilder:validation:XValidation:rule="!has(self.min) || !has(self.max) || self.min <= self.max",fieldPath=".min",message="min must not be above max"
type Choice struct {
	// selector of the labels of their registration Secrets. An empty one matches all members.
	// +optional
	Selector metav1.LabelSelector `json:"selector,omitempty"`
	// weight is the share of each of them, relative to the others of the tier.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Weight int32 `json:"weight,omitempty"`
	// min is the minimum number of replicas in each of them.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	// +optional
	Min int32 `json:"min,omitempty"`
	// max is the maximum number of replicas in each of them. Default: no limit.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	Max *int32 `json:"max,omitempty"`
}

// Spread limits the percentage of the replicas in one member or failure domain. One replica is always allowed.
//
// +kubebuilder:validation:XValidation:rule="!has(self.maxPercentPerDomain) || has(self.domainLabel)",fieldPath=".domainLabel",message="maxPercentPerDomain needs domainLabel"
type Spread struct {
	// maxPercentPerMember is the limit in one member.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	MaxPercentPerMember *int32 `json:"maxPercentPerMember,omitempty"`
	// domainLabel is a label of registration Secrets, such as topology.kubernetes.io/region. The plan
	// treats members with the same value as one failure domain.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	// +optional
	DomainLabel string `json:"domainLabel,omitempty"`
	// maxPercentPerDomain is the limit in the members of one value of domainLabel.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	MaxPercentPerDomain *int32 `json:"maxPercentPerDomain,omitempty"`
}

// Price is what a replica costs, in a unit that is the same for all members.
type Price struct {
	// selector of the labels of registration Secrets. An empty one matches all members.
	// +optional
	Selector metav1.LabelSelector `json:"selector,omitempty"`
	// spot is the price of a replica on spot.
	Spot Decimal `json:"spot"`
	// onDemand is the price of one on on-demand.
	OnDemand Decimal `json:"onDemand"`
}

// Decimal is a number above zero, such as "0.35".
//
// +kubebuilder:validation:MaxLength=20
// +kubebuilder:validation:Pattern=`^[0-9]{1,9}(\.[0-9]{1,9})?$`
// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be above zero"
type Decimal string

// Duration is a time span, such as 90s or 1h30m.
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:MaxLength=32
type Duration struct {
	metav1.Duration `json:"-"`
}

// Pace limits moves of ready replicas.
type Pace struct {
	// maxMoves is the maximum number of replicas that move at the same time. Default: a tenth of the replicas, at least one.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	MaxMoves *int32 `json:"maxMoves,omitempty"`
	// cooldown is the time between two batches.
	// +kubebuilder:default="10s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('24h')",message="must be a duration from 0s to 24h"
	// +optional
	Cooldown *Duration `json:"cooldown,omitempty"`
	// window restricts moves of ready replicas to a recurring time. Default: at any time.
	// +optional
	Window *Window `json:"window,omitempty"`
}

// Window is a recurring time in which ready replicas may be moved.
type Window struct {
	// schedule is when it opens: five cron fields.
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=128
	Schedule string `json:"schedule"`
	// duration is how long it stays open.
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be a duration above zero"
	Duration Duration `json:"duration"`
	// timeZone of the schedule, such as Europe/Berlin. Default: UTC.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
}

// OnDelete selects what happens to the replicas when a FleetPlacement is deleted.
//
// +kubebuilder:validation:Enum=Keep;Gather
type OnDelete string

// What happens to the replicas.
const (
	// Keep leaves them where they are.
	Keep OnDelete = "Keep"
	// Gather moves all of them to one member.
	Gather OnDelete = "Gather"
)
