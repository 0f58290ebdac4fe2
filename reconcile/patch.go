package reconcile

import (
	"bytes"
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
)

// PatchOption changes what [PatchMerge] does.
type PatchOption func(*patchOptions)

type patchOptions struct{ locked bool }

// Locked has the patch refused, with an error for which apierrors.IsConflict is true, when the object has changed since obj
// was read. Use it whenever what is written depends on what was read, as for an element of a list.
func Locked() PatchOption { return func(o *patchOptions) { o.locked = true } }

// PatchMerge changes a few fields of obj, which was read from the member and which somebody else keeps: a label, an annotation, a
// field of the spec. What a reconciler makes and keeps itself it writes with [Request.Apply].
//
// The difference is sent as a JSON merge patch; lists are replaced whole, so lock the patch when it changes one. It reports whether
// anything was sent: nothing is when there is nothing to change. What was not read is not sent, so it is safe for kinds whose
// cache is trimmed, where an Update is refused. After an error obj holds the change that was not made.
func PatchMerge[T client.Object](ctx context.Context, c client.Client, obj T, change func(T), opts ...PatchOption) (bool, error) {
	var o patchOptions
	for _, option := range opts {
		option(&o)
	}
	before := obj.DeepCopyObject().(client.Object)
	change(obj)
	patch := client.MergeFrom(before)
	data, err := patch.Data(obj) // without a lock in it
	if err != nil {
		return false, fmt.Errorf("patch %s: %w", nameOf(c, obj), err)
	}
	if bytes.Equal(data, []byte("{}")) {
		return false, nil
	}
	if o.locked {
		patch = client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	}
	name := nameOf(c, obj)
	if err := c.Patch(ctx, obj, patch); err != nil {
		return false, fmt.Errorf("patch %s: %w", name, err)
	}
	return true, nil
}

// nameOf is how errors name an object, for example "apps/v1 Deployment default/web".
func nameOf(c client.Client, obj client.Object) string {
	key := object.StoreKey(client.ObjectKeyFromObject(obj))
	gvk, err := apiutil.GVKForObject(obj, c.Scheme())
	if err != nil {
		return fmt.Sprintf("%T %s", obj, key)
	}
	return object.KindName(gvk) + " " + key
}
