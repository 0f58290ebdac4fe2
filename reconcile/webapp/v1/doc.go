// Package v1 is the WebApp kind as it is stored: containers and ports as lists, and one block for each thing that a WebApp
// may have beside its Deployment.
//
// types.go is the kind, status.go its status, with the rules that the CRD checks as markers beside the fields; defaults.go
// repeats the CRD's defaults in Go, for those who have no API server at hand; quantity.go bounds quantities, size.go lists; register.go is the
// scheme. The older versions convert to and from this one; carry.go is how they keep what they cannot express.
//
// +kubebuilder:object:generate=true
// +groupName=apps.plimsoll.dev
package v1
