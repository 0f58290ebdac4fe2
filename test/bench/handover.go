package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

const (
	// routeLag is how long a Service goes on sending connections to a replica after it was asked to stop.
	routeLag = time.Second
	// admitEvery is the pace of the pods in each member while a replica hands over.
	admitEvery = 20 * time.Millisecond
	// admitBefore and admitAfter are how long they go on before and after the stop.
	admitBefore, admitAfter = 2 * time.Second, 2 * time.Second
)

// handover asks the replica that acts to stop, while API servers call the webhook, and waits until the other one writes.
func (b *bench) handover(ctx context.Context) (err error) {
	if err := b.registerDirectly(ctx); err != nil {
		return err
	}
	service, err := fleet.NewService()
	if err != nil {
		return err
	}
	defer service.Close()
	settings := maps.Clone(failoverSettings)
	settings["webhook.url"], settings["webhook.stopDelay"] = "https://"+service.Address(), "5s"
	owner, standby, err := b.startPair(ctx, settings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, owner.stop(ctx), standby.stop(ctx)) }()
	service.Add(owner.hub.Webhook)
	service.Add(standby.hub.Webhook)
	workloads, err := b.failoverWorkloads(ctx, owner.api)
	if err != nil {
		return err
	}
	load, err := b.admit(ctx, workloads)
	if err != nil {
		return err
	}
	defer load.stop()
	if err := pause(ctx, admitBefore); err != nil {
		return err
	}
	asked := time.Now()
	if err := owner.hub.Terminate(); err != nil {
		return err
	}
	route := time.AfterFunc(routeLag, func() { service.Remove(owner.hub.Webhook) })
	defer route.Stop()
	if err := awaitStopping(ctx, owner.hub); err != nil {
		return err
	}
	ordered := time.Now() // whatever is to be done from here on, the old owner does not take up
	for _, w := range workloads {
		if err := w.Annotate(ctx, fleet.Policy(failoverAfter, 1)); err != nil {
			return err
		}
	}
	if err := owner.hub.Stop(ctx); err != nil { // its servers close while calls go on
		return err
	}
	if err := pause(ctx, admitAfter); err != nil {
		return err
	}
	load.stop()
	for _, w := range workloads {
		spot, onDemand := fleet.Want(failoverReplicas, failoverAfter, 1)
		if err := w.AwaitMix(ctx, spot, onDemand); err != nil {
			return err
		}
	}
	return b.handoverFigures(workloads, load, asked, ordered)
}

// awaitStopping waits until a replica has ceased to be ready.
func awaitStopping(ctx context.Context, hub *fleet.Process) error {
	return fleet.Await(ctx, "hub "+hub.Name+" to say that it stops", func(ctx context.Context) (bool, error) {
		return !hub.Ready(ctx), nil
	})
}

// admissions are pods that are made without end, as dry runs: API servers ask the webhook, and nothing else comes of it.
type admissions struct {
	marks  []kube.Mark // in the members' audit logs, from before the first one
	sent   atomic.Int64
	failed atomic.Pointer[error] // the last failure of a request

	cancel  context.CancelFunc
	runners sync.WaitGroup
}

// admit starts to make pods of the workloads' ReplicaSets.
func (b *bench) admit(ctx context.Context, workloads []*fleet.Workload) (*admissions, error) {
	a := &admissions{}
	ctx, a.cancel = context.WithCancel(ctx)
	for _, w := range workloads {
		mark, err := w.Member.Cluster.Audit().Mark()
		if err != nil {
			a.cancel()
			return nil, err
		}
		a.marks = append(a.marks, mark)
		pods, err := w.Pods(ctx)
		if err == nil && len(pods) == 0 {
			err = fmt.Errorf("%s has no pods", w)
		}
		if err != nil {
			a.cancel()
			return nil, err
		}
		like := &pods[0]
		a.runners.Go(func() { a.run(ctx, w, like) })
	}
	return a, nil
}

// run makes pods at a pace whatever becomes of those before. One that has begun is waited for, or the audit log would have it
// after we have counted.
func (a *admissions) run(ctx context.Context, w *fleet.Workload, like *corev1.Pod) {
	fleet.Every(ctx, admitEvery, func() {
		a.runners.Go(func() {
			a.sent.Add(1)
			if err := w.Member.Client().Create(context.WithoutCancel(ctx), dryPod(w, like), client.DryRunAll); err != nil {
				a.failed.Store(&err)
			}
		})
	})
}

// dryPod is another pod of the same ReplicaSet.
func dryPod(w *fleet.Workload, like *corev1.Pod) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.Namespace, GenerateName: like.GenerateName, OwnerReferences: like.OwnerReferences,
		Labels: map[string]string{fleet.AppLabel: w.Name, "pod-template-hash": like.Labels["pod-template-hash"]},
	}}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "images.example.com/app:1"}}
	return pod
}

// stop ends the load and waits for what is under way. It may be called again.
func (a *admissions) stop() {
	a.cancel()
	a.runners.Wait()
}

// whyLost shows what a member's API server said of all calls that were not answered.
func (b *bench) whyLost(m *fleet.Member, skipped int) error {
	if skipped == 0 {
		return nil
	}
	content, err := m.Cluster.LogOf(kube.APIServer)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(content)) {
		if strings.Contains(line, "failing open") {
			b.logf("%s: %s", m.Name, strings.TrimSpace(line))
		}
	}
	return nil
}

// handoverFigures counts the calls that nobody answered, and how soon the other replica wrote.
func (b *bench) handoverFigures(workloads []*fleet.Workload, load *admissions, asked, ordered time.Time) error {
	if failed := load.failed.Load(); failed != nil {
		return fmt.Errorf("create a pod: %w", *failed)
	}
	var (
		written       time.Time
		created, lost int
	)
	for i, w := range workloads {
		audit, here := w.Member.Cluster.Audit(), kube.InNamespace(w.Namespace)
		writes, err := audit.Since(load.marks[i], fleet.ByHub, kube.Writes, here, func(e kube.AuditEvent) bool { return e.Received.After(ordered) })
		if err != nil {
			return err
		}
		if len(writes) > 0 && (written.IsZero() || writes[0].Received.Before(written)) {
			written = writes[0].Received
		}
		pods, err := audit.Since(load.marks[i], kube.OnResource("pods"), kube.ByVerb("create"), here)
		if err != nil {
			return err
		}
		skipped := 0
		for _, e := range pods {
			if kube.WebhookSkipped(e) {
				skipped++
				b.logf("admitted without the hub in %s %.2f s after the stop was requested, in %.2f s", w.Member.Name,
					e.Received.Sub(asked).Seconds(), e.Answered.Sub(e.Received).Seconds())
			}
		}
		created, lost = created+len(pods), lost+skipped
		if err := b.whyLost(w.Member, skipped); err != nil {
			return err
		}
	}
	if written.IsZero() {
		return errors.New("the other replica wrote nothing")
	}
	if created < int(load.sent.Load()) {
		return fmt.Errorf("%d pods were made, and the audit logs have %d", load.sent.Load(), created)
	}
	b.report.Record("handover-s", written.Sub(asked).Seconds())
	b.report.Record("handover-lost-admissions", float64(lost))
	b.report.Note("handover: %d of %d admissions were not answered; the other replica wrote %.2f s after the stop was requested", lost, created, written.Sub(asked).Seconds())
	return nil
}
