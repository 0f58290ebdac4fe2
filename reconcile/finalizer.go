package reconcile

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/members"
	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
	"github.com/plimsoll-dev/plimsoll/reconcile/internal/retry"
)

// A Finalizer is a [Reconciler] that must clean up before its object goes. The framework puts the finalizer
// "plimsoll.dev/<controller>" (see [Builder.Domain]) on an object before the first Reconcile of it, and takes it off when Finalize has said
// [CleanedUp] or [NotOurs]; it never touches finalizers of others.
//
// What belongs to the member itself needs no Finalizer: owned objects are collected by Kubernetes. A controller that gets
// another name, or that no hub runs any more, leaves its finalizers behind, and the objects that carry them cannot go before
// somebody takes them off.
type Finalizer[T client.Object] interface {
	Reconciler[T]
	// Finalize is called in place of Reconcile while the object is being deleted and carries the controller's finalizer,
	// under the same deadline. It is called again after a crash, a conflict or an error, so it must bear being repeated
	// after it has already cleaned up. An error backs off exponentially, and the finalizer stays. When the object has been
	// in deletion for longer than [Builder.FinalizeDeadline], it is shown as Stalled, and Finalize keeps being called.
	Finalize(ctx context.Context, req Request[T]) (FinalizeResult, error)
}

// FinalizeResult is what a Finalize answers. It is sealed: it is built with [Continue], [CleanedUp], [Pending] or
// [NotOurs]. The zero value is Continue.
type FinalizeResult struct {
	verb   finalizeVerb
	reason string
	after  time.Duration
}

type finalizeVerb uint8

const (
	finalizeContinue finalizeVerb = iota
	finalizeCleanedUp
	finalizePending
	finalizeNotOurs
)

// Continue says that it is not time to clean up yet: Reconcile is called as for an object that is not being deleted, and
// the finalizer stays.
func Continue() FinalizeResult { return FinalizeResult{} }

// CleanedUp says that nothing is left to clean up: the finalizer is removed.
func CleanedUp() FinalizeResult { return FinalizeResult{verb: finalizeCleanedUp} }

// Pending says that cleaning up is under way: the finalizer stays, and Finalize is called again after a time, or earlier
// when something changes. A time of zero or less backs off exponentially, like [Requeue]. reason is shown in the API and
// in the conditions.
func Pending(after time.Duration, reason string) FinalizeResult {
	return FinalizeResult{verb: finalizePending, after: max(after, 0), reason: reason}
}

// NotOurs says that there is nothing here that this hub may clean up, for example because the member that held it was
// detached by force ([Runtime.Detached]): the finalizer is removed, and the ledger says that nothing was cleaned up. reason
// is shown in the API.
func NotOurs(reason string) FinalizeResult {
	return FinalizeResult{verb: finalizeNotOurs, reason: reason}
}

const finalizerTries = 5

// hold puts the controller's finalizer on an object, unless it turns out to be in deletion, and returns it as it is then.
func (a *adapter[T]) hold(ctx context.Context, e *engagement, obj T) (T, error) {
	if controllerutil.ContainsFinalizer(obj, a.primary.finalizer) {
		return obj, nil
	}
	held, err := a.setFinalizer(ctx, e, obj, true)
	if err != nil {
		return obj, fmt.Errorf("add the finalizer %s: %w", a.primary.finalizer, retry.Refused(err))
	}
	return held, nil
}

// finalize calls the Finalizer for an object that is being deleted and carries the controller's finalizer, and takes that
// off when it may go. Not decided: the object is to be reconciled.
func (a *adapter[T]) finalize(ctx context.Context, e *engagement, req Request[T]) (end ending, decided bool) {
	if a.primary.finalizer == "" || req.Object.GetDeletionTimestamp() == nil {
		return ending{}, false
	}
	if !controllerutil.ContainsFinalizer(req.Object, a.primary.finalizer) {
		return ending{result: Result{reason: "being deleted, and not held by this controller"}}, true
	}
	result, err := a.reconciler.(Finalizer[T]).Finalize(ctx, req)
	if err != nil {
		return a.overdue(req, endingOf(ctx, Result{}, err)), true
	}
	switch result.verb {
	case finalizeContinue:
		return ending{}, false
	case finalizePending:
		return a.overdue(req, pendingEnding(result)), true
	}
	if _, err := a.setFinalizer(ctx, e, req.Object, false); err != nil && !isGone(err) {
		end := endingOf(ctx, Result{}, fmt.Errorf("remove the finalizer %s: %w", a.primary.finalizer, retry.Refused(err)))
		end.ours = true
		return a.overdue(req, end), true
	}
	return finalEnding(result), true
}

// finalizes reports whether an object is being deleted and is held by this controller.
func (a *adapter[T]) finalizes(obj T) bool {
	return a.primary.finalizer != "" && obj.GetDeletionTimestamp() != nil && controllerutil.ContainsFinalizer(obj, a.primary.finalizer)
}

// overdue marks the ending of a Finalize that has had longer than its deadline, and sees to it that one that waits is looked
// at when the deadline passes.
func (a *adapter[T]) overdue(req Request[T], end ending) ending {
	left := a.finalizeDeadline - time.Since(req.Object.GetDeletionTimestamp().Time)
	switch {
	case left <= 0:
		end.overdue = fmt.Sprintf("cleaning up has taken longer than %s", a.finalizeDeadline)
		req.Events.Warning(ReasonOverdue, "%s, and continues", end.overdue)
	case end.result.verb == verbRequeueAfter:
		end.result.after = min(end.result.after, left)
	}
	return end
}

// pendingEnding is how a Finalize ended that is not through.
func pendingEnding(r FinalizeResult) ending {
	end := ending{outcome: codePending, result: Requeue(r.reason)}
	if r.after > 0 {
		end.result = RequeueAfter(r.after, r.reason)
	}
	return end
}

// finalEnding is how a Finalize ended after which the object may go.
func finalEnding(r FinalizeResult) ending {
	if r.verb == finalizeNotOurs {
		return ending{outcome: codeNotOurs, result: Result{reason: r.reason}}
	}
	return ending{outcome: codeCleanedUp}
}

// setFinalizer adds or removes the controller's finalizer, and returns the object as it is then. The patch replaces the list
// of finalizers, and carries the resourceVersion of the list it was made from: it cannot lose what somebody else has added
// or bring back what somebody removed, nor meet another object of the same name. A conflict is tried again from the live
// object. (A JSON patch that tests the element would be refused less often, and with an error that cannot be distinguished from a bad
// request; with server-side apply a finalizer that another manager has written as well, a backup's restore for one, could
// never be removed.)
func (a *adapter[T]) setFinalizer(ctx context.Context, e *engagement, obj T, want bool) (T, error) {
	key, uid := client.ObjectKeyFromObject(obj), obj.GetUID()
	c, live := e.cluster.GetClient(), members.LiveReader(e.cluster)
	for try := 1; ; try++ {
		next := obj.DeepCopyObject().(T)
		if want == controllerutil.ContainsFinalizer(obj, a.primary.finalizer) || (want && obj.GetDeletionTimestamp() != nil) {
			return obj, nil
		}
		if want {
			controllerutil.AddFinalizer(next, a.primary.finalizer)
		} else {
			controllerutil.RemoveFinalizer(next, a.primary.finalizer)
		}
		err := c.Patch(ctx, next, client.MergeFromWithOptions(obj, client.MergeFromWithOptimisticLock{}))
		if err == nil {
			return next, nil
		}
		if !apierrors.IsConflict(err) || try == finalizerTries {
			return obj, err
		}
		obj = object.Empty[T](a.controller.watches[0].gvk)
		if err := live.Get(ctx, key, obj); err != nil {
			return obj, err
		}
		if obj.GetUID() != uid {
			return obj, errReplacedObject
		}
	}
}
