package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// Workload is what the API shows of one workload: the outcome of its last plan. It is a snapshot and may be kept; it shares the slices and
// pointers of that plan, which nobody may change.
type Workload struct {
	Member string
	policy.WorkloadKey
	State plan.State
	// Reason says in one sentence what the state means, or what is waited for.
	Reason string
	// Policy is the policy in force, with the source of each value and the problems found.
	Policy policy.Policy
	// Replicas is what the workload's spec asks for.
	Replicas int
	// SpotWanted + OnDemandWanted = Replicas.
	SpotWanted, OnDemandWanted int
	// SpotActual and OnDemandActual count live pods by capacity type; Unassigned those of unknown type.
	SpotActual, OnDemandActual, Unassigned int
	// Pending counts live pods that are not ready.
	Pending int
	// Interrupted and Released count pods that run and are no replicas any more.
	Interrupted, Released int
	// Contradiction says which nodes are not what the workload's own template asks for, if that concerns its replicas.
	Contradiction plan.Contradiction
	// Unprotected says that no disruption budget keeps others from the floor.
	Unprotected bool
	// Skew says which topology spread constraint is not kept over both capacity types, where and why; empty: none.
	Skew string
	// Settings are those in force.
	Settings plan.Settings
	// Waits are what is waited for, the soonest to end first.
	Waits []plan.Wait
	// NextCheck is when the plan looks again without an event; zero: only on change or resync.
	NextCheck time.Time
	// Planned is when the plan was made.
	Planned time.Time
	// Pods are ordered by name. [Of] leaves them empty: only the engine can list them.
	Pods []Pod
	// Moves are the last moves, the newest first, see [Journal.LastMoves]; Explanation says in sentences what is wanted, there and done,
	// see [Planned.Explain]. [Of] leaves both empty.
	Moves       []Move
	Explanation []string
}

// SamePlacement reports whether another view of the workload has the same state, for the same reason, with the same numbers of replicas.
func (w *Workload) SamePlacement(as *Workload) bool {
	return w.State == as.State && w.Reason == as.Reason && w.SpotWanted == as.SpotWanted && w.OnDemandWanted == as.OnDemandWanted &&
		w.SpotActual == as.SpotActual && w.OnDemandActual == as.OnDemandActual && w.Unassigned == as.Unassigned
}

// Pod is one live pod of a workload.
type Pod struct {
	Name string
	// Slot is negative while the pod has none.
	Slot int
	// Wanted is the capacity type of the pod's slot, Actual that of its node or, before it is bound, of its selector.
	Wanted, Actual capacity.Type
	Node           string
	Phase          string
	Ready          bool
	Reason         string
	// Interrupted: its node goes for certain, or has gone. Released: it has left its ReplicaSet.
	Interrupted, Released bool
	// Waits is the kind of wait that keeps the pod from going; empty: none.
	Waits plan.WaitKind
}

// Of returns what a plan shows of the workload of a member, with its waits in the order in which they end.
func Of(member string, key policy.WorkloadKey, p *Planned) Workload {
	plan := &p.Plan
	waits := slices.Clone(plan.Waits)
	slices.SortStableFunc(waits, compareWaits)
	return Workload{
		Member: member, WorkloadKey: key, State: plan.State, Reason: plan.Reason, Policy: p.Policy, Settings: p.Settings,
		Replicas: p.Observed.Replicas, SpotWanted: plan.SpotWanted, OnDemandWanted: plan.OnDemandWanted, SpotActual: plan.SpotActual,
		OnDemandActual: plan.OnDemandActual, Unassigned: plan.UnknownActual, Pending: plan.Pending,
		Contradiction: plan.Contradiction, Unprotected: plan.Unprotected, Skew: plan.Skew, Interrupted: plan.Interrupted, Released: plan.Released, Waits: waits, NextCheck: plan.Recheck, Planned: p.At,
	}
}

// compareWaits orders waits by their end, those without one last.
func compareWaits(a, b plan.Wait) int {
	if a.Until.IsZero() != b.Until.IsZero() {
		if b.Until.IsZero() {
			return -1
		}
		return 1
	}
	return cmp.Or(a.Until.Compare(b.Until), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Subject, b.Subject))
}

// AddPlans writes into pods what a plan says of each: whether it is interrupted or released, what it waits for, and why. A pod that the plan does
// not name stays as it is.
func AddPlans(pods []Pod, plans []plan.PodPlan) {
	byName := make(map[string]*plan.PodPlan, len(plans))
	for i := range plans {
		byName[plans[i].Name] = &plans[i]
	}
	for i := range pods {
		if p := byName[pods[i].Name]; p != nil {
			pods[i].Interrupted, pods[i].Released, pods[i].Waits = p.Interrupted, p.Released, p.Waits
			pods[i].Reason = cmp.Or(p.Reason, pods[i].Reason)
		}
	}
}
