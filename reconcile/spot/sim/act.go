package sim

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// orphanPatience is how long after its release a pod is left alone whose workload is not known, as the shell has it.
const orphanPatience = 30 * time.Second

// Move is when a replica was moved, and how many might have been at a time.
type Move struct {
	at    time.Time
	limit int
}

// reconcile plans a workload and does what the plan says, unless the hub is restarted in between.
func (h *Hub) reconcile(w *Workload) plan.Result {
	o := h.observed(w)
	before := o
	before.Pods = slices.Clone(o.Pods)
	r := plan.Plan(o, w.policy, w.settings, h.now)
	h.assert(reflect.DeepEqual(before, o), "the plan changes what it was made from")
	if h.rand.IntN(4) == 0 {
		h.assert(reflect.DeepEqual(r, plan.Plan(o, w.policy, w.settings, h.now)), "two plans of the same state differ")
	}
	h.checkPlan(w, &o, &r)
	for _, s := range r.Assignments {
		p := h.pods[s.Pod]
		if p == nil {
			for i := range o.Owners {
				h.owner(o.Owners[i].UID).search.Repeat()
			}
		} else {
			p.Slot = s.Slot
			if s.DeletionCost != "" {
				p.DeletionCost = policy.ParseCost(s.DeletionCost)
			}
			h.write(p)
		}
	}
	for _, release := range r.Releases {
		if h.crashes() {
			return r
		}
		h.release(w, release)
	}
	for _, e := range r.Evictions {
		if h.crashes() {
			return r
		}
		h.take(w, e)
	}
	h.removeEnded(w, o.Pods)
	return r
}

// removeEnded removes released pods that have ended by themselves.
func (h *Hub) removeEnded(w *Workload, pods []plan.Pod) {
	for i := range pods {
		if p := h.pods[pods[i].UID]; p != nil && pods[i].Released != nil && pods[i].Finished && !w.settings.ReadOnly && !w.settings.Paused {
			h.remove(p)
		}
	}
}

// finishOrphans ends the releases of sets that are gone.
func (h *Hub) finishOrphans() {
	known := map[types.UID]bool{}
	for _, w := range h.workloads {
		for _, s := range append(slices.Clone(w.sets), w.past...) {
			known[s.uid] = true
		}
	}
	groups := map[types.UID]*Workload{}
	for _, p := range h.cache {
		if r := p.Released; r != nil && !known[r.Owner] && h.now.Sub(r.At) >= orphanPatience && h.pods[p.UID] != nil {
			groups[r.Owner] = h.pods[p.UID].set.Workload
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(groups)) {
		o := plan.Observed{Pods: h.cached(uid)}
		for _, e := range plan.Finish(o, plan.Settings{}, h.now).Evictions {
			h.take(groups[uid], e)
		}
		h.removeEnded(groups[uid], o.Pods)
	}
}

func (h *Hub) crashes() bool {
	if h.rand.Float64() >= h.crash {
		return false
	}
	if h.rand.IntN(2) == 0 {
		h.restart()
	} else {
		h.takeover()
	}
	return true
}

func (h *Hub) release(w *Workload, r plan.Release) {
	r.Released.Workload = w.name
	a := h.accounting(r.Released.Owner)
	if !a.LetGo(r.Pod, &r.Released, h.now) {
		return
	}
	p := h.pods[r.Pod]
	if p == nil || p.controller != r.Released.Owner || !p.GoneBy.IsZero() || h.rand.Float64() < h.crash {
		a.Restore(r.Pod) // it is gone, or the write failed
		return
	}
	if h.rand.Float64() < h.crash {
		a.Unanswered(r.Pod, r.Released.For, h.now)
		if h.rand.IntN(2) == 0 {
			return // it was not done
		}
	}
	h.countLeaving(w, r.Released.For)
	released := r.Released
	p.Hash, p.Released = plan.ReleasedHash(released.Hash), &released
	h.write(p)
	h.checkLeft(w, p.Name, r.From, released.For)
}

func (h *Hub) take(w *Workload, e plan.Eviction) {
	a := h.accounting(e.Owner)
	if !a.Free(e.Pod, h.now) {
		return
	}
	p := h.pods[e.Pod]
	ready := p != nil && p.Ready && p.GoneBy.IsZero() && (p.node == nil || p.node.goneAt.IsZero())
	unanswered := h.rand.Float64() < h.crash
	if unanswered && h.rand.IntN(2) == 0 {
		a.Unanswered(e.Pod, e.For, h.now) // it was not done
		return
	}
	done, _ := h.evict(e)
	if unanswered {
		a.Unanswered(e.Pod, e.For, h.now)
	} else if !done {
		a.Restore(e.Pod)
	}
	if !done {
		return
	}
	h.assert(e.For != plan.PurposeInsufficientCapacity || !ready, "%s is evicted for a drought, and ready", e.Name)
	if p != nil {
		h.countLeaving(w, e.For)
		h.checkLeft(w, e.Name, e.From, e.For)
		if h.evicted != nil {
			h.evicted(w, p, e, ready)
		}
	}
}

// countLeaving counts a move for the mix, and remembers when it was.
func (h *Hub) countLeaving(w *Workload, purpose plan.Purpose) {
	if purpose.Paced() {
		h.recent[w] = append(h.recent[w], Move{h.now, w.limit()})
	}
	if purpose == plan.PurposeMove {
		h.moves[w]++
	}
}

// stepDroughts does what droughts ask for.
func (h *Hub) stepDroughts() {
	for _, p := range inOrder(h.probes) {
		h.droughts.Of(p.Capacity).ObserveProbe(*p, h.now)
		h.droughts.ProbeSign(p, h.coming(p.Capacity), h.now)
	}
	next := h.droughts.Step(h.now)
	for _, v := range h.droughts.All() {
		if !h.decisions[v.Capacity][v.Since] {
			h.checkDecision(&v)
		}
		h.decisions[v.Capacity][v.Since] = true
	}
	for _, name := range next.Delete {
		delete(h.probes, name)
		h.droughts.ProbeGone(name)
	}
	for _, p := range next.Create {
		if h.crashes() {
			return
		}
		h.probes[p.Name] = &p
		h.droughts.Of(p.Capacity).ObserveProbe(p, h.now)
	}
	for _, name := range next.Open {
		p := h.probes[name]
		p.Gated, p.OpenedAt = false, h.now
		h.droughts.Of(p.Capacity).ObserveProbe(*p, h.now)
	}
}
