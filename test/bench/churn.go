package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

const (
	churnReplicas  = 100
	churnEvictions = 500 // of each workload, by us
	churnAtOnce    = 8
	churnRejects   = 5 // one pod in so many
	churnSeed      = 20
)

// churnCases are policies whose floor binds: every on-demand replica is one that may not be missing.
var churnCases = []struct{ percent, floor int }{{100, 20}, {70, 30}}

// churn evicts pods at random while creations are refused by a quota and by another webhook, and the hub sees everything
// two seconds late. It counts the moments at which the floor was broken by what the hub did.
func (b *bench) churn(ctx context.Context) error {
	m := b.fleet.Members[0]
	m.Proxy.DelayWatches(watchDelay)
	defer m.Proxy.DelayWatches(0)
	breaks := make([]int, len(churnCases))
	group, groupCtx := errgroup.WithContext(ctx)
	for i, policy := range churnCases {
		group.Go(func() (err error) {
			breaks[i], err = b.churnOne(groupCtx, m, policy.percent, policy.floor)
			if err != nil {
				return fmt.Errorf("%d %% spot with a floor of %d: %w", policy.percent, policy.floor, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	sum := 0
	for _, n := range breaks {
		sum += n
	}
	b.report.record("churn-floor-breaks", float64(sum))
	return nil
}

// churnOne is the churn of one workload, until it has settled with the mix that it should have.
func (b *bench) churnOne(ctx context.Context, m *fleet.Member, percent, floor int) (breaks int, err error) {
	namespace, err := m.NewNamespace(ctx, "churn", fleet.Enabled())
	if err != nil {
		return 0, err
	}
	w, err := m.Create(ctx, fleet.Deployment(namespace, "web", churnReplicas, fleet.Policy(percent, floor)))
	if err != nil {
		return 0, err
	}
	if err := b.api.Settle(ctx, w, churnReplicas); err != nil {
		return 0, err
	}
	history, err := w.Follow(ctx)
	if err != nil {
		return 0, err
	}
	defer history.Stop()
	mark, err := m.Cluster.Audit().Mark()
	if err != nil {
		return 0, err
	}
	if err := disturb(ctx, w, history); err != nil {
		return 0, err
	}
	spot, onDemand := fleet.Want(churnReplicas, percent, floor)
	if err := history.AwaitMix(ctx, fleet.Mix{Spot: spot, OnDemand: onDemand, Ready: churnReplicas}); err != nil {
		return 0, fmt.Errorf("after the churn: %w", err)
	}
	if err := b.api.Settle(ctx, w, churnReplicas); err != nil {
		return 0, fmt.Errorf("after the churn: %w", err)
	}
	breaks, err = b.judge(w, history, mark, floor)
	return breaks, errors.Join(err, discard(ctx, w))
}

// disturb evicts pods while creations are refused now and then, and lets them pass again.
func disturb(ctx context.Context, w *fleet.Workload, history *fleet.History) error {
	var asked atomic.Int64
	hook, err := w.Member.NewHook(ctx, fleet.HookOptions{Name: w.Namespace, Namespace: w.Namespace, Decide: func([]byte) string {
		if asked.Add(1)%churnRejects == 0 {
			return "this is the one pod in five that is refused"
		}
		return ""
	}})
	if err != nil {
		return err
	}
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "pods"},
		// A pod counts until it is gone, and for a moment longer: replacements that come quickly are refused.
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(fmt.Sprint(churnReplicas))}},
	}
	err = w.Member.Client().Create(ctx, quota)
	if err == nil {
		err = evictAtRandom(ctx, w, history)
	}
	return errors.Join(err, client.IgnoreNotFound(w.Member.Client().Delete(ctx, quota)), hook.Remove(ctx))
}

// evictAtRandom evicts pods in small groups, and between them gives the workload the time to be nearly whole again: only
// then the floor can be seen.
func evictAtRandom(ctx context.Context, w *fleet.Workload, history *fleet.History) error {
	random := rand.New(rand.NewPCG(churnSeed, uint64(len(w.Namespace))))
	for evicted := 0; evicted < churnEvictions; {
		err := fleet.Await(ctx, "most pods to be back", func(context.Context) (bool, error) {
			return history.Now().All() >= churnReplicas-churnAtOnce, nil
		})
		if err != nil {
			return err
		}
		pods, err := w.Pods(ctx)
		if err != nil {
			return err
		}
		random.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
		for i := range pods[:min(len(pods), 1+random.IntN(churnAtOnce))] {
			done, err := evict(ctx, w.Member, &pods[i])
			if err != nil {
				return err
			}
			if done {
				evicted++
			}
		}
	}
	return nil
}

// evict asks for an eviction; it is not done when the pod is on its way out already.
func evict(ctx context.Context, m *fleet.Member, pod *corev1.Pod) (done bool, err error) {
	if pod.DeletionTimestamp != nil {
		return false, nil
	}
	eviction := &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}}
	err = m.Client().SubResource("eviction").Create(ctx, pod, eviction)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return false, nil
	}
	return err == nil, err
}

// judge counts the breaks of the floor in the true order of events: moments at which all replicas that are wanted exist
// and are alive, none is leaving, and fewer than the floor are on-demand; and evictions by the hub of an on-demand pod
// when no more than the floor were alive.
func (b *bench) judge(w *fleet.Workload, history *fleet.History, mark kube.Mark, floor int) (int, error) {
	audit := w.Member.Cluster.Audit()
	byHub, err := audit.Since(mark, kube.Evictions, kube.InNamespace(w.Namespace), fleet.ByHub)
	if err != nil {
		return 0, err
	}
	refused, err := audit.Since(mark, kube.OnResource("pods"), kube.ByVerb("create"), kube.InNamespace(w.Namespace), kube.Not(kube.Succeeded))
	if err != nil {
		return 0, err
	}
	moments, err := history.Moments()
	if err != nil {
		return 0, err
	}
	moved := map[string]bool{}
	for _, eviction := range byHub {
		moved[eviction.Name] = true
	}
	breaks, whole, unplaced, lowest := 0, 0, 0, churnReplicas
	for _, moment := range moments {
		complete := moment.Mix.All() >= churnReplicas && moment.Mix.Leaving == 0
		if complete {
			whole++
			lowest = min(lowest, moment.Mix.OnDemand)
		}
		switch {
		case complete && moment.Mix.OnDemand < floor,
			moment.Left && moved[moment.Pod] && moment.Capacity == kube.OnDemand && moment.OnDemandBefore <= floor:
			breaks++
			b.logf("%s: floor of %d broken at pod %s: %s, %d not placed", w, floor, moment.Pod, moment.Mix, moment.Unplaced)
		}
		unplaced = max(unplaced, moment.Unplaced)
	}
	quota := 0
	for _, refusal := range refused {
		if refusal.Annotations == nil || refusal.Reason == "Forbidden" {
			quota++
		}
	}
	b.report.note("churn, floor %d: %d pods evicted by us and %d by the hub, %d creations refused; whole at %d moments, then at least %d on-demand; at most %d pods without a slot",
		floor, churnEvictions, len(byHub), quota, whole, lowest, unplaced)
	switch {
	case whole == 0:
		return 0, errors.New("the workload was never whole, so nothing was measured")
	case len(refused) == 0:
		return 0, errors.New("no creation was refused, so nothing was measured")
	}
	return breaks, nil
}
