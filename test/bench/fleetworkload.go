package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// timeOfAudit is how a moment of an audit log is printed: of two requests of one second it matters which was first.
const timeOfAudit = "15:04:05.000"

// fleetWorkload is one workload in all members, its FleetPlacement, and all that its pods go through.
type fleetWorkload struct {
	k         client.Client // of the hub cluster
	placement *v1alpha1.FleetPlacement
	workloads []*fleet.Workload
	histories []*fleet.History
	begun     time.Time // since when the floor is there
}

// deliver makes the workload in all members, as GitOps does, and its FleetPlacement.
func (b *bench) deliver(ctx context.Context, k client.Client) (*fleetWorkload, error) {
	const namespace = "bench-fleet"
	w := &fleetWorkload{k: k, placement: &v1alpha1.FleetPlacement{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}}
	if err := k.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return nil, err
	}
	for _, m := range b.fleet.Members {
		if err := m.Client().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: fleet.Enabled()}}); err != nil {
			return nil, err
		}
		made, err := m.Create(ctx, fleet.Deployment(namespace, "web", 0, nil))
		if err != nil {
			return nil, err
		}
		if err := m.Client().Create(ctx, budgetOf(made)); err != nil {
			return nil, err
		}
		history, err := made.Follow(ctx)
		if err != nil {
			return nil, err
		}
		w.workloads, w.histories = append(w.workloads, made), append(w.histories, history)
	}
	w.placement.Spec.TargetRef = v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	w.spec()
	return w, k.Create(ctx, w.placement)
}

func durationOf(d time.Duration) *v1alpha1.Duration {
	return &v1alpha1.Duration{Duration: metav1.Duration{Duration: d}}
}

func (w *fleetWorkload) stop() {
	for _, h := range w.histories {
		h.Stop()
	}
}

// settled says that the floor is there.
func (w *fleetWorkload) settled() { w.begun = time.Now() }

// scale changes how many replicas are wanted, as a person would.
func (w *fleetWorkload) scale(ctx context.Context, replicas int) error {
	change := fmt.Appendf(nil, `{"spec": {"replicas": %d}}`, replicas)
	return w.k.Patch(ctx, w.placement, client.RawPatch(client.Merge.Type(), change))
}

// total counts the pods of some members.
func (w *fleetWorkload) total(of []*fleet.History) (all fleet.Mix) {
	for _, h := range of {
		all = sum(all, h.Now())
	}
	return all
}

func sum(a, b fleet.Mix) fleet.Mix {
	return fleet.Mix{Spot: a.Spot + b.Spot, OnDemand: a.OnDemand + b.OnDemand, Unknown: a.Unknown + b.Unknown, Ready: a.Ready + b.Ready, Leaving: a.Leaving + b.Leaving}
}

// await waits until the pods are as they should be.
func (w *fleetWorkload) await(ctx context.Context, what string, holds func() (bool, fleet.Mix)) error {
	return fleet.Await(ctx, what, func(context.Context) (bool, error) {
		done, mix := holds()
		if !done {
			return false, fmt.Errorf("there are %s", mix)
		}
		return true, nil
	})
}

// awaitReady waits until some members have as many that are ready as the fleet is to have.
func (w *fleetWorkload) awaitReady(ctx context.Context, of []*fleet.History) error {
	return w.await(ctx, "all replicas to be ready", func() (bool, fleet.Mix) {
		all := w.total(of)
		return all.Ready >= fleetReplicas, all
	})
}

// awaitExact waits until the mix is what it should be, all are ready, and the FleetPlacement says that it is at rest.
func (w *fleetWorkload) awaitExact(ctx context.Context, replicas int) error {
	spot, onDemand := mixOf(replicas)
	return w.await(ctx, fmt.Sprintf("%d replicas to be where they belong", replicas), func() (bool, fleet.Mix) {
		all := w.total(w.histories)
		if (all != fleet.Mix{Spot: spot, OnDemand: onDemand, Ready: replicas}) {
			return false, all
		}
		p := &v1alpha1.FleetPlacement{}
		if err := w.k.Get(ctx, client.ObjectKeyFromObject(w.placement), p); err != nil {
			return false, all
		}
		return p.Status.ObservedGeneration == p.Generation && apimeta.IsStatusConditionTrue(p.Status.Conditions, reconcile.ConditionReady), all
	})
}

// marks are the ends of the members' audit logs.
func (w *fleetWorkload) marks() ([]kube.Mark, error) {
	marks := make([]kube.Mark, len(w.workloads))
	for i, of := range w.workloads {
		var err error
		if marks[i], err = of.Member.Cluster.Audit().Mark(); err != nil {
			return nil, err
		}
	}
	return marks, nil
}

// audited are the requests of the hub for the workload's pods, by the members' audit logs.
func (w *fleetWorkload) audited(filter kube.Filter) (all []kube.AuditEvent, err error) {
	for _, of := range w.workloads {
		found, err := of.Member.Cluster.Audit().Events(filter, fleet.ByHub, kube.InNamespace(of.Namespace))
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// readyEvicted are the pods that were ready when they were evicted: the audit logs know which were evicted and when their nodes were
// deleted, and the histories whether they were ready. A pod whose node had been deleted before is in gone: its object may say for a
// moment that it is ready, but nothing runs any more.
func (w *fleetWorkload) readyEvicted(since []kube.Mark) (ready, gone []string, err error) {
	for i, of := range w.workloads {
		audit := of.Member.Cluster.Audit()
		evicted, err := audit.Since(since[i], kube.Evictions, kube.InNamespace(of.Namespace))
		if err != nil {
			return nil, nil, err
		}
		deleted, err := audit.Since(since[i], kube.ByVerb("delete"), kube.OnResource("nodes"), kube.Succeeded)
		if err != nil {
			return nil, nil, err
		}
		moments, err := w.histories[i].Moments()
		if err != nil {
			return nil, nil, err
		}
		for _, e := range evicted {
			at := slices.IndexFunc(moments, func(m fleet.Moment) bool { return m.Left && m.WasReady && m.Pod == e.Name })
			if at < 0 {
				continue
			}
			node := moments[at].Node
			pod := fmt.Sprintf("%s of %s on %s node %s by %s at %s", e.Name, of.Member.Name, moments[at].Capacity, node, e.User, e.Received.Format(timeOfAudit))
			end := slices.IndexFunc(deleted, func(d kube.AuditEvent) bool { return d.Name == node && d.Answered.Before(e.Received) })
			if end < 0 {
				ready = append(ready, pod)
				continue
			}
			gone = append(gone, pod+", whose node was deleted at "+deleted[end].Answered.Format(timeOfAudit))
		}
	}
	return ready, gone, nil
}

// totals are all members together after one event of one of them.
type totals struct {
	at       time.Time
	mix      fleet.Mix
	onDemand int // that are ready
}

// moments counts those of which something is true.
func (w *fleetWorkload) moments(is func(totals) bool) (n int, err error) {
	type event struct {
		member int
		fleet.Moment
	}
	var events []event
	for i, h := range w.histories {
		moments, err := h.Moments()
		if err != nil {
			return 0, err
		}
		for _, m := range moments {
			events = append(events, event{i, m})
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return a.At.Compare(b.At) })
	now := make([]fleet.Moment, len(w.histories)) // they began with no pods
	for _, e := range events {
		now[e.member] = e.Moment
		all := totals{at: e.At}
		for _, m := range now {
			all.mix, all.onDemand = sum(all.mix, m.Mix), all.onDemand+m.ReadyOnDemand
		}
		if is(all) {
			n++
		}
	}
	return n, nil
}

// shown is what the FleetPlacement says, for people.
func (w *fleetWorkload) shown() string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	p := &v1alpha1.FleetPlacement{}
	if err := w.k.Get(ctx, client.ObjectKeyFromObject(w.placement), p); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%+v", p.Status)
}

// discard deletes the FleetPlacement, and the workload in all members.
func (w *fleetWorkload) discard(ctx context.Context) error {
	problems := []error{w.k.Delete(ctx, w.placement)}
	for _, of := range w.workloads {
		problems = append(problems, of.Member.DeleteNamespace(ctx, of.Namespace))
	}
	return errors.Join(problems...)
}
