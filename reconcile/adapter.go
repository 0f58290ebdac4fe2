package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/depend"
	"github.com/plimsoll-dev/plimsoll/reconcile/internal/members"
	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
)

var errDeadline = errors.New("the reconcile's deadline passed")

// adapter calls a typed reconciler for the keys of a controller.
type adapter[T client.Object] struct {
	controller *Controller
	reconciler Reconciler[T]
	primary    *primary
	deadline   time.Duration
	dependsOn  func(obj T) []Dependency

	finalizeDeadline time.Duration
}

// run reads the object and calls the reconciler, within the deadline and the life of the member.
func (a *adapter[T]) run(ctx context.Context, e *engagement, key types.NamespacedName) (end ending) {
	ctx, cancel := context.WithTimeoutCause(ctx, a.deadline, errDeadline)
	defer cancel()
	defer context.AfterFunc(e.ctx, cancel)()
	defer e.watchStuck(key, a.deadline+stuckGrace).end()
	defer func() {
		if p := recover(); p != nil {
			end = a.controller.panicked(e, key, p)
		}
	}()
	obj := object.Empty[T](a.controller.watches[0].gvk)
	switch err := e.cluster.GetCache().Get(ctx, key, obj); {
	case apierrors.IsNotFound(err):
		if f, ok := a.reconciler.(Forgetter); ok {
			f.Forget(ctx, e.name, key)
		}
		return ending{outcome: codeGone}
	case err != nil:
		return endingOf(ctx, Result{}, fmt.Errorf("member %s: read %s from the cache: %w", e.name, key, err))
	}
	asked := obj.GetAnnotations()[AnnotationRequestedAt]
	end = a.attempt(ctx, e, obj)
	end.asked = asking{asked, end.outcome != codePaused}
	return end
}

func (c *Controller) panicked(e *engagement, key types.NamespacedName, p any) ending {
	c.rt.metrics.panicked(c.name, e.name)
	e.log.Error("reconciler panicked", "namespace", key.Namespace, "name", key.Name,
		"panic", object.Clip(fmt.Sprint(p)), "stack", string(debug.Stack()))
	return ending{err: fmt.Errorf("panic: %v", p), outcome: codePanic}
}

func (a *adapter[T]) request(e *engagement, obj T) Request[T] {
	var have []metav1.Condition
	if s, ok := any(obj).(StatusObject); ok {
		have = s.CommonStatus().Conditions
	}
	return Request[T]{
		Member: e.name, Object: obj, Client: e.cluster.GetClient(), Live: members.LiveReader(e.cluster), Events: e.events.About(obj),
		Conditions: newConditions(have, obj.GetGeneration()), scope: &e.scope,
		needs: depend.NewNeeds(e.flow.needs, client.ObjectKeyFromObject(obj)),
		Log:   object.Log(e.log, obj),
	}
}

// endingOf distinguishes a missed deadline from other errors.
func endingOf(ctx context.Context, result Result, err error) ending {
	end := ending{result: result, err: err}
	if err != nil && errors.Is(context.Cause(ctx), errDeadline) {
		end.outcome = codeTimeout
	}
	return end
}

func logFailure(ctx context.Context, log *slog.Logger, key types.NamespacedName, v decision) {
	attrs := []slog.Attr{
		slog.String("namespace", key.Namespace), slog.String("name", key.Name),
		slog.String("outcome", outcomeLabels[v.outcome]), slog.Uint64("attempt", uint64(v.attempts)),
		slog.String("error", v.err),
	}
	if v.next == nextRetry {
		attrs = append(attrs, slog.Time("nextTry", time.Now().Add(v.after)))
	}
	log.LogAttrs(ctx, slog.LevelError, "reconcile failed", attrs...)
}
