// Package v1beta1 is the WebApp between the first one and v1: several containers with a port each, and everything else flat.
// It is served for those who wrote it down that way, and converts to and from v1, which is stored; types.go is the kind, conversion.go how, register.go the
// scheme.
//
// +kubebuilder:object:generate=true
// +groupName=apps.plimsoll.dev
package v1beta1
