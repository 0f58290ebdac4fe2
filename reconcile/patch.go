package reconcile

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Four ways to write a part of an object. All of them send nothing when there is nothing to change, and bring obj up to
// date with the answer. None of them sends what was not read, so they are safe for kinds whose cache is trimmed, where an
// Update is refused.
//
//	Request.Apply    for objects that the reconciler makes and keeps as they should be. The default.
//	PatchMerge       to change a few fields of an object that somebody else keeps: a label, an annotation, a field of the
//	                 spec. Lists are replaced whole, so lock the patch when it changes one.
//	PatchStrategic   the same for built-in kinds, when the change is in a list that Kubernetes merges by key: one
//	                 container, one port, one owner reference. Custom resources do not know it.
//	PatchJSON        when a change must only happen if the object still is as it was seen, in one field rather than in all:
//	                 its tests name that field. Also for one element of a list that has no key.

// PatchOption changes what [PatchMerge] and [PatchStrategic] do.
type PatchOption func(*patchOptions)

type patchOptions struct{ locked bool }

// Locked has the patch refused, with an error for which apierrors.IsConflict is true, when the object has changed since obj
// was read. Use it whenever what is written depends on what was read, as for an element of a list.
func Locked() PatchOption { return func(o *patchOptions) { o.locked = true } }

// PatchMerge changes obj, which was read from the member, and sends the difference as a JSON merge patch. It tells whether
// anything was sent. After an error obj holds the change that was not made.
func PatchMerge[T client.Object](ctx context.Context, c client.Client, obj T, change func(T), opts ...PatchOption) (bool, error) {
	before := obj.DeepCopyObject().(client.Object)
	change(obj)
	patch := client.MergeFrom(before)
	if lockWanted(opts) {
		patch = client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	}
	return send(ctx, c, obj, client.MergeFrom(before), patch)
}

// PatchStrategic changes obj, which was read from the member, and sends the difference as a strategic merge patch. It tells
// whether anything was sent. After an error obj holds the change that was not made.
func PatchStrategic[T client.Object](ctx context.Context, c client.Client, obj T, change func(T), opts ...PatchOption) (bool, error) {
	before := obj.DeepCopyObject().(client.Object)
	change(obj)
	patch := client.StrategicMergeFrom(before)
	if lockWanted(opts) {
		patch = client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})
	}
	return send(ctx, c, obj, client.StrategicMergeFrom(before), patch)
}

func lockWanted(opts []PatchOption) bool {
	var o patchOptions
	for _, option := range opts {
		option(&o)
	}
	return o.locked
}

// send sends a patch unless the difference, which has no lock in it, is empty.
func send(ctx context.Context, c client.Client, obj client.Object, difference, patch client.Patch) (bool, error) {
	data, err := difference.Data(obj)
	if err != nil {
		return false, fmt.Errorf("patch %s: %w", nameOf(c, obj), err)
	}
	if bytes.Equal(data, []byte("{}")) {
		return false, nil
	}
	name := nameOf(c, obj)
	if err := c.Patch(ctx, obj, patch); err != nil {
		return false, fmt.Errorf("patch %s: %w", name, err)
	}
	return true, nil
}

// JSONOperation is one step of a JSON patch (RFC 6902).
type JSONOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// JSONTest has the whole patch refused as Invalid unless the value at path is this one. Paths are JSON pointers; [JSONPath]
// builds one.
func JSONTest(path string, value any) JSONOperation { return JSONOperation{"test", path, value} }

// JSONAdd sets a field, or puts a value into a list before an index, or at its end with the index "-".
func JSONAdd(path string, value any) JSONOperation { return JSONOperation{"add", path, value} }

// JSONReplace sets a field or an element that exists.
func JSONReplace(path string, value any) JSONOperation { return JSONOperation{"replace", path, value} }

// JSONRemove removes a field or an element that exists.
func JSONRemove(path string) JSONOperation { return JSONOperation{Op: "remove", Path: path} }

// JSONPath makes a JSON pointer of field names and indexes, which may hold slashes: JSONPath("metadata", "labels", "a/b").
func JSONPath(fields ...string) string {
	var path bytes.Buffer
	for _, field := range fields {
		path.WriteByte('/')
		for _, r := range field {
			switch r {
			case '~':
				path.WriteString("~0")
			case '/':
				path.WriteString("~1")
			default:
				path.WriteRune(r)
			}
		}
	}
	return path.String()
}

// PatchJSON sends the operations as a JSON patch, behind a test of obj's UID, so that it never changes another object of
// the same name. Without operations nothing is sent. A test that fails is an error for which apierrors.IsInvalid is true.
func PatchJSON(ctx context.Context, c client.Client, obj client.Object, operations ...JSONOperation) error {
	if len(operations) == 0 {
		return nil
	}
	if uid := obj.GetUID(); uid != "" {
		operations = append([]JSONOperation{JSONTest("/metadata/uid", string(uid))}, operations...)
	}
	name := nameOf(c, obj)
	body, err := json.Marshal(operations)
	if err != nil {
		return fmt.Errorf("patch %s: %w", name, err)
	}
	if err := c.Patch(ctx, obj, client.RawPatch(types.JSONPatchType, body)); err != nil {
		return fmt.Errorf("patch %s: %w", name, err)
	}
	return nil
}

// nameOf is how errors name an object, for example "apps/v1 Deployment default/web".
func nameOf(c client.Client, obj client.Object) string {
	key := storeKey(client.ObjectKeyFromObject(obj))
	gvk, err := apiutil.GVKForObject(obj, c.Scheme())
	if err != nil {
		return fmt.Sprintf("%T %s", obj, key)
	}
	return kindName(gvk) + " " + key
}
