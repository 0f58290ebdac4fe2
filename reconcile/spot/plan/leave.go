package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// BudgetAgain is when a pod that a disruption budget holds back is looked at again, if no event comes earlier.
const BudgetAgain = 5 * time.Second

// leave plans that a pod leaves its place: it is released where that is possible and makes sense, else evicted if the
// disruption budgets allow it. What leaves on advice is released whatever the strategy, for nothing should be lost to a wish, and so
// is what serves of the floor and has to leave because of its node. False: it waits.
func (pl *planner) leave(o *ownerPods, pod *Pod, purpose Purpose, why string) bool {
	stands := pl.floorStands(pod)
	switch {
	case pl.releasable(pod) && (pl.settings.Strategy == policy.StrategyRelease || purpose == PurposeAdvisory || (!stands && pod.Interruption != nil)):
		return pl.release(o, pod, purpose, why)
	case !stands && !pl.floorYields(pod):
		pl.hold(pod, WaitReplacement)
		pl.wait(Wait{Kind: WaitReplacement, Replicas: 1}, "on-demand replicas of the floor stay until their replacements are ready")
		return false
	}
	return pl.evict(pod, purpose, why)
}

// release plans that a pod leaves its ReplicaSet and serves on, unless the disruption window shuts before it could end.
func (pl *planner) release(o *ownerPods, pod *Pod, purpose Purpose, why string) bool {
	if purpose.Paced() && pl.closing() {
		pl.hold(pod, WaitWindow)
		pl.waitWindow(1)
		return false
	}
	pl.floor.count(pl, pod, -1)
	pl.take(pod)
	until := pl.standInUntil(purpose)
	pl.result.Releases = append(pl.result.Releases, Release{Pod: pod.UID, Name: pod.Name, From: pod.Capacity, Why: why,
		Released: Released{Owner: o.UID, OwnerName: o.Name, Hash: pod.Hash, For: purpose, At: pl.now.Truncate(time.Second), Until: until}})
	return true
}

// releasable reports whether a pod can serve on while its replacement starts. One that does not serve, or whose node is about
// to go, has no reason to; one that no eviction would ever end must not.
func (pl *planner) releasable(pod *Pod) bool {
	return !pl.Ordinals && pl.NoRelease == "" && pod.Hash != "" && pod.Released == nil &&
		len(pod.Budgets) <= 1 && pod.Serves() && !pl.lastMinute(pod)
}

// noteStrategy says why replicas are evicted where it was asked for that they are released.
func (pl *planner) noteStrategy() {
	switch {
	case pl.settings.Strategy != policy.StrategyRelease:
	case pl.Ordinals:
		pl.note("the strategy release does not apply and replicas are evicted: a StatefulSet cannot have two pods of one ordinal")
	case pl.NoRelease != "":
		pl.note("the strategy release does not apply and replicas are evicted: %s", pl.NoRelease)
	}
}

// lastMinute reports whether the pod's node goes so soon that the pod has to end now to end in order; else it asks for another
// plan when it does.
func (pl *planner) lastMinute(pod *Pod) bool {
	if pod.Interruption == nil || pod.Interruption.By.IsZero() {
		return false
	}
	last := pod.Interruption.By.Add(-InterruptionMargin)
	pl.recheck(last)
	return !pl.now.Before(last)
}

// evict plans an eviction if the disruption budgets allow it, and a wait if they do not.
func (pl *planner) evict(pod *Pod, purpose Purpose, why string) bool {
	if !pl.allowed(pod) {
		return false
	}
	pl.floor.count(pl, pod, -1)
	pl.take(pod)
	e := Eviction{Pod: pod.UID, Name: pod.Name, Owner: pod.Owner, From: pod.Capacity, Ready: pod.Ready, For: purpose, Why: why}
	if purpose == PurposeInsufficientCapacity {
		e.Version = pod.Version
	}
	pl.result.Evictions = append(pl.result.Evictions, e)
	return true
}

func (pl *planner) take(pod *Pod) {
	if pl.moving == nil {
		pl.moving = map[*Pod]struct{}{}
	}
	pl.moving[pod] = struct{}{}
}

// going reports whether this plan takes a pod away. It is asked of every pod many times, and most plans take none.
func (pl *planner) going(pod *Pod) bool {
	if len(pl.moving) == 0 {
		return false
	}
	_, going := pl.moving[pod]
	return going
}

// allowed reports whether all disruption budgets of a pod let it go now, as the API server will see it, and takes up their
// room. Pods that no node has are let go whatever the budgets say; pods that are not ready, by the rules of the budget; and
// of a pod that has several budgets the API server refuses every eviction.
func (pl *planner) allowed(pod *Pod) bool {
	if !pod.Bound || len(pod.Budgets) == 0 {
		return true
	}
	if len(pod.Budgets) > 1 {
		named := pl.namesOf(pod.Budgets)
		pl.hold(pod, WaitBudget)
		pl.wait(Wait{Kind: WaitBudget, Subject: named, Replicas: 1},
			"%d PodDisruptionBudgets (%s) select the same pod, and the API server does not evict such a pod", len(pod.Budgets), named)
		return false
	}
	at := pod.Budgets[0]
	b := &pl.Budgets[at]
	switch {
	case !pod.Ready && (b.UnhealthyAlways || b.Healthy):
		return true
	case pl.room[at] > 0:
		pl.room[at]--
		return true
	}
	pl.hold(pod, WaitBudget)
	pl.wait(Wait{Kind: WaitBudget, Subject: b.Name, Replicas: 1, Until: pl.now.Add(BudgetAgain)}, "PodDisruptionBudget %s allows no more disruptions now", b.Name)
	pl.recheck(pl.now.Add(BudgetAgain))
	return false
}

// namedBudgets is how many budgets a reason names: there can be thousands, and each plan is kept.
const namedBudgets = 3

// namesOf are the names of budgets, the first in their order.
func (pl *planner) namesOf(budgets []int) string {
	var names []string
	for _, at := range budgets {
		name := pl.Budgets[at].Name
		if len(names) == namedBudgets && name >= names[namedBudgets-1] {
			continue
		}
		place, _ := slices.BinarySearch(names, name)
		names = slices.Insert(names, place, name)
		names = names[:min(len(names), namedBudgets)]
	}
	all := strings.Join(names, ", ")
	if others := len(budgets) - len(names); others > 0 {
		all += " and " + phrase.Count(others, "other", "others")
	}
	return all
}

// wait notes what the workload waits for.
func (pl *planner) wait(w Wait, format string, args ...any) {
	w.Reason = fmt.Sprintf(format, args...)
	pl.result.AddWait(w)
}

// hold notes that a pod should go and waits.
func (pl *planner) hold(pod *Pod, kind WaitKind) {
	if pl.held == nil {
		pl.held = map[types.UID]WaitKind{}
	}
	pl.held[pod.UID] = kind
}

// waiting reports whether something of a kind is waited for.
func (pl *planner) waiting(kind WaitKind) bool {
	return slices.ContainsFunc(pl.result.Waits, func(w Wait) bool { return w.Kind == kind })
}

// notePods says what is special about single pods.
func (pl *planner) notePods() {
	going := map[types.UID]string{}
	for i := range pl.result.Evictions {
		going[pl.result.Evictions[i].Pod] = pl.result.Evictions[i].Why
	}
	for i := range pl.result.Releases {
		going[pl.result.Releases[i].Pod] = pl.result.Releases[i].Why
	}
	if len(going)+len(pl.held)+pl.result.Interrupted+pl.result.Advised+pl.result.Released == 0 {
		return
	}
	for i := range pl.Pods {
		pod := &pl.Pods[i]
		var why string
		leaves := pl.going(pod)
		if leaves {
			why, leaves = going[pod.UID]
		}
		held := pl.held[pod.UID]
		if pod.Finished || (!leaves && held == "" && (pod.Interruption == nil && pod.Released == nil || !pod.Alive())) {
			continue
		}
		p := PodPlan{Pod: pod.UID, Name: pod.Name, Interrupted: pod.Leaving(), Released: pod.Released != nil, Going: leaves, Waits: held}
		switch {
		case leaves:
			p.Reason = why
		case held != "":
			p.Reason = pl.reasonOf(held)
		case pod.Released != nil:
			p.Reason = "serves until its replacement is ready"
		default:
			p.Reason = interruptionReason(pod)
		}
		pl.result.Pods = append(pl.result.Pods, p)
	}
	slices.SortFunc(pl.result.Pods, func(a, b PodPlan) int { return strings.Compare(a.Name, b.Name) })
}

func (pl *planner) reasonOf(kind WaitKind) string {
	for i := range pl.result.Waits {
		if pl.result.Waits[i].Kind == kind {
			return pl.result.Waits[i].Reason
		}
	}
	return ""
}
