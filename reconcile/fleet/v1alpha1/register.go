package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is that of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "fleet.plimsoll.dev", Version: "v1alpha1"}

const (
	// Kind is what objects of this package say they are.
	Kind = "FleetPlacement"
	// Resource is their name in URLs.
	Resource = "fleetplacements"
	// Finalizer keeps a FleetPlacement until its members have been handed back.
	Finalizer = "fleet.plimsoll.dev/placement"
)

// Annotations of a registration Secret. Each is a decimal number above zero, in a unit that is the same for all members.
const (
	// AnnotationSpotPrice is what a replica on spot costs in the member.
	AnnotationSpotPrice = "fleet.plimsoll.dev/spot-price"
	// AnnotationOnDemandPrice is what one on on-demand costs.
	AnnotationOnDemandPrice = "fleet.plimsoll.dev/on-demand-price"
)

// AddToScheme makes the kinds of this package known to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &FleetPlacement{}, &FleetPlacementList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
