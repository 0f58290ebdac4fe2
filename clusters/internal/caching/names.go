package caching

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// KindName is how a kind is shown: "apps/v1 Deployment".
func KindName(gvk schema.GroupVersionKind) string {
	return gvk.GroupVersion().String() + " " + gvk.Kind
}

// ItemKind is the kind of object, or of the items of a list.
func ItemKind(object runtime.Object, scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
	gvk, err := apiutil.GVKForObject(object, scheme)
	if meta.IsListType(object) {
		gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	}
	return gvk, err
}

// IsUntyped reports whether object is of a Go type that represents many kinds.
func IsUntyped(object runtime.Object) bool {
	switch object.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return true
	}
	return false
}

// NoKind is the error of a kind that a member does not serve.
func NoKind(gvk schema.GroupVersionKind) error {
	return &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
}

// NoMatchIfNotFound distinguishes a group and version that a member does not serve from a member that does not answer.
func NoMatchIfNotFound(err error, gvk schema.GroupVersionKind) error {
	if apierrors.IsNotFound(err) {
		return NoKind(gvk)
	}
	return err
}
