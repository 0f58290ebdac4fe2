// Package argocd decodes the Argo CD manifests that this repository shows with Argo CD's own Go types, strictly: an unknown or ill-typed
// field fails. test/deploy checks the same manifests against Argo CD's CustomResourceDefinitions, which accept more.
//
// It is a module of its own because Argo CD's types import Kubernetes of an older release. manifests_test.go is all there is.
package argocd
