package object

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

// New creates an empty T, which is a pointer to a struct.
func New[T client.Object]() T {
	return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
}

// Empty makes an empty T of a kind, which an unstructured one does not know of itself.
func Empty[T client.Object](gvk schema.GroupVersionKind) T {
	obj := New[T]()
	if untyped, ok := any(obj).(*unstructured.Unstructured); ok {
		untyped.SetGroupVersionKind(gvk)
	}
	return obj
}

// Like makes an empty object of the same Go type.
func Like[T client.Object](obj T) T {
	return reflect.New(reflect.TypeOf(obj).Elem()).Interface().(T)
}

// IsNil reports whether a value is nil, or a pointer that is.
func IsNil(v any) bool {
	if v == nil {
		return true
	}
	rv := reflect.ValueOf(v)
	return rv.Kind() == reflect.Pointer && rv.IsNil()
}

// KindName is how people name a kind, for example "apps/v1 Deployment".
func KindName(gvk schema.GroupVersionKind) string {
	return gvk.GroupVersion().String() + " " + gvk.Kind
}

// StoreKey is how people, and informers, name an object: "namespace/name", or the name alone.
func StoreKey(key types.NamespacedName) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.Namespace + "/" + key.Name
}

// IsKind reports whether an owner reference is to a kind, in any version. Owners of the core group have an API version without a
// slash.
func IsKind(ref *metav1.OwnerReference, kind schema.GroupKind) bool {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && ref.Kind == kind.Kind && gv.Group == kind.Group
}

// ControllerOf names the controller owner of an object, if it is of the given kind in any version.
func ControllerOf(obj client.Object, kind schema.GroupKind) (name string, ok bool) {
	ref := metav1.GetControllerOfNoCopy(obj)
	if ref == nil || !IsKind(ref, kind) {
		return "", false
	}
	return ref.Name, true
}

// Changed reports whether an update is one.
func Changed(before, after any) (old, obj client.Object, ok bool) {
	old, okOld := before.(client.Object)
	obj, okNew := after.(client.Object)
	return old, obj, okOld && okNew && (old.GetResourceVersion() != obj.GetResourceVersion() || obj.GetResourceVersion() == "")
}

// LastKnown is the object of a deletion, also of one that the informer only noticed when it listed again.
func LastKnown(deleted any) client.Object {
	if unknown, ok := deleted.(toolscache.DeletedFinalStateUnknown); ok {
		deleted = unknown.Obj
	}
	obj, _ := deleted.(client.Object)
	return obj
}

// MaxText bounds, in bytes, what is kept of an error or another text.
const MaxText = 1024

// Clip makes a text one line of at most MaxText bytes.
func Clip(s string) string { return plain.Text(s, MaxText) }

// ControllerIndex names the index by [ControllerUID]. Whoever wants that index uses this name, so that a member's cache keeps it
// once. One value per object, so that it costs a cache little; group and kind are compared when it is read.
const ControllerIndex = "plimsoll.dev/controller-uid"

// ControllerUID is the UID of an object's controller, as an index holds it; nil: it has none.
func ControllerUID(obj client.Object) []string {
	if ref := metav1.GetControllerOfNoCopy(obj); ref != nil && ref.UID != "" {
		return []string{string(ref.UID)}
	}
	return nil
}
