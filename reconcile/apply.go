package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/apply"
	"github.com/plimsoll-dev/plimsoll/reconcile/internal/retry"
)

// Applied is what [Request.Apply] did.
type Applied string

const (
	// AppliedNothing: the object was as wanted; nothing was written.
	AppliedNothing = Applied(apply.Unchanged)
	// AppliedNew: it did not exist.
	AppliedNew = Applied(apply.Created)
	// AppliedChange: it was written because something else is wanted of it than before.
	AppliedChange = Applied(apply.Changed)
	// AppliedRepair: it was written because somebody had changed one of our fields.
	AppliedRepair = Applied(apply.Repaired)
	// AppliedLater: it is being deleted, and nothing was written; its end wakes the key, if the controller Owns its kind.
	AppliedLater = Applied(apply.Terminating)
)

// ApplyOption changes what [Request.Apply] does.
type ApplyOption = apply.Option

// ContestedError says that another field manager sets a field differently again and again, so that it is only corrected
// now and then. [Request.Apply] wraps it.
type ContestedError = apply.ContestedError

// Unowned applies without an owner reference, for objects in another namespace than the request's object, or without any.
// Nothing removes them by itself: a [Finalizer] does. They wake the key only through [Builder.Watches].
func Unowned() ApplyOption { return func(o *apply.Options) { o.Unowned = true } }

// Adopt takes over an object that exists and has no controller. Without it such an object is left alone, and Apply returns
// a TerminalError. One that has another controller is never taken over.
func Adopt() ApplyOption { return func(o *apply.Options) { o.Adopt = true } }

// YieldConflicts returns an error, for which apierrors.IsConflict is true, when another field manager owns an applied
// field with another value. Without it the field is taken over, which is what repairs changes by hand.
func YieldConflicts() ApplyOption { return func(o *apply.Options) { o.Yield = true } }

// Leave names fields that are left to another manager from now on, by their path, for example "spec.replicas" when an
// autoscaler takes over. The fields must not be in the applied object. Server-side apply alone would remove a field that
// is not applied any more, and replicas would fall to one until the autoscaler acts; with Leave the value stays as it is
// until its new manager changes it.
func Leave(paths ...string) ApplyOption {
	return func(o *apply.Options) { o.Leave = append(o.Leave, paths...) }
}

// Apply makes an object in the member have the fields that obj has, by server-side apply under the controller's own field
// manager, "plimsoll-<controller>". It is what a reconciler writes its objects with:
//
//   - obj says what is wanted and nothing else: name, namespace, labels, annotations, spec. It is rebuilt each time, never
//     read from the cache. Fields that are not set stay whoever's they are, an autoscaler's replicas for instance.
//   - Fields that a person or another manager changed are corrected (but see [YieldConflicts]); fields that were applied
//     before and no longer are, are removed (but see [Leave]).
//   - A field that another manager changes back again and again is corrected three times at once, and then less and less
//     often, up to every 5 min; in between Apply returns a [ContestedError] that names the field and the manager.
//   - Nothing is written when the cached object has our fields with our values already. The kind must therefore be one
//     that the controller [Builder.Owns], [Builder.Watches] or [Builder.Uses]. Field managers are not cached; what we
//     applied last is known by its hash in the annotation "applied.plimsoll.dev/<controller>".
//   - The request's object becomes the controller owner of obj, so that it wakes its key and is collected with it; see
//     [Unowned]. Both must be in one namespace, or the owner in none.
//   - An object that exists and is not controlled by the request's object is left alone ([ErrForeign]); see [Adopt].
//
// It may be called concurrently for different objects; see [Request.ApplyAll]. Afterwards obj is the object as the member
// has it. Errors that no retry can fix (invalid, forbidden, a quota) are TerminalErrors with the server's reason.
func (r Request[T]) Apply(ctx context.Context, obj client.Object, opts ...ApplyOption) (Applied, error) {
	a, err := apply.NewCall(r.scope, r.where(), obj, opts)
	if err != nil {
		return "", err
	}
	applied, err := a.Apply(ctx)
	if err != nil {
		return "", fmt.Errorf("apply %s: %w", a.Name, retry.Refused(err))
	}
	return Applied(applied), nil
}

// ErrForeign is wrapped by the error of [Request.Apply] for an object that exists, and that the request's object does not control.
var ErrForeign = apply.ErrForeign

// Delete deletes an object that is no longer wanted, if the cache has it, the request's object controls it and it is not
// being deleted already; else it does nothing. Only name and namespace of obj are read. It reports whether it deleted, with
// background propagation and the UID as a precondition.
func (r Request[T]) Delete(ctx context.Context, obj client.Object) (bool, error) {
	a, err := apply.NewCall(r.scope, r.where(), obj, nil)
	if err != nil {
		return false, err
	}
	deleted, err := a.Delete(ctx)
	if err != nil {
		return false, fmt.Errorf("delete %s: %w", a.Name, retry.Refused(err))
	}
	return deleted, nil
}

// where is what an object is applied with.
func (r Request[T]) where() apply.Caller {
	return apply.Caller{Client: r.Client, Live: r.Live, Events: r.Events, Owner: r.Object}
}

// ApplyAll applies objects that do not need each other as [Request.Apply] does, side by side, a few at a time: most of the time of
// an apply is spent waiting for the member. All are tried, whatever happens to the others. When all that failed is refused for
// good, the error is a TerminalError that names each; else it is one that a retry may fix. A panic goes on in the caller.
func (r Request[T]) ApplyAll(ctx context.Context, objects ...client.Object) error {
	var (
		errs   = make([]error, len(objects))
		panics = make([]any, len(objects))
		turns  = make(chan struct{}, r.scope.AtOnce())
		all    sync.WaitGroup
	)
	for i, object := range objects {
		turns <- struct{}{}
		all.Go(func() {
			defer func() {
				panics[i] = recover()
				<-turns
			}()
			_, errs[i] = r.Apply(ctx, object)
		})
	}
	all.Wait()
	for _, p := range panics {
		if p != nil {
			panic(p)
		}
	}
	var refused []error
	for _, err := range errs {
		switch {
		case IsTerminal(err):
			refused = append(refused, err)
		case err != nil:
			return err
		}
	}
	return errors.Join(refused...)
}
