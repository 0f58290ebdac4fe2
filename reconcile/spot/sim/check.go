package sim

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/shortage"
)

// checkPlan checks what a plan says against what it was made from.
func (h *Hub) checkPlan(w *Workload, o *plan.Observed, r *plan.Result) {
	byUID := map[types.UID]*plan.Pod{}
	for i := range o.Pods {
		byUID[o.Pods[i].UID] = &o.Pods[i]
	}
	if w.settings.ReadOnly {
		h.assert(len(r.Assignments)+len(r.Releases)+len(r.Evictions) == 0, "a plan in read-only mode writes")
	}
	if w.settings.Paused {
		h.assert(len(r.Releases)+len(r.Evictions) == 0, "a plan of a paused workload moves")
	}
	shut := w.policy.Window != nil && !w.policy.Window.Contains(h.now)
	goes := map[types.UID]bool{}
	moves := h.checkEvictions(o, r, byUID, goes, shut) + h.checkReleases(w, o, r, byUID, goes)
	limit := w.limit()
	released := standIns(o)
	h.assert(moves == 0 || moves+released+r.Interrupted <= limit, "%d moves beside %d released and %d interrupted pods, the limit is %d",
		moves, released, r.Interrupted, limit)
	h.checkStandIns(o, goes)
	h.checkFloor(w, o, r)
	h.assert(moves == 0 || !shut, "moves outside the window")
	h.assert(moves == 0 || len(w.sets) == 1, "moves during a rollout")
	h.checkCooldown(w, moves)
}

// checkEvictions checks what pods are evicted for, and what their budgets allow. It adds the pods to goes and returns how many are moves.
func (h *Hub) checkEvictions(o *plan.Observed, r *plan.Result, byUID map[types.UID]*plan.Pod, goes map[types.UID]bool, shut bool) (moves int) {
	room := make([]int, len(o.Budgets))
	for _, e := range r.Evictions {
		pod := byUID[e.Pod]
		h.assert(!goes[e.Pod], "%s goes twice", e.Name)
		goes[e.Pod] = true
		switch e.For {
		case plan.PurposeAdvisory:
			moves++
			h.assert(pod.Advised() && pod.Released == nil, "%s leaves on advice, and nobody gave one", e.Name)
		case plan.PurposeMove:
			moves++
			h.assert(!pod.Leaving() && pod.Released == nil, "%s is moved, and is no supply", e.Name)
			h.assert(e.From == capacity.Spot || o.Owners[0].DrySince.IsZero(), "%s is evicted to find out whether spot is back", e.Name)
		case plan.PurposeInsufficientCapacity:
			h.assert(!pod.Ready && !pod.Bound && pod.Capacity != capacity.Unknown, "%s is replaced for a drought, and has a node", e.Name)
			h.assert(!pod.NodeComing, "%s is replaced for a drought, and a node is coming", e.Name)
		case plan.PurposeInterruption:
			h.assert(pod.Leaving(), "%s is replaced, and its node stays", e.Name)
		case plan.PurposeFinish:
			h.assert(pod.Released != nil, "%s is finished, and was not released", e.Name)
			h.assert(!shut || !pod.Released.For.Paced() || pod.Leaving() || h.superseded(o, pod), "%s ends outside the window", e.Name)
		}
		if pod.Ready && len(pod.Budgets) > 0 {
			h.assert(len(pod.Budgets) == 1, "%s has several budgets", e.Name)
			room[pod.Budgets[0]]++
		}
	}
	for i, n := range room {
		h.assert(n <= o.Budgets[i].Allowed, "%d evictions of ready pods where budget %s allows %d", n, o.Budgets[i].Name, o.Budgets[i].Allowed)
	}
	return moves
}

// checkReleases checks what is released, as checkEvictions does.
func (h *Hub) checkReleases(w *Workload, o *plan.Observed, r *plan.Result, byUID map[types.UID]*plan.Pod, goes map[types.UID]bool) (moves int) {
	for _, release := range r.Releases {
		h.assert(!goes[release.Pod], "%s goes twice", release.Name)
		goes[release.Pod] = true
		floor := (release.From == capacity.OnDemand && byUID[release.Pod].Interruption != nil) || release.Released.For == plan.PurposeAdvisory
		h.assert(!w.ordinals && byUID[release.Pod].Ready && (floor || w.settings.Strategy == policy.StrategyRelease), "%s is released", release.Name)
		if release.Released.For.Paced() {
			moves++
		}
		if release.Released.For == plan.PurposeMove {
			h.assert(release.From == capacity.Spot || o.Owners[0].DrySince.IsZero(), "%s is released to find out whether spot is back", release.Name)
		}
	}
	return moves
}

// checkCooldown checks the moves of a plan, with those before, against the limit for one cool-down.
func (h *Hub) checkCooldown(w *Workload, moves int) {
	together, limit := moves, w.limit()
	for _, move := range h.recent[w] {
		if h.now.Sub(move.at) < w.settings.Cooldown {
			together++
			limit = max(limit, move.limit)
		}
	}
	// Of those before, others may have taken the replacements away since, and nothing shows them any more.
	h.assert(moves == 0 || moves <= limit && together <= 2*limit, "%d moves within a cool-down, the limit is %d", together, limit)
}

// superseded reports whether a pod was released from a ReplicaSet that wants no replicas any more, or is gone.
func (h *Hub) superseded(o *plan.Observed, pod *plan.Pod) bool {
	return !slices.ContainsFunc(o.Owners, func(owner plan.Owner) bool { return owner.UID == pod.Owner && owner.Replicas > 0 })
}

// standIns counts the released pods of owners that want replicas; those of others stand in for nobody.
func standIns(o *plan.Observed) (n int) {
	wants := map[types.UID]bool{}
	for i := range o.Owners {
		wants[o.Owners[i].UID] = o.Owners[i].Replicas > 0
	}
	for i := range o.Pods {
		if p := &o.Pods[i]; p.Released != nil && p.Alive() && wants[p.Owner] {
			n++
		}
	}
	return n
}

// checkStandIns checks that as many released pods stay as replicas do not serve that came, or should have come, since.
func (h *Hub) checkStandIns(o *plan.Observed, goes map[types.UID]bool) {
	for _, owner := range o.Owners {
		first, stay, end := h.now, 0, 0
		for i := range o.Pods {
			p := &o.Pods[i]
			if p.Owner != owner.UID || p.Released == nil || !p.Alive() || !p.Serves() {
				continue
			}
			if p.Released.At.Before(first) {
				first = p.Released.At
			}
			if goes[p.UID] && (p.Interruption == nil || p.Interruption.By.IsZero()) {
				end++
			} else if !goes[p.UID] {
				stay++
			}
		}
		fine := 0
		for i := range o.Pods {
			if p := &o.Pods[i]; p.Owner == owner.UID && p.Alive() && p.Released == nil && (p.Interruption != nil || p.Ready || p.Created.Before(first.Truncate(time.Second))) {
				fine++
			}
		}
		h.assert(end == 0 || stay >= owner.Replicas-fine || h.now.Sub(first) >= plan.StuckAfter,
			"%d released pods go and %d stay, with %d of %d replicas in place", end, stay, fine, owner.Replicas)
	}
}

// checkFloor checks that moves leave as many on-demand replicas as the floor asks for, of those that the hub can know of.
func (h *Hub) checkFloor(w *Workload, o *plan.Observed, r *plan.Result) {
	moves, have := 0, 0
	for _, e := range r.Evictions {
		if e.For == plan.PurposeMove && e.From == capacity.OnDemand {
			moves++
		}
	}
	for _, release := range r.Releases {
		if release.Released.For == plan.PurposeMove && release.From == capacity.OnDemand {
			moves++
		}
	}
	for i := range o.Pods {
		if o.Pods[i].Supply() && o.Pods[i].Capacity == capacity.OnDemand {
			have++
		}
	}
	floor := min(w.policy.Mix().Floor, w.replicas)
	h.assert(moves == 0 || have-moves >= floor, "%d of %d on-demand replicas move, the floor is %d", moves, have, floor)
}

// checkLeft checks by the truth that a move has left as many on-demand replicas as the floor asks for. Those that somebody else has
// killed count as long as the hub cannot know it.
func (h *Hub) checkLeft(w *Workload, name string, from capacity.Type, purpose plan.Purpose) {
	if from != capacity.OnDemand || purpose != plan.PurposeMove {
		return
	}
	have, _ := h.supply(w)
	for _, p := range h.cache {
		if h.killed[p.UID] && p.Capacity == capacity.OnDemand && p.Supply() {
			have.OnDemand++
		}
	}
	floor := min(w.policy.Mix().Floor, w.replicas)
	h.assert(have.OnDemand >= floor, "%s was moved to spot, and %d on-demand replicas are left, the floor is %d", name, have.OnDemand, floor)
}

// checkDecision checks that capacity counts as insufficient only once a pod has waited for as long as its own workload says.
func (h *Hub) checkDecision(v *shortage.Decision) {
	for _, p := range h.cache {
		if p.Capacity != v.Capacity || p.UnschedulableSince.IsZero() {
			continue
		}
		truth := h.pods[p.UID]
		if truth == nil {
			return // it is gone, which the cache does not show yet; it may be the one
		}
		w := truth.set
		if w.shape().String() == v.Requirements.String() && h.now.Sub(p.UnschedulableSince) >= w.pendingTimeout() {
			return
		}
	}
	h.assert(false, "%s counts as insufficient for %s, and no such pod has waited for its timeout", v.Capacity, v.Requirements)
}
