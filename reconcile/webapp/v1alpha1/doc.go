// Package v1alpha1 is the first WebApp: one image, one port, so many replicas. It is served for those who wrote it down that
// way, and converts to and from v1, which is stored; types.go is the kind, conversion.go how, register.go the
// scheme.
//
// +kubebuilder:object:generate=true
// +groupName=apps.plimsoll.dev
package v1alpha1
