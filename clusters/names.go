package clusters

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// kindName is how a kind is shown: "apps/v1 Deployment".
func kindName(gvk schema.GroupVersionKind) string {
	return gvk.GroupVersion().String() + " " + gvk.Kind
}

// itemKind is the kind of object, or of the items of a list.
func itemKind(object runtime.Object, scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
	gvk, err := apiutil.GVKForObject(object, scheme)
	if meta.IsListType(object) {
		gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	}
	return gvk, err
}

// isUntyped tells whether object is of a Go type that stands for many kinds.
func isUntyped(object runtime.Object) bool {
	switch object.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return true
	}
	return false
}

func noKind(gvk schema.GroupVersionKind) error {
	return &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
}

// noMatchIfNotFound tells a group and version that a member does not serve from a member that does not answer.
func noMatchIfNotFound(err error, gvk schema.GroupVersionKind) error {
	if apierrors.IsNotFound(err) {
		return noKind(gvk)
	}
	return err
}
