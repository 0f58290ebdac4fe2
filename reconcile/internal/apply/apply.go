package apply

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
	"github.com/plimsoll-dev/plimsoll/reconcile/internal/retry"
)

// Scope is what a request's objects are applied under.
type Scope struct {
	Manager string                  // of the applied fields
	Applied string                  // the annotation with the hash of what was applied last
	Kind    schema.GroupVersionKind // of the request's object
	Memory  *Memory
	InTurn  bool // nothing is applied side by side
}

// Call is one call of Apply or Delete.
type Call struct {
	*Scope
	Options

	Caller
	obj  client.Object
	gvk  schema.GroupVersionKind
	Name string // of obj, for people
}

// atOnce is how many objects are applied at a time.
const atOnce = 4

// AtOnce is how many objects may be applied at a time: one by one where calls are to have an order, and where there is no scope.
func (s *Scope) AtOnce() int {
	if s == nil || s.InTurn {
		return 1
	}
	return atOnce
}

// notifier is the part of a request's recorder that reports repairs.
type notifier interface {
	Normal(reason, format string, args ...any)
}

// Caller is the member and the object for which something is applied.
type Caller struct {
	Client client.Client
	Live   client.Reader
	Events notifier
	Owner  client.Object
}

// NewCall creates the call for one object. A nil scope is an error: nobody has said under which names to write.
func NewCall(s *Scope, t Caller, obj client.Object, opts []Option) (*Call, error) {
	if s == nil {
		return nil, fmt.Errorf("apply or delete a %T: the request was not made by a controller", obj)
	}
	gvk, err := apiutil.GVKForObject(obj, t.Client.Scheme())
	if err != nil {
		return nil, retry.Terminal(fmt.Errorf("apply or delete a %T: %w", obj, err))
	}
	a := &Call{
		Scope: s, Caller: t, obj: obj, gvk: gvk,
		Name: object.KindName(gvk) + " " + object.StoreKey(client.ObjectKeyFromObject(obj)),
	}
	for _, option := range opts {
		option(&a.Options)
	}
	return a, nil
}

// Apply compares the cached object with the wanted one, and writes if they differ.
func (a *Call) Apply(ctx context.Context) (Outcome, error) {
	if owner := a.Owner.GetNamespace(); !a.Unowned && owner != "" && owner != a.obj.GetNamespace() {
		return "", retry.Terminal(fmt.Errorf("its owner is in namespace %q: it must be in the same, or Unowned", owner))
	}
	hash, err := a.hash()
	if err != nil {
		return "", err
	}
	have, err := a.cached(ctx)
	switch {
	case err != nil:
		return "", err
	case have == nil:
		return a.create(ctx, hash)
	}
	if goes, err := a.belongs(have); err != nil {
		return "", err
	} else if goes {
		return Terminating, a.show(have)
	}
	if a.Memory.settled(a.key(), hash, have.GetResourceVersion()) {
		return Unchanged, a.show(have)
	}
	return a.change(ctx, have, hash)
}

// change writes if the cached object differs from the wanted one.
func (a *Call) change(ctx context.Context, have client.Object, hash string) (Outcome, error) {
	before := have.GetResourceVersion()
	want, err := a.wanted(hash)
	if err != nil {
		return "", err
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(have)
	if err != nil {
		return "", err
	}
	fields["apiVersion"], fields["kind"] = want["apiVersion"], want["kind"] // which typed objects are without
	differs := differsAt(fields, want)
	if differs == nil {
		a.Memory.holds(a.key(), hash, before)
		return Unchanged, a.show(have)
	}
	repair := have.GetAnnotations()[a.Applied] == hash
	if repair {
		if err := a.mayRepair(ctx, differs); err != nil {
			return "", err
		}
	}
	if err := a.leaveFields(ctx, fields); err != nil {
		return "", err
	}
	if err := a.write(ctx, want, hash); err != nil {
		return "", err
	}
	switch {
	case a.obj.GetResourceVersion() == before:
		return Unchanged, nil // the server found that it has all of it already, in other words
	case repair:
		a.Memory.repaired(a.key())
		a.Events.Normal(eventRepaired, "%s: restored fields that another client had changed: %s", a.Name, textOf(differs))
		return Repaired, nil
	}
	return Changed, nil
}

// cached is the object as the member's cache has it; nil: it has not.
func (a *Call) cached(ctx context.Context) (client.Object, error) {
	made, err := a.Client.Scheme().New(a.gvk)
	have, typed := made.(client.Object)
	if err != nil || !typed { // a kind that is only known by name is not cached, but read live
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(a.gvk)
		have = u
	}
	if err := a.Client.Get(ctx, client.ObjectKeyFromObject(a.obj), have); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return have, nil
}

// ErrForeign is wrapped by errors that say that an object exists and is not ours.
var ErrForeign = errors.New("so the hub does not change it")

// belongs reports what may be done about an object that exists: an error says that it is not ours, also when it is about to be
// deleted, because a finalizer may keep it for as long as somebody likes; goes, that it is about to be deleted, also with an
// earlier owner of the same name.
func (a *Call) belongs(have client.Object) (goes bool, err error) {
	goes = have.GetDeletionTimestamp() != nil
	controller := metav1.GetControllerOfNoCopy(have)
	switch {
	case a.Unowned || (controller == nil && a.Adopt):
		return goes, nil
	case controller == nil:
		return false, retry.Terminal(fmt.Errorf("it exists and has no controller, %w", ErrForeign))
	case controller.UID == a.Owner.GetUID():
		return goes, nil
	}
	if name, ok := object.ControllerOf(have, a.Kind.GroupKind()); ok && name == a.Owner.GetName() {
		return true, nil
	}
	return false, retry.Terminal(fmt.Errorf("%s %s controls it, %w", controller.Kind, controller.Name, ErrForeign))
}

// write applies, and has obj show the answer.
func (a *Call) write(ctx context.Context, want map[string]any, hash string) error {
	u := &unstructured.Unstructured{Object: want}
	options := []client.ApplyOption{client.FieldOwner(a.Manager)}
	if !a.Yield {
		options = append(options, client.ForceOwnership)
	}
	if err := a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), options...); err != nil {
		return err
	}
	a.Memory.holds(a.key(), hash, u.GetResourceVersion())
	return a.show(u)
}

// show makes obj the object that the member has.
func (a *Call) show(have client.Object) error {
	if reflect.TypeOf(have) == reflect.TypeOf(a.obj) {
		reflect.ValueOf(a.obj).Elem().Set(reflect.ValueOf(have).Elem())
		return nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(have)
	if err != nil {
		return err
	}
	if u, ok := a.obj.(*unstructured.Unstructured); ok {
		u.Object = fields
		u.SetGroupVersionKind(a.gvk)
		return nil
	}
	reflect.ValueOf(a.obj).Elem().SetZero()
	return runtime.DefaultUnstructuredConverter.FromUnstructured(fields, a.obj)
}

// Delete deletes the cached object if it is the owner's.
func (a *Call) Delete(ctx context.Context) (bool, error) {
	have, err := a.cached(ctx)
	if have == nil || err != nil || have.GetDeletionTimestamp() != nil {
		return false, err
	}
	if controller := metav1.GetControllerOfNoCopy(have); controller == nil || controller.UID != a.Owner.GetUID() {
		return false, nil
	}
	a.Memory.forget(a.key())
	uid := have.GetUID()
	err = a.Client.Delete(ctx, have, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return false, nil // it is gone, and what has its name now is another
	}
	return err == nil, err
}
