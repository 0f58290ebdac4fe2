// Package v1alpha1 is the FleetPlacement kind: one workload over the members of a fleet.
//
// types.go is what is asked for, with the rules that the CRD checks as markers beside the fields; status.go is what there is;
// register.go is the scheme.
// The kind lives in the hub cluster, and nothing of it in members.
//
// +kubebuilder:object:generate=true
// +groupName=fleet.plimsoll.dev
package v1alpha1
