package reconcile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
	"github.com/plimsoll-dev/plimsoll/reconcile/internal/retry"

	corev1 "k8s.io/api/core/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

const (
	// leftSuffix marks the field manager under which a value stays that was left to somebody else ([Leave]).
	leftSuffix = "-left"
)

// scope is what a request's objects are applied under.
type scope struct {
	manager string                  // of the applied fields
	applied string                  // the annotation with the hash of what was applied last
	kind    schema.GroupVersionKind // of the request's object
	memory  *appliedMemory
	inTurn  bool // nothing is applied side by side
}

// application is one call of Apply or Delete.
type application struct {
	*scope
	applyOptions

	where
	obj  client.Object
	gvk  schema.GroupVersionKind
	name string // of obj, for people
}

// notifier is the part of a request's recorder that tells of repairs.
type notifier interface {
	Normal(reason, format string, args ...any)
}

// where is the member and the object for which something is applied.
type where struct {
	client client.Client
	live   client.Reader
	events notifier
	owner  client.Object
}

// newApplication makes the application of one object. A nil scope is an error: nobody has said under which names to write.
func newApplication(s *scope, t where, obj client.Object, opts []applyOption) (*application, error) {
	if s == nil {
		return nil, fmt.Errorf("apply or delete a %T: the request was not made by a controller", obj)
	}
	gvk, err := apiutil.GVKForObject(obj, t.client.Scheme())
	if err != nil {
		return nil, retry.Terminal(fmt.Errorf("apply or delete a %T: %w", obj, err))
	}
	a := &application{
		scope: s, where: t, obj: obj, gvk: gvk,
		name: object.KindName(gvk) + " " + object.StoreKey(client.ObjectKeyFromObject(obj)),
	}
	for _, option := range opts {
		option(&a.applyOptions)
	}
	return a, nil
}

// apply compares the cached object with the wanted one, and writes if they differ.
func (a *application) apply(ctx context.Context) (doing, error) {
	if owner := a.owner.GetNamespace(); !a.unowned && owner != "" && owner != a.obj.GetNamespace() {
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
		return doneLater, a.show(have)
	}
	if a.memory.settled(a.key(), hash, have.GetResourceVersion()) {
		return doneNothing, a.show(have)
	}
	return a.change(ctx, have, hash)
}

// change writes if the cached object differs from the wanted one.
func (a *application) change(ctx context.Context, have client.Object, hash string) (doing, error) {
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
	if differs == "" {
		a.memory.holds(a.key(), hash, before)
		return doneNothing, a.show(have)
	}
	repair := have.GetAnnotations()[a.applied] == hash
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
		return doneNothing, nil // the server found that it has all of it already, in other words
	case repair:
		a.memory.repaired(a.key())
		a.events.Normal("Repaired", "%s: somebody else had changed %s", a.name, differs)
		return doneRepair, nil
	}
	return doneChange, nil
}

// hash names what is asked for, so that it is recognised without a look at its fields.
func (a *application) hash() (string, error) {
	data, err := json.Marshal(a.obj)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	sum.Write(data)
	fmt.Fprint(sum, a.gvk, a.leave)
	if !a.unowned {
		fmt.Fprint(sum, a.kind, a.owner.GetName(), a.owner.GetUID())
	}
	return hex.EncodeToString(sum.Sum(nil)[:16]), nil
}

// wanted is the configuration to apply, which carries the hash.
func (a *application) wanted(hash string) (map[string]any, error) {
	want, err := configuration(a.obj)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: want}
	u.SetGroupVersionKind(a.gvk)
	if !a.unowned {
		u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(a.owner, a.kind)})
	}
	for _, path := range a.leave {
		if _, set := at(want, path); set {
			return nil, retry.Terminal(fmt.Errorf("%s is both applied and left to others", path))
		}
	}
	notes := u.GetAnnotations()
	if notes == nil {
		notes = map[string]string{}
	}
	notes[a.applied] = hash
	u.SetAnnotations(notes)
	return want, nil
}

// cached is the object as the member's cache has it; nil: it has not.
func (a *application) cached(ctx context.Context) (client.Object, error) {
	made, err := a.client.Scheme().New(a.gvk)
	have, typed := made.(client.Object)
	if err != nil || !typed { // a kind that is only known by name is not cached, but read live
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(a.gvk)
		have = u
	}
	if err := a.client.Get(ctx, client.ObjectKeyFromObject(a.obj), have); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return have, nil
}

// belongs tells what may be done about an object that exists: an error says that it is not ours; goes, that it is about to
// be deleted, also with an earlier owner of the same name.
func (a *application) belongs(have client.Object) (goes bool, err error) {
	if have.GetDeletionTimestamp() != nil {
		return true, nil
	}
	controller := metav1.GetControllerOfNoCopy(have)
	switch {
	case a.unowned || (controller == nil && a.adopt):
		return false, nil
	case controller == nil:
		return false, retry.Terminal(errors.New("it exists and is nobody's, so it is left alone"))
	case controller.UID == a.owner.GetUID():
		return false, nil
	}
	if name, ok := object.ControllerOf(have, a.kind.GroupKind()); ok && name == a.owner.GetName() {
		return true, nil
	}
	return false, retry.Terminal(fmt.Errorf("it belongs to %s %s, so it is left alone", controller.Kind, controller.Name))
}

// write applies, and has obj show the answer.
func (a *application) write(ctx context.Context, want map[string]any, hash string) error {
	u := &unstructured.Unstructured{Object: want}
	options := []client.ApplyOption{client.FieldOwner(a.manager)}
	if !a.yield {
		options = append(options, client.ForceOwnership)
	}
	if err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), options...); err != nil {
		return err
	}
	a.memory.holds(a.key(), hash, u.GetResourceVersion())
	return a.show(u)
}

// show makes obj the object that the member has.
func (a *application) show(have client.Object) error {
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

// leaveFields hands the fields that were ours alone, and are to be left, to a manager of their own with the value that they
// have, so that applying without them does not remove them.
func (a *application) leaveFields(ctx context.Context, have map[string]any) error {
	for _, path := range a.leave {
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

// leaveTries is how often the member's object is read anew when somebody changes it at the same time.
const leaveTries = 5

// leaveField hands one field over. It is refused as a conflict when the object has changed since it was read: perhaps it was
// the field's new manager who did so, and its value must stay.
func (a *application) leaveField(ctx context.Context, path string) error {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(a.gvk)
	if err := a.live.Get(ctx, client.ObjectKeyFromObject(a.obj), live); err != nil {
		return err
	}
	value, set := at(live.Object, path)
	if !set || !onlyOwner(live.GetManagedFields(), a.manager, path) {
		return nil
	}
	left := &unstructured.Unstructured{Object: map[string]any{}}
	put(left.Object, path, value)
	left.SetGroupVersionKind(a.gvk)
	left.SetNamespace(a.obj.GetNamespace())
	left.SetName(a.obj.GetName())
	left.SetUID(live.GetUID())
	left.SetResourceVersion(live.GetResourceVersion())
	return a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(left), client.FieldOwner(a.manager+leftSuffix), client.ForceOwnership)
}

// delete deletes the cached object if it is the owner's.
func (a *application) delete(ctx context.Context) (bool, error) {
	have, err := a.cached(ctx)
	if have == nil || err != nil || have.GetDeletionTimestamp() != nil {
		return false, err
	}
	if controller := metav1.GetControllerOfNoCopy(have); controller == nil || controller.UID != a.owner.GetUID() {
		return false, nil
	}
	a.memory.forget(a.key())
	uid := have.GetUID()
	err = a.client.Delete(ctx, have, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return false, nil // it is gone, and what has its name now is another
	}
	return err == nil, err
}

// configuration is what an object says about itself that may be applied.
func configuration(obj client.Object) (map[string]any, error) {
	if secret, ok := obj.(*corev1.Secret); ok && len(secret.StringData) > 0 {
		obj = withoutStringData(secret)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	if _, shared := obj.(*unstructured.Unstructured); shared {
		fields = runtime.DeepCopyJSON(fields)
	}
	metadata := map[string]any{}
	had, _ := fields["metadata"].(map[string]any)
	for _, key := range []string{"name", "namespace", "labels", "annotations", "finalizers"} {
		if value, set := had[key]; set {
			metadata[key] = value
		}
	}
	fields["metadata"] = metadata
	delete(fields, "status")
	dropNulls(fields)
	return fields, nil
}

// withoutStringData moves what can only be written to where it can be read.
func withoutStringData(secret *corev1.Secret) *corev1.Secret {
	secret = secret.DeepCopy()
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	for key, value := range secret.StringData {
		secret.Data[key] = []byte(value)
	}
	secret.StringData = nil
	return secret
}
