package page

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/hub/journal"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
)

const controllerOfDeployments = "deployment-spot"

// workload is one as its last plan shows it, with its pods.
type workload = report.Workload

// AddWorkload adds a Deployment that has converged, at a share of spot capacity in percent and a floor on on-demand capacity.
func (w *World) AddWorkload(member, namespace, name string, replicas, share, floor int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	view := workload{
		Member:      member,
		WorkloadKey: policy.WorkloadKey{Kind: spot.KindDeployment, NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}},
		State:       plan.StateConverged, Reason: "every replica is where it belongs",
		Policy:      policy.Policy{Percentage: &share, PercentageSource: policy.SourceWorkload, MinOnDemand: &floor, MinOnDemandSource: policy.SourceNamespace},
		Settings:    plan.Settings{Strategy: policy.StrategyEvict, PendingTimeout: time.Minute},
		Explanation: []string{fmt.Sprintf("%d %% of %d replicas belong on spot capacity, and %d must stay on on-demand capacity.", share, replicas, floor)},
	}
	for slot := range replicas {
		view.Pods = append(view.Pods, report.Pod{
			Name: fmt.Sprintf("%s-%05d", name, slot), Slot: slot, Wanted: belongs(slot, share, floor), Phase: "Running", Ready: true,
			Actual: belongs(slot, share, floor), Node: fmt.Sprintf("node-%d", slot%7),
		})
	}
	count(&view)
	w.workloads[member] = append(w.workloads[member], view)
	slices.SortFunc(w.workloads[member], func(a, b workload) int { return a.Compare(b.WorkloadKey) })
	key := keyOf(member, namespace, name)
	w.records[member][key] = reconcile.Record{Key: key, State: reconcile.StateIdle, LastOutcome: reconcile.OutcomeDone, Runs: 1, LastEnded: time.Now()}
}

// spotOf is how many of n replicas belong on spot capacity.
func spotOf(n, share, floor int) int { return max(0, min(n*share/100, n-floor)) }

// belongs is where the replica of a slot belongs: spot exactly where one more replica means one more on spot.
func belongs(slot, share, floor int) capacity.Type {
	if spotOf(slot+1, share, floor) > spotOf(slot, share, floor) {
		return capacity.Spot
	}
	return capacity.OnDemand
}

// count brings the sums of a workload up to date with its pods.
func count(view *workload) {
	view.Replicas, view.Planned = len(view.Pods), time.Now()
	view.SpotWanted, view.SpotActual, view.OnDemandActual, view.Pending = 0, 0, 0, 0
	for _, pod := range view.Pods {
		if pod.Wanted == capacity.Spot {
			view.SpotWanted++
		}
		if pod.Actual == capacity.Spot {
			view.SpotActual++
		} else {
			view.OnDemandActual++
		}
		if !pod.Ready {
			view.Pending++
		}
	}
	view.OnDemandWanted = view.Replicas - view.SpotWanted
}

// change changes a workload in place of the one that the API has shown, and counts again.
func (w *World) change(member, namespace, name string, do func(*workload)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, known := range w.workloads[member] {
		if known.Namespace == namespace && known.Name == name {
			known.Pods, known.Moves, known.Waits = slices.Clone(known.Pods), slices.Clone(known.Moves), slices.Clone(known.Waits)
			do(&known)
			count(&known)
			w.workloads[member][i] = known
		}
	}
}

// Displace puts the replica of a slot on the other capacity, where it does not belong.
func (w *World) Displace(member, namespace, name string, slot int) {
	w.change(member, namespace, name, func(view *workload) {
		pod := &view.Pods[slot]
		pod.Actual = capacity.Spot
		if pod.Wanted == capacity.Spot {
			pod.Actual = capacity.OnDemand
		}
		view.State, view.Reason = plan.StateMoving, "a replica is to move"
	})
}

// Move evicts the replica of a slot and starts its replacement where it belongs, which is not ready.
func (w *World) Move(member, namespace, name string, slot int) {
	w.change(member, namespace, name, func(view *workload) {
		pod := &view.Pods[slot]
		view.Moves = append([]report.Move{{
			At: time.Now(), Pod: pod.Name, From: pod.Actual, For: plan.PurposeMove, Strategy: policy.StrategyEvict, Why: "the mix asks for it",
		}}, view.Moves...)
		w.Journal.Add(journal.Event{Type: journal.Move, Member: member, Namespace: namespace, Kind: view.Kind, Name: name, Subject: pod.Name,
			Reason: string(plan.PurposeMove), Message: "pod " + pod.Name + " was evicted: the mix asks for it"})
		*pod = report.Pod{Name: pod.Name + "-new", Slot: slot, Wanted: pod.Wanted, Actual: pod.Wanted, Phase: "Pending"}
		view.State, view.Reason = plan.StateMoving, "a replacement is starting"
	})
}

// Settle makes all replicas ready.
func (w *World) Settle(member, namespace, name string) {
	w.change(member, namespace, name, func(view *workload) {
		for i := range view.Pods {
			view.Pods[i].Ready, view.Pods[i].Phase, view.Pods[i].Node = true, "Running", "node-9"
		}
		view.State, view.Reason, view.Waits = plan.StateConverged, "every replica is where it belongs", nil
	})
}

// Dry lets a workload wait for spot capacity that has no room.
func (w *World) Dry(member, namespace, name string) {
	w.change(member, namespace, name, func(view *workload) {
		w.Journal.Add(journal.Event{Type: journal.InsufficientCapacityBegan, Member: member, Namespace: namespace, Kind: view.Kind, Name: name, Subject: string(capacity.Spot),
			Message: "spot capacity has no room for pods of this shape"})
		view.State, view.Reason = plan.StateWaiting, "spot capacity has no room"
		view.Waits = []plan.Wait{{Kind: plan.WaitDry, Replicas: 2, Since: time.Now().Add(-4 * time.Minute), Until: time.Now().Add(time.Minute), Reason: "spot capacity has had no room for 2 replicas"}}
	})
}

// Spoil gives a workload an annotation that cannot be used, and texts of its member everywhere a member's texts are shown.
func (w *World) Spoil(member, namespace, name, text string) {
	w.change(member, namespace, name, func(view *workload) {
		view.State, view.Reason = plan.StateInvalid, text
		view.Policy.Problems = []policy.Problem{{Key: "plimsoll.dev/" + text, Value: text, Rule: text}}
		view.Explanation = []string{text}
		view.Waits = []plan.Wait{{Kind: plan.WaitBudget, Subject: text, Reason: text}}
		view.Moves = []report.Move{{At: time.Now(), Pod: text, From: capacity.Spot, For: plan.PurposeMove, Strategy: policy.StrategyEvict, Why: text}}
		view.Pods[0].Name, view.Pods[0].Node, view.Pods[0].Reason, view.Pods[0].Phase, view.Pods[0].Ready = text, text, text, text, false
	})
}

// lists implements api.Workloads.
type lists struct{ *World }

// List implements api.Workloads.
func (l lists) List(member, namespace string) []workload {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []workload
	for _, view := range l.workloads[member] {
		if namespace == "" || view.Namespace == namespace {
			view.Pods, view.Moves, view.Explanation = nil, nil, nil
			found = append(found, view)
		}
	}
	return found
}

// Get implements api.Workloads.
func (l lists) Get(member, kind, namespace, name string) (workload, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, view := range l.workloads[member] {
		if view.Kind == kind && view.Namespace == namespace && view.Name == name {
			return view, true
		}
	}
	return workload{}, false
}

// WhyNotEnabled implements api.Workloads: every workload is enabled, or is not there.
func (lists) WhyNotEnabled(_ context.Context, _ string, key policy.WorkloadKey) (spot.NotEnabled, error) {
	return spot.NotEnabled{}, apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "deployments"}, key.Name)
}

// Suppose implements api.Workloads, with the formula of the documentation.
func (l lists) Suppose(member, kind, namespace, name string, h report.Hypothesis, now time.Time) (report.WhatIf, bool) {
	view, ok := l.Get(member, kind, namespace, name)
	if !ok {
		return report.WhatIf{}, false
	}
	answer := report.WhatIf{Now: view, Then: view}
	then := &answer.Then
	then.Planned = now
	share, floor := *view.Policy.Percentage, *view.Policy.MinOnDemand
	if h.Percentage != nil {
		share, then.Policy.Percentage, then.Policy.PercentageSource = *h.Percentage, h.Percentage, policy.SourceRequest
	}
	if h.MinOnDemand != nil {
		floor, then.Policy.MinOnDemand, then.Policy.MinOnDemandSource = *h.MinOnDemand, h.MinOnDemand, policy.SourceRequest
	}
	if h.Replicas != nil {
		then.Replicas = *h.Replicas
	}
	then.SpotWanted = spotOf(then.Replicas, share, floor)
	then.OnDemandWanted = then.Replicas - then.SpotWanted
	answer.Moves = max(then.SpotWanted-view.SpotActual, view.SpotActual-then.SpotWanted)
	for i, pod := range view.Pods {
		if pod.Actual != belongs(i, share, floor) && len(answer.First) < 2 {
			answer.First = append(answer.First, report.Move{Pod: pod.Name, From: pod.Actual, For: plan.PurposeMove, Strategy: policy.StrategyEvict, Why: "the mix asks for it"})
		}
	}
	if answer.Moves > 0 {
		then.State, then.Reason = plan.StateMoving, "replicas are to move"
	}
	return answer, true
}

// Controller implements api.Workloads.
func (lists) Controller(kind string) (string, bool) {
	return controllerOfDeployments, kind == spot.KindDeployment
}

// Placed implements api.Workloads.
func (lists) Placed() []spot.PlacedKind {
	return []spot.PlacedKind{{Name: spot.KindDeployment, Controller: controllerOfDeployments, Cached: "apps/v1 Deployment"}}
}
