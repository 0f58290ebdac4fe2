package reconcile

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters/plain"
)

// newObject makes an empty T, which is a pointer to a struct.
func newObject[T client.Object]() T {
	return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
}

// emptyOf makes an empty T of a kind, which an unstructured one does not know of itself.
func emptyOf[T client.Object](gvk schema.GroupVersionKind) T {
	obj := newObject[T]()
	if untyped, ok := any(obj).(*unstructured.Unstructured); ok {
		untyped.SetGroupVersionKind(gvk)
	}
	return obj
}

// newLike makes an empty object of the same Go type.
func newLike[T client.Object](obj T) T {
	return reflect.New(reflect.TypeOf(obj).Elem()).Interface().(T)
}

func isNil(v any) bool {
	if v == nil {
		return true
	}
	rv := reflect.ValueOf(v)
	return rv.Kind() == reflect.Pointer && rv.IsNil()
}

// kindName is how people name a kind, for example "apps/v1 Deployment".
func kindName(gvk schema.GroupVersionKind) string {
	return gvk.GroupVersion().String() + " " + gvk.Kind
}

func storeKey(key types.NamespacedName) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.Namespace + "/" + key.Name
}

// isKind tells whether an owner reference is to a kind, in any version. Owners of the core group have an API version without a
// slash.
func isKind(ref *metav1.OwnerReference, kind schema.GroupKind) bool {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && ref.Kind == kind.Kind && gv.Group == kind.Group
}

// controllerOf names the controller owner of an object, if it is of the given kind in any version.
func controllerOf(obj client.Object, kind schema.GroupKind) (name string, ok bool) {
	ref := metav1.GetControllerOfNoCopy(obj)
	if ref == nil || !isKind(ref, kind) {
		return "", false
	}
	return ref.Name, true
}

// changed tells whether an update is one.
func changed(before, after any) (old, obj client.Object, ok bool) {
	old, okOld := before.(client.Object)
	obj, okNew := after.(client.Object)
	return old, obj, okOld && okNew && (old.GetResourceVersion() != obj.GetResourceVersion() || obj.GetResourceVersion() == "")
}

// lastKnown is the object of a deletion, also of one that the informer only noticed when it listed again.
func lastKnown(deleted any) client.Object {
	if unknown, ok := deleted.(toolscache.DeletedFinalStateUnknown); ok {
		deleted = unknown.Obj
	}
	obj, _ := deleted.(client.Object)
	return obj
}

// maxErrorLength bounds, in bytes, what a record keeps of an error.
const maxErrorLength = 1024

// clip makes a text one line of at most maxErrorLength bytes.
func clip(s string) string { return plain.Text(s, maxErrorLength) }
