package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/test/bench/internal/figures"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

const (
	eventRate      = 200 // writes per second, over all members
	eventSeconds   = 30
	eventWarmup    = 2  // seconds whose writes do not count
	eventWorkloads = 20 // in each member
	// eventAsked is how many writes there are to one that the hub is asked about: questions about each would take a tenth of
	// the machine. It shares no factor with the number of workloads, so all of them have their turn.
	eventAsked = 7
	// eventLook is when we ask how a write was taken up, if all is well long after it was; it is less than the time
	// between two writes to one workload.
	eventLook = 100 * time.Millisecond
)

// events measures the time from a write that a member's API server has answered to the start of its reconcile. What is
// written is the policy of StatefulSets without replicas: one event for each write, and nobody else that answers it.
func (b *bench) events(ctx context.Context) error {
	if err := b.registerDirectly(ctx); err != nil {
		return err
	}
	// A resync in between would be taken for the reconcile of a write.
	hub, api, err := b.startReplica(ctx, fleet.Settings{"controller.resyncPeriod": "1h"})
	if err != nil {
		return err
	}
	defer func() { _ = b.stopReplica(ctx, hub, api) }()
	if err := api.AwaitMembers(ctx, b.fleet.Members...); err != nil {
		return err
	}
	targets, err := eventTargets(ctx, api, b.fleet.Members)
	if err != nil {
		return err
	}
	wake, err := b.quieten(ctx)
	if err != nil {
		return err
	}
	delays, err := b.measureEvents(ctx, api, targets)
	if err := errors.Join(err, wake()); err != nil {
		return err
	}
	samples, err := hub.Samples(ctx)
	if err != nil {
		return err
	}
	b.report.Record("event-to-reconcile-p99-ms", figures.Milliseconds(figures.Quantile(delays, 0.99)))
	b.report.Note("event to reconcile: %d of the writes, p50 %.2f ms, p99 %.2f ms, max %.2f ms; of that in the hub's queue p99 at most %g ms", len(delays),
		figures.Milliseconds(figures.Quantile(delays, 0.5)), figures.Milliseconds(figures.Quantile(delays, 0.99)), figures.Milliseconds(delays[len(delays)-1]),
		1000*fleet.Quantile(samples["plimsoll_queue_wait_seconds_bucket"], 0.99, func(s fleet.Sample) bool { return s.Has("priority", "changed") }))
	return nil
}

// quieten stops what watches the members beside the hub, which would take its share of the cores with every write and do
// nothing about it. wake starts it again.
func (b *bench) quieten(ctx context.Context) (wake func() error, err error) {
	beside := []kube.Component{kube.ControllerManager, kube.Scheduler, kube.Kwok}
	for _, m := range b.fleet.Members {
		for _, component := range beside {
			err = errors.Join(err, m.Cluster.Kill(component))
		}
	}
	return func() (err error) {
		for _, m := range b.fleet.Members {
			for _, component := range beside {
				err = errors.Join(err, m.Cluster.Revive(ctx, component))
			}
		}
		return err
	}, err
}

// measureEvents writes, and returns how long after each write its reconcile began, sorted.
func (b *bench) measureEvents(ctx context.Context, api *fleet.API, targets []*target) ([]time.Duration, error) {
	marks := map[*fleet.Member]kube.Mark{}
	for _, m := range b.fleet.Members {
		mark, err := m.Cluster.Audit().Mark()
		if err != nil {
			return nil, err
		}
		marks[m] = mark
	}
	b.logf("%d writes a second for %d s", eventRate, eventWarmup+eventSeconds)
	begun := time.Now()
	before, err := readCPU()
	if err != nil {
		return nil, err
	}
	if err := writeEvents(ctx, api, targets); err != nil {
		return nil, err
	}
	after, err := readCPU()
	if err != nil {
		return nil, err
	}
	b.report.Note("event to reconcile: %.0f writes a second; the machine, with API servers and load, was %.0f %% busy",
		eventRate*(eventWarmup+eventSeconds)/time.Since(begun).Seconds(), after.busySince(before))
	counted, err := answered(targets, marks)
	return delaysOf(counted), err
}

// registerDirectly takes the proxies out of the hub's way: they are part of the testbed, and not of what is measured.
func (b *bench) registerDirectly(ctx context.Context) error {
	for _, m := range b.fleet.Members {
		kubeconfig, err := m.DirectKubeconfig(ctx)
		if err != nil {
			return err
		}
		if err := b.fleet.Reregister(ctx, m, kubeconfig); err != nil {
			return err
		}
	}
	return nil
}

// A target is a workload that is written to, as it was after the last write.
type target struct {
	*fleet.Workload
	mu     sync.Mutex
	set    *appsv1.StatefulSet
	writes int
	taken  []uptake // of its writes, in order
}

// An uptake is when the hub's reconcile of a write began, zero where the write does not count, and the version that the write made.
type uptake struct {
	started time.Time
	version string
}

func eventTargets(ctx context.Context, api *fleet.API, members []*fleet.Member) ([]*target, error) {
	var targets []*target
	for _, m := range members {
		namespace, err := m.NewNamespace(ctx, "events", fleet.Enabled())
		if err != nil {
			return nil, err
		}
		for i := range eventWorkloads {
			set := fleet.StatefulSet(namespace, fmt.Sprintf("web-%d", i), 0, fleet.Policy(50, 0))
			w, err := m.Create(ctx, set)
			if err != nil {
				return nil, err
			}
			targets = append(targets, &target{Workload: w, set: set})
		}
	}
	for _, t := range targets {
		if err := api.Settle(ctx, t.Workload, 0); err != nil {
			return nil, err
		}
		if err := t.forgetManagers(ctx); err != nil {
			return nil, err
		}
	}
	// Members in turn, so that each gets its share of every second.
	slices.SortStableFunc(targets, func(a, b *target) int { return strings.Compare(a.Name, b.Name) })
	return targets, nil
}

// forgetManagers takes what the API server keeps about the writers of each field out of the workload, as the API documents
// for clients that do not need it. Keeping that up to date is a fifth of what a write costs the API server.
func (t *target) forgetManagers(ctx context.Context) error {
	if err := t.Member.Client().Get(ctx, client.ObjectKeyFromObject(t.set), t.set); err != nil {
		return err
	}
	t.set.ManagedFields = []metav1.ManagedFieldsEntry{{}}
	return t.Member.Client().Update(ctx, t.set)
}

// writeEvents writes to the targets in turn, at the wanted rate, and asks the hub about some of the writes.
func writeEvents(ctx context.Context, api *fleet.API, targets []*target) error {
	group, ctx := errgroup.WithContext(ctx)
	ticker := time.NewTicker(time.Second / eventRate)
	defer ticker.Stop()
	for i := range eventRate * (eventWarmup + eventSeconds) {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return group.Wait()
		}
		t := targets[i%len(targets)]
		group.Go(func() error { return t.write(ctx, api, i >= eventRate*eventWarmup && i%eventAsked == 0) })
	}
	return group.Wait()
}

// write changes the policy once, to a value that it did not have, and, if the write counts, notes when the hub's reconcile of
// it began; others are noted as zero. One that comes while the one before is not done yet waits, or what is noted would be another's reconcile: that of a
// write that was not asked about would have to begin as late as the next write to its workload.
func (t *target) write(ctx context.Context, api *fleet.API, counts bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writes++ // under the lock: writes that wait for each other come in any order, and one that changes nothing is no event
	t.set.Annotations = fleet.Policy(51+t.writes%2, 0)
	sent := time.Now()
	if err := t.Member.Client().Update(ctx, t.set); err != nil {
		return err
	}
	version := t.set.ResourceVersion
	if !counts {
		t.taken = append(t.taken, uptake{version: version})
		return nil
	}
	select {
	case <-time.After(eventLook):
	case <-ctx.Done():
		return ctx.Err()
	}
	var started time.Time
	err := fleet.Await(ctx, "a write to "+t.String()+" to be reconciled", func(ctx context.Context) (bool, error) {
		response, err := api.Objects.GetObjectState(ctx, &plimsollv1.GetObjectStateRequest{
			Cluster: t.Member.Name, Controller: "statefulset-spot", Namespace: t.Namespace, Name: t.Name,
		})
		if err != nil {
			return false, err
		}
		started = response.GetObject().GetLastStartedAt().AsTime()
		return started.After(sent), nil
	})
	t.taken = append(t.taken, uptake{started, version})
	return err
}

// A written is a write that counts, with when the API server had answered it, by its own clock and log.
type written struct {
	uptake
	answered time.Time
}

// delaysOf returns how long after the API servers had answered the reconciles began, sorted.
func delaysOf(counted []written) []time.Duration {
	delays := make([]time.Duration, 0, len(counted))
	for _, w := range counted {
		delays = append(delays, w.until(w.started))
	}
	slices.Sort(delays)
	return delays
}

// until is how long after the answer something was. It may well be before the writer has the answer; that counts as no delay.
func (w written) until(at time.Time) time.Duration { return max(at.Sub(w.answered), 0) }

// answered finds the writes in the audit logs since the marks.
func answered(targets []*target, marks map[*fleet.Member]kube.Mark) ([]written, error) {
	answers := map[string][]time.Time{}
	for m, mark := range marks {
		events, err := m.Cluster.Audit().Since(mark, kube.OnResource("statefulsets"), kube.ByVerb("update"), kube.ByUserAgent(kube.AdminUserAgent))
		if err != nil {
			return nil, err
		}
		for _, event := range events {
			key := m.Name + "/" + event.Namespace + "/" + event.Name
			answers[key] = append(answers[key], event.Answered)
		}
	}
	var counted []written
	for _, t := range targets {
		at := answers[t.Member.Name+"/"+t.Namespace+"/"+t.Name]
		if len(at) != len(t.taken) {
			return nil, fmt.Errorf("%s: %d writes in the audit log, %d were made", t, len(at), len(t.taken))
		}
		for i, taken := range t.taken {
			if !taken.started.IsZero() {
				counted = append(counted, written{taken, at[i]})
			}
		}
	}
	return counted, nil
}
