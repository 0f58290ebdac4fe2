package clusters

import (
	"reflect"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// trim makes the function that informers put every object through: it leaves what is always kept and what keep copies,
// or, with a nil keep, everything but managedFields.
func trim(keep func(from, into client.Object)) toolscache.TransformFunc {
	return func(in any) (any, error) {
		from, ok := in.(client.Object)
		if !ok {
			return in, nil // a tombstone: what is in it has been trimmed
		}
		if keep == nil {
			if from.GetManagedFields() != nil {
				from.SetManagedFields(nil)
			}
			return from, nil
		}
		into := reflect.New(reflect.TypeOf(from).Elem()).Interface().(client.Object)
		keepAlways(from, into)
		keep(from, into)
		into.SetManagedFields(nil)
		return into, nil
	}
}

// keepAlways copies what identifies an object and its version, and who owns it.
func keepAlways(from, into client.Object) {
	into.GetObjectKind().SetGroupVersionKind(from.GetObjectKind().GroupVersionKind())
	into.SetName(from.GetName())
	into.SetNamespace(from.GetNamespace())
	into.SetUID(from.GetUID())
	into.SetResourceVersion(from.GetResourceVersion())
	into.SetGeneration(from.GetGeneration())
	into.SetCreationTimestamp(from.GetCreationTimestamp())
	into.SetDeletionTimestamp(from.GetDeletionTimestamp())
	into.SetOwnerReferences(from.GetOwnerReferences())
}
