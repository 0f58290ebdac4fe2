package webapp

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/module"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
	v1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
)

// A Reconciler keeps what WebApps consist of as their specs say. It is safe for concurrent use.
type Reconciler struct {
	// Keys are the labels and annotations of spot placement.
	Keys policy.Keys
	// Placer knows where replicas are.
	Placer module.Placements
}

// errAccountGoes is why nothing is applied for now. The end of the account wakes the WebApp, unless the hub does not cache it.
var errAccountGoes = errors.New("its service account is being deleted: the hub creates it again when it is gone")

// accountRetry is when it is looked for again.
const accountRetry = 5 * time.Second

var _ reconcile.Reconciler[*v1.WebApp] = (*Reconciler)(nil)

// Reconcile brings one WebApp a step further. There is no finalizer: what a WebApp consists of is in its namespace and has
// it for an owner, so Kubernetes takes it away when the WebApp goes.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request[*v1.WebApp]) (reconcile.Result, error) {
	app := req.Object
	if app.DeletionTimestamp != nil {
		req.Conditions.False(reconcile.ConditionReady, v1.ReasonDeleting, "it is being deleted, with its objects")
		return reconcile.Done(), nil
	}
	if err := v1.CheckSize(len(app.Spec.Containers), len(app.Spec.EnvFrom)); err != nil {
		return reconcile.Done(), reconcile.TerminalError(err)
	}
	deployment, err := r.apply(ctx, req)
	if errors.Is(err, errAccountGoes) {
		req.Conditions.False(v1.ConditionCreated, v1.ReasonCreating, "%s", err)
		req.Conditions.False(reconcile.ConditionReady, v1.ReasonCreating, "%s", err)
		return reconcile.RequeueAfter(accountRetry, err.Error()), nil
	}
	if err != nil {
		req.Conditions.False(v1.ConditionCreated, v1.ReasonCreating, "not all of its objects exist; Ready says why")
		return reconcile.Done(), err
	}
	req.Conditions.True(v1.ConditionCreated, v1.ReasonCreated, "all of its objects exist")
	progress := Assess(deployment, &app.Status)
	count(&app.Status, app, deployment)
	again, err := r.place(ctx, req)
	if err != nil {
		return reconcile.Done(), err
	}
	if unmet := req.Require(ctx, needs(app)...); unmet != nil {
		return reconcile.WaitFor(unmet), nil
	}
	writeConditions(req.Conditions, progress)
	if again > 0 {
		return reconcile.RequeueAfter(again, "spot placement is under way"), nil
	}
	return reconcile.Done(), nil
}

// apply makes everything that the WebApp consists of, and takes away what it no longer does. What can be made is made, also
// when something else cannot: the error then names everything that failed for good. Only without the account nothing is, and
// what ran as another's account of that name is stopped. While our own is being deleted, what runs as it goes on.
func (r *Reconciler) apply(ctx context.Context, req reconcile.Request[*v1.WebApp]) (*appsv1.Deployment, error) {
	deployed, err := exists(ctx, req.Client, req.Object)
	if err != nil {
		return nil, err
	}
	desired := Desire(req.Object, r.Keys, deployed)
	for _, object := range desired.Unwanted { // first, so that an autoscaler that goes decides nothing any more
		if _, err := req.Delete(ctx, object); err != nil {
			return nil, err
		}
	}
	applied, err := req.Apply(ctx, desired.Account) // whatever else there is: no pod runs as an account that is not ours
	foreign := errors.Is(err, reconcile.ErrForeign)
	if foreign || applied == reconcile.AppliedLater && !metav1.IsControlledBy(desired.Account, req.Object) {
		if _, failed := req.Delete(ctx, desired.Deployment); failed != nil {
			return nil, errors.Join(err, failed)
		}
		count(&req.Object.Status, req.Object, &appsv1.Deployment{})
	}
	switch {
	case foreign:
		return nil, fmt.Errorf("%w; there is no Deployment, because its pods would run as that account", err)
	case err != nil:
		return nil, err
	case applied == reconcile.AppliedLater:
		return nil, errAccountGoes
	}
	first, last := desired.Steps()
	var refused []error
	for _, step := range []func() error{
		func() error { return req.ApplyAll(ctx, first...) },
		func() error { _, err := req.Apply(ctx, desired.Deployment, desired.Options...); return err },
		func() error { return req.ApplyAll(ctx, last...) },
	} {
		switch err := step(); {
		case reconcile.IsTerminal(err):
			refused = append(refused, err)
		case err != nil:
			return nil, err
		}
	}
	return desired.Deployment, errors.Join(refused...)
}

// exists reports whether the WebApp's Deployment is there.
func exists(ctx context.Context, c client.Reader, app *v1.WebApp) (bool, error) {
	err := c.Get(ctx, client.ObjectKeyFromObject(app), &appsv1.Deployment{}, &client.GetOptions{UnsafeDisableDeepCopy: new(true)})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// place reports what is known about where the replicas are.
func (r *Reconciler) place(ctx context.Context, req reconcile.Request[*v1.WebApp]) (again time.Duration, err error) {
	app := req.Object
	if app.Spec.Spot == nil {
		return placed(app, req.Conditions, r.Keys, false, report.Workload{}, false), nil
	}
	var namespace corev1.Namespace
	if err := req.Client.Get(ctx, client.ObjectKey{Name: app.Namespace}, &namespace); err != nil {
		return 0, fmt.Errorf("read namespace %s: %w", app.Namespace, err)
	}
	enabled := namespace.Labels[r.Keys.Enabled()] == "true"
	view, known := r.Placer.Summary(req.Member, spot.KindDeployment, app.Namespace, app.Name)
	return placed(app, req.Conditions, r.Keys, enabled, view, known), nil
}

// count copies what the Deployment says of its pods.
func count(status *v1.WebAppStatus, app *v1.WebApp, deployment *appsv1.Deployment) {
	status.Replicas = deployment.Status.Replicas
	status.ReadyReplicas = deployment.Status.ReadyReplicas
	status.AvailableReplicas = deployment.Status.AvailableReplicas
	status.Selector = app.Selector().String()
}

// writeConditions writes where the WebApp is into its conditions; what is left open follows from the result.
func writeConditions(conditions *reconcile.Conditions, progress Progress) {
	switch {
	case progress.Ready():
		conditions.True(reconcile.ConditionReady, progress.Reason, "%s", progress.Message)
	case progress.Stalled():
		conditions.False(reconcile.ConditionReady, progress.Reason, "%s", progress.Message)
		conditions.Remove(reconcile.ConditionReconciling)
		conditions.True(reconcile.ConditionStalled, progress.Reason, "%s", progress.Message)
	default:
		conditions.False(reconcile.ConditionReady, progress.Reason, "%s", progress.Message)
	}
}
