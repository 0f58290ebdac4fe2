package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/slots"
)

const (
	largeOrdinals = 20_000
	largeReplicas = 80_000
	largePercent  = 70
	largeFloor    = 3
	largeTries    = 5 // of each plan; the median counts
)

// large measures decisions about the largest workloads, which need no cluster: the admission of all pods of a StatefulSet
// while none of them is seen, and one plan of a ReplicaSet, at rest or with replicas to move, whichever takes longer.
func (b *bench) large(context.Context) error {
	admitted, err := admitOrdinals()
	if err != nil {
		return err
	}
	b.report.record("ordinals-20000-s", admitted.Seconds())
	rest, err := planLarge(plan.StateConverged, largePercent)
	if err != nil {
		return err
	}
	moves, err := planLarge(plan.StateMoving, largePercent/2)
	if err != nil {
		return err
	}
	b.report.record("plan-80000-ms", milliseconds(max(rest, moves)))
	b.report.note("large: a plan of %d replicas takes %.1f ms without moves, %.1f ms with moves", largeReplicas, milliseconds(rest), milliseconds(moves))
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
	observed, now, floor := largeWorkload(), time.Now(), largeFloor
	pol := policy.Policy{Percentage: &percent, PercentageSource: policy.SourceWorkload, MinOnDemand: &floor, MinOnDemandSource: policy.SourceWorkload}
	settings := plan.Settings{MaxMoves: policy.MoveLimit{Percent: 10}, Cooldown: 10 * time.Second}
	var took []time.Duration
	for range largeTries {
		begun := time.Now()
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
			DeletionCost: mix.Cost(i), Created: created, UnreadySince: created, Bound: true, Ready: true}
	}
	return observed
}
