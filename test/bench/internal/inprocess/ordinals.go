package inprocess

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/nodes"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/slots"
	"github.com/plimsoll-dev/plimsoll/test/bench/internal/figures"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

const (
	largeOrdinals = 20_000
	largeReplicas = 80_000
	largePercent  = 70
	largeFloor    = 3
	largeTries    = 5   // of each plan; the median counts
	largeChanged  = 100 // one pod of so many changes between two plans
)

// Large measures decisions about the largest workloads, which need no cluster: the admission of all pods of a StatefulSet
// while none of them is seen, and one plan of a ReplicaSet, at rest or with replicas to move, whichever takes longer. Then one at rest with
// the reading of its pods: all of them first, and then those that have changed since the plan before.
func Large(_ context.Context, b Bench) error {
	admitted, err := admitOrdinals()
	if err != nil {
		return err
	}
	b.Report.Record("ordinals-20000-s", admitted.Seconds())
	rest, err := planLarge(plan.StateConverged, largePercent)
	if err != nil {
		return err
	}
	moves, err := planLarge(plan.StateMoving, largePercent/2)
	if err != nil {
		return err
	}
	b.Report.Record("plan-80000-ms", figures.Milliseconds(max(rest, moves)))
	b.Report.Note("large: a plan of %d replicas takes %.1f ms without moves, %.1f ms with moves", largeReplicas, figures.Milliseconds(rest), figures.Milliseconds(moves))
	first, again, err := observeAndPlanLarge()
	if err != nil {
		return err
	}
	b.Report.Record("plan-observed-80000-ms", figures.Milliseconds(again))
	b.Report.Note("large: with the reading of all pods it takes %.1f ms, and with that of %d that have changed %.1f ms", figures.Milliseconds(first),
		largeReplicas/largeChanged, figures.Milliseconds(again))
	return nil
}

// admitOrdinals admits all pods of a StatefulSet, and checks that each went where its slot belongs.
func admitOrdinals() (time.Duration, error) {
	mix := policy.Mix{Percent: largePercent, Floor: largeFloor, Managed: true}
	ids := make([]string, largeOrdinals)
	for i := range ids {
		ids[i] = fmt.Sprintf("0b5c2c3e-3f6f-4a52-9d1b-%012d", i)
	}
	accounting, start := slots.NewAccounting(true), time.Now()
	for i, id := range ids {
		answer := accounting.Reserve(slots.Ask{ID: id, Ordinal: i, Wanted: largeOrdinals, Mix: mix}, start)
		if answer.Slot != i || answer.Capacity != mix.Of(i) {
			return 0, fmt.Errorf("ordinal %d was sent to %s, slot %d", i, answer.Capacity, answer.Slot)
		}
	}
	return time.Since(start), nil
}

// planLarge plans a workload whose replicas are where largePercent wants them, by a policy of another percentage perhaps. It
// returns the median of several tries.
func planLarge(want plan.State, percent int) (time.Duration, error) {
	observed := largeWorkload()
	return planLargeOf(func() error { return nil }, func(time.Time) (plan.Observed, error) { return observed, nil }, want, percent)
}

// planLargeOf is planLarge of what observe returns, whose time counts too. That of prepare, before each try, does not.
func planLargeOf(prepare func() error, observe func(now time.Time) (plan.Observed, error), want plan.State, percent int) (time.Duration, error) {
	now, floor := time.Now(), largeFloor
	pol := policy.Policy{Percentage: &percent, PercentageSource: policy.SourceWorkload, MinOnDemand: &floor, MinOnDemandSource: policy.SourceWorkload}
	settings := plan.Settings{MaxMoves: policy.MoveLimit{Percent: 10}, Cooldown: 10 * time.Second}
	var took []time.Duration
	for range largeTries {
		if err := prepare(); err != nil {
			return 0, err
		}
		begun := time.Now()
		observed, err := observe(now)
		if err != nil {
			return 0, err
		}
		result := plan.Plan(observed, pol, settings, now)
		took = append(took, time.Since(begun))
		if result.State != want {
			return 0, fmt.Errorf("a plan of %d replicas says %s (%s), not %s", largeReplicas, result.State, result.Reason, want)
		}
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

func largeWorkload() plan.Observed {
	mix, created := policy.Mix{Percent: largePercent, Floor: largeFloor, Managed: true}, time.Now().Add(-time.Hour)
	owner := plan.Owner{UID: "large", Name: "large", Replicas: largeReplicas}
	observed := plan.Observed{Replicas: largeReplicas, Owners: []plan.Owner{owner}, Pods: make([]plan.Pod, largeReplicas)}
	for i := range observed.Pods {
		observed.Pods[i] = plan.Pod{Name: "large-" + strconv.Itoa(i), UID: types.UID(strconv.Itoa(i)), Owner: owner.UID, Slot: i, Capacity: mix.Of(i),
			DeletionCost: policy.ParseCost(mix.Cost(i)), Created: created, UnreadySince: created, Bound: true, Ready: true}
	}
	return observed
}

// observeAndPlanLarge reads the pods of a workload at rest from an index as a member's cache has it, as the hub does for each plan, and
// plans. It returns the medians of several tries: of the first plan, and of one for which a part of the pods has changed.
func observeAndPlanLarge() (first, again time.Duration, err error) {
	keys, err := policy.NewKeys("")
	if err != nil {
		return 0, 0, err
	}
	labels, err := capacity.NewLabels()
	if err != nil {
		return 0, 0, err
	}
	const byOwner = "owner"
	cache := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{byOwner: func(any) ([]string, error) { return []string{byOwner}, nil }})
	table, nodesOf := nodes.NewTable(), map[capacity.Type]string{capacity.Spot: "spot", capacity.OnDemand: "on-demand"}
	for _, name := range nodesOf {
		table.Set(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{kube.CapacityLabel: name}}}, &nodes.Interruptions{}, time.Now())
	}
	large, version := largeWorkload(), 0
	change := func(every int) error {
		version++
		for i := version % every; i < len(large.Pods); i += every {
			if err := cache.Update(largePod(keys, &large.Pods[i], nodesOf[large.Pods[i].Capacity], version)); err != nil {
				return err
			}
		}
		return nil
	}
	var accounting *slots.Accounting
	var memo *nodes.PodMemo
	observe := func(now time.Time) (plan.Observed, error) {
		found, err := cache.ByIndex(byOwner, byOwner)
		if err != nil {
			return plan.Observed{}, err
		}
		observed := plan.Observed{Replicas: largeReplicas, Pods: memo.Read(table.Pods(keys, labels), nil, found)}
		for i := range observed.Pods {
			accounting.Show(&observed.Pods[i], now)
		}
		owner := large.Owners[0]
		owner.Accounting = accounting.Summary(owner.Replicas, now)
		observed.Owners = []plan.Owner{owner}
		return observed, nil
	}
	if err := change(1); err != nil {
		return 0, 0, err
	}
	forget := func() error { accounting, memo = slots.NewAccounting(false), &nodes.PodMemo{}; return nil }
	if first, err = planLargeOf(forget, observe, plan.StateConverged, largePercent); err != nil {
		return 0, 0, err
	}
	again, err = planLargeOf(func() error { return change(largeChanged) }, observe, plan.StateConverged, largePercent)
	return first, again, err
}

// largePod is what the cache keeps of a pod.
func largePod(keys policy.Keys, facts *plan.Pod, node string, version int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: facts.Name, UID: facts.UID, ResourceVersion: strconv.Itoa(version), CreationTimestamp: metav1.NewTime(facts.Created),
			Labels:          map[string]string{keys.Slot(): strconv.Itoa(facts.Slot), plan.TemplateHash: "abc"},
			Annotations:     map[string]string{policy.DeletionCost: strconv.Itoa(facts.DeletionCost.Number())},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: spot.KindReplicaSet, Name: "large", UID: facts.Owner, Controller: new(true)}},
		},
		Spec:   corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}
