package inprocess

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/plimsoll-dev/plimsoll/hub/api"
	"github.com/plimsoll-dev/plimsoll/hub/journal"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/test/bench/internal/figures"
)

const (
	requeueController = "worker"
	requeueRate       = 200 // orders a second
	// requeueWorkers is the hub's default, requeueTakes what two calls of an API server take.
	requeueWorkers = 5
	requeueTakes   = 10 * time.Millisecond
)

// requeueNamespace and requeueName are where an object of the framework's cluster is; every hundredth is in the same namespace.
const requeueNamespace = "team-0"

func requeueName(n int) string { return fmt.Sprint("app-", n*100%frameworkKeys) }

// requeues measures how long an order that the API has accepted takes to be begun, while 100,000 other keys of the member are queued:
// the real queue, its workers busy all the time, behind the real API. What has been reconciled is queued again at once, so that the
// backlog stays.
func requeues(ctx context.Context, b Bench, people *apiBackend) error {
	log.SetLogger(logr.Discard())
	cluster, err := newFrameworkSite(ctx)
	if err != nil {
		return err
	}
	defer cluster.stop()
	rt, err := reconcile.NewRuntime(reconcile.Options{Resync: -1, Log: frameworkLog()})
	if err != nil {
		return err
	}
	work := &slowWork{begun: map[string][]time.Time{}}
	controller, err := reconcile.For(rt, requeueController, work).Workers(requeueWorkers).Register()
	if err != nil {
		return err
	}
	site, err := newAPISite(ctx, people, api.Backend{Members: people, Workloads: people, Objects: rt, Ownership: people, Events: journal.New(journal.Limits{})})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- controller.Start(ctx) }()
	err = controller.Engage(ctx, multicluster.ClusterName(apiMember(0)), cluster)
	var least int
	if err == nil {
		least, err = site.requeue(ctx, b.Report, rt, work)
	}
	cancel()
	b.Report.Note("api: at least %d keys were queued while orders came, 5 workers took 10 ms for each", least)
	return errors.Join(err, site.stop(), <-ended)
}

// requeue sends the orders, and returns the shortest backlog.
func (s *apiSite) requeue(ctx context.Context, r *figures.Report, rt *reconcile.Runtime, work *slowWork) (least int, err error) {
	const enough = frameworkKeys - 2*requeueWorkers
	queued := func() int { return rt.ControllersIn(apiMember(0))[0].Queued }
	for queued() < enough {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return 0, fmt.Errorf("%d keys are queued, want %d: %w", queued(), enough, ctx.Err())
		}
	}
	got, err := s.call(ctx, apiOrder{What: "requeue", Rate: requeueRate, For: apiTime})
	if err != nil {
		return 0, err
	}
	least = queued()
	var took []time.Duration
	for _, order := range got.Orders {
		begun, err := work.after(ctx, order.Name, order.Accepted)
		if err != nil {
			return least, err
		}
		took = append(took, begun.Sub(order.Accepted))
	}
	slices.Sort(took)
	r.Record("api-requeue-p99-ms", figures.Milliseconds(figures.Quantile(took, 0.99)))
	return least, nil
}

// slowWork reconciles as one that waits for API servers, and notes when it began with each object.
type slowWork struct {
	mu    sync.Mutex
	begun map[string][]time.Time
}

// Reconcile implements reconcile.Reconciler.
func (w *slowWork) Reconcile(_ context.Context, req reconcile.Request[*appsv1.Deployment]) (reconcile.Result, error) {
	if req.Object.Namespace == requeueNamespace {
		w.mu.Lock()
		w.begun[req.Object.Name] = append(w.begun[req.Object.Name], time.Now())
		w.mu.Unlock()
	}
	time.Sleep(requeueTakes)
	return reconcile.RequeueAfter(time.Millisecond, "the backlog stays"), nil
}

// after waits until a reconcile has begun after a moment, and returns when the first one did.
func (w *slowWork) after(ctx context.Context, name string, moment time.Time) (time.Time, error) {
	for {
		w.mu.Lock()
		begun := slices.Clone(w.begun[name])
		w.mu.Unlock()
		for _, at := range begun {
			if !at.Before(moment) {
				return at, nil
			}
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("the reconcile of %s that was ordered has not started: %w", name, ctx.Err())
		}
	}
}
