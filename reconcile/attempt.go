package reconcile

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
)

// eventInvalidAnnotation is the reason of a Warning about an object.
const eventInvalidAnnotation = "InvalidAnnotation" // The annotation `plimsoll.dev/paused` is neither `true` nor `false`; nothing is paused.

// attempt is one look at an object: unless it is paused, its finalizer is seen to and the reconciler is called; then what
// changed of its status is written.
func (a *adapter[T]) attempt(ctx context.Context, e *engagement, obj T) ending {
	var end ending
	paused := pauseOf(obj) == pauseOn && !a.primary.pauses
	if !paused && a.primary.finalizer != "" && obj.GetDeletionTimestamp() == nil {
		if obj, end.err = a.hold(ctx, e, obj); isGone(end.err) {
			return ending{}
		}
		end.ours = end.err != nil
	}
	req := a.request(e, obj)
	before, reports := reported(obj)
	switch {
	case paused:
		end = ending{outcome: codePaused, result: Result{reason: pausedReason}}
	case end.err == nil:
		end = a.act(ctx, e, req)
	}
	if pauseOf(obj) == pauseInvalid && !a.primary.pauses {
		req.Events.Warning(eventInvalidAnnotation, "%s is %q: it must be \"true\" or \"false\"; nothing is paused",
			AnnotationPaused, obj.GetAnnotations()[AnnotationPaused])
	}
	if err := a.conclude(e, req, before, reports, end); err != nil && end.err == nil {
		end = endingOf(ctx, Result{}, err)
	}
	return end
}

const pausedReason = "paused by the annotation " + AnnotationPaused

// act calls what the kind's author wrote, and catches its panics.
func (a *adapter[T]) act(ctx context.Context, e *engagement, req Request[T]) (end ending) {
	defer func() {
		if p := recover(); p != nil {
			end = a.controller.panicked(e, client.ObjectKeyFromObject(req.Object), p)
			if a.finalizes(req.Object) {
				end = a.overdue(req, end)
			}
		}
	}()
	ctx = logr.NewContextWithSlogLogger(ctx, req.Log) // what controller-runtime's log.FromContext returns
	if end, decided := a.finalize(ctx, e, req); decided {
		return end
	}
	result, err := a.reconcile(ctx, req)
	return endingOf(ctx, result, err)
}

// conclude writes what changed of the status, if it is ours to keep and worth a write.
func (a *adapter[T]) conclude(e *engagement, req Request[T], before StatusObject, reports bool, end ending) error {
	if !reports || !end.worthWriting() || !e.live() {
		return nil
	}
	req.Conditions.conclude(end)
	after := any(req.Object).(StatusObject)
	status := after.CommonStatus()
	status.Conditions = req.Conditions.list
	common := before.CommonStatus()
	status.ObservedGeneration, status.LastHandledRequest = common.ObservedGeneration, common.LastHandledRequest
	if end.outcome != codePaused {
		status.ObservedGeneration = before.GetGeneration()
		status.LastHandledRequest = before.GetAnnotations()[AnnotationRequestedAt]
	}
	ctx, cancel := context.WithTimeout(e.ctx, statusPatience)
	defer cancel()
	if err := writeStatus(ctx, req.Client, req.Live, before, after); err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	return nil
}

// worthWriting reports whether an ending is one for the object's status. What ended because somebody else was faster, or
// because this replica may not act any more, says nothing about the object; one that was cleaned up is about to go.
func (e ending) worthWriting() bool {
	switch e.outcome {
	case codeGone, codeCleanedUp, codeNotOurs:
		return false
	}
	return e.err == nil || (!apierrors.IsConflict(e.err) && !errors.Is(e.err, clusters.ErrNotOwner) && !errors.Is(e.err, context.Canceled))
}

// isGone reports whether an object that was read is no more, or another one of its name is.
func isGone(err error) bool { return apierrors.IsNotFound(err) || errors.Is(err, errReplacedObject) }

var errReplacedObject = errors.New("another object of this name has taken its place")

// reported is a copy of an object as it was before its reconcile, if its status is kept by the framework.
func reported(obj client.Object) (before StatusObject, ok bool) {
	if _, ok = obj.(StatusObject); !ok {
		return nil, false
	}
	before, ok = obj.DeepCopyObject().(StatusObject)
	return before, ok
}
