package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// leftSuffix marks the field manager under which a value stays that was left to somebody else ([Options].Leave).
const leftSuffix = "-left"

// leaveFields hands the fields that were ours alone, and are to be left, to a manager of their own with the value that they
// have, so that applying without them does not remove them.
func (a *Call) leaveFields(ctx context.Context, have map[string]any) error {
	for _, path := range a.Leave {
		if _, set := at(have, path); !set {
			continue
		}
		err := a.leaveField(ctx, path)
		for try := 1; apierrors.IsConflict(err) && try < leaveTries; try++ {
			err = a.leaveField(ctx, path)
		}
		if err != nil {
			return fmt.Errorf("leave %s: %w", path, err)
		}
	}
	return nil
}

// leaveTries is how often the member's object is read again when somebody changes it at the same time.
const leaveTries = 5

// leaveField hands one field over. It is refused as a conflict when the object has changed since it was read: perhaps it was
// the field's new manager who did so, and its value must stay.
func (a *Call) leaveField(ctx context.Context, path string) error {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(a.gvk)
	if err := a.Live.Get(ctx, client.ObjectKeyFromObject(a.obj), live); err != nil {
		return err
	}
	value, set := at(live.Object, path)
	if !set || !onlyOwner(live.GetManagedFields(), a.Manager, pathOf(path)) {
		return nil
	}
	left := &unstructured.Unstructured{Object: map[string]any{}}
	put(left.Object, path, value)
	left.SetGroupVersionKind(a.gvk)
	left.SetNamespace(a.obj.GetNamespace())
	left.SetName(a.obj.GetName())
	left.SetUID(live.GetUID())
	left.SetResourceVersion(live.GetResourceVersion())
	return a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(left), client.FieldOwner(a.Manager+leftSuffix), client.ForceOwnership)
}
