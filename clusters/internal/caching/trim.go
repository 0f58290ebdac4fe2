package caching

import (
	"errors"
	"reflect"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Trim makes the function that informers put every object through: it leaves what is always kept and what keep copies,
// or, with a nil keep, everything but managedFields.
func Trim(keep func(from, into client.Object)) toolscache.TransformFunc {
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

// Guarded has transform fail for an object for which it panics, after panicked was called.
func Guarded(transform toolscache.TransformFunc, panicked func(object any, p any)) toolscache.TransformFunc {
	return func(in any) (out any, err error) {
		defer func() {
			if p := recover(); p != nil {
				panicked(in, p)
				out, err = nil, ErrKeepPanicked
			}
		}()
		return transform(in)
	}
}

// ErrKeepPanicked is why a kind is not cached of which an object cannot be trimmed: without that object decisions would rest
// on a part of what is there.
var ErrKeepPanicked = errors.New("what trims the objects of the kind panicked")

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
