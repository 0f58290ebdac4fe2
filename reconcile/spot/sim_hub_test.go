package spot

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/when"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/shortage"
)

// simHub is the shell around the core: a cache that lags behind the cluster, the accountings, the state of droughts. It may be
// started anew, or taken over from, at any moment, and checks at every write what must hold.
type simHub struct {
	*simCluster

	cache    map[types.UID]plan.Pod
	owners   map[types.UID]*owner
	droughts map[capacity.Type]*shortage.Tracker
	started  time.Time // when the process that acts began to
	taken    time.Time // until when another one acted; zero: none did
	away     time.Time // until when the member cannot be reached

	crash    float64 // chance to be started anew between two writes
	blind    float64 // chance that a live list fails, or leaves a pod out
	requests int
	moves    map[*simWorkload]int       // evictions and releases for the mix
	recent   map[*simWorkload][]simMove // moves since the last start, the oldest first
	asserted []string                   // what did not hold

	evicted func(*simWorkload, *simPod, plan.Eviction) // called after an eviction of a ready pod; nil: by none
}

// simMove is when a replica was moved, and how many might have been at a time.
type simMove struct {
	at    time.Time
	limit int
}

func (w *simWorkload) limit() int {
	if w.ordinals {
		return 1
	}
	return w.settings.MaxMoves.Of(w.replicas)
}

func newSimHub(c *simCluster) *simHub {
	h := &simHub{simCluster: c, moves: map[*simWorkload]int{}, recent: map[*simWorkload][]simMove{}}
	c.admit = h.place
	h.restart()
	return h
}

func (h *simHub) assert(ok bool, format string, args ...any) {
	if !ok {
		h.asserted = append(h.asserted, fmt.Sprintf("at %s: ", h.now.Sub(spottest.Epoch))+fmt.Sprintf(format, args...))
	}
}

// restart forgets everything but what a list shows.
func (h *simHub) restart() {
	clear(h.recent)
	h.events, h.cache, h.owners = nil, map[types.UID]plan.Pod{}, map[types.UID]*owner{}
	h.started = h.now
	starts := &shortage.StartTimes{}
	h.droughts = map[capacity.Type]*shortage.Tracker{}
	for _, capacityType := range []capacity.Type{capacity.Spot, capacity.OnDemand} {
		h.droughts[capacityType] = shortage.NewTracker(capacityType, shortage.DefaultSettings(), starts)
	}
	for _, p := range h.probes {
		h.droughts[p.Capacity].ObserveProbe(*p, h.now)
	}
	for _, p := range h.sorted(func(p *simPod) bool { return p.Slot != plan.NoSlot }) {
		h.see(p.Pod)
	}
}

// takeover lets another replica act, which was warm: its cache lags like that of the one before, and it knows of no
// reservations.
func (h *simHub) takeover() {
	clear(h.recent)
	h.owners, h.started, h.taken = map[types.UID]*owner{}, h.now, h.now
	for _, p := range h.cache {
		h.see(p)
	}
}

// see takes in an event of a pod.
func (h *simHub) see(p plan.Pod) {
	h.cache[p.UID] = p
	marked := h.enrich(p)
	h.accounting(p.Owner).Observe(&marked, h.now)
	h.tellDrought(&marked)
}

// tellDrought tells of a pod that is steered to a capacity type. Its shape never changes, so it is read off the truth.
func (h *simHub) tellDrought(p *plan.Pod) {
	truth := h.pods[p.UID]
	for capacityType, d := range h.droughts {
		if truth == nil || p.Capacity != capacityType || !p.Alive() {
			d.Gone(p.UID)
			continue
		}
		s := shortage.Pod{UID: p.UID, Requirements: truth.set.shape(), Timeout: time.Minute, UnschedulableSince: p.UnschedulableSince,
			NodeComing: !p.Bound && h.coming(capacityType)}
		if p.Bound && truth.node != nil {
			s.BoundAt, s.NodeJoined = truth.boundAt, truth.node.joined
		}
		if truth.set.ordinals {
			s.Replica = replicaOf(p)
		}
		d.Observe(s, h.now)
	}
}

// enrich adds what a hub knows of a pod's node and budgets.
func (h *simHub) enrich(p plan.Pod) plan.Pod {
	node := h.ranOn[p.UID]
	if truth := h.pods[p.UID]; truth != nil {
		node = truth.node
	}
	if node != nil && p.Bound {
		p.Doom, p.Capacity = node.doom, node.capacity // labels of nodes may change
	}
	return p
}

func (h *simHub) owner(uid types.UID) *owner {
	if h.owners[uid] == nil {
		ordinals := false
		for _, w := range h.workloads {
			ordinals = ordinals || (w.ordinals && w.sets[0].uid == uid)
		}
		h.owners[uid] = &owner{uid: uid, slots: NewAccounting(ordinals)}
		h.owners[uid].slots.TakeOver(h.taken)
	}
	return h.owners[uid]
}

func (h *simHub) accounting(uid types.UID) *Accounting { return h.owner(uid).slots }

// deliver shows the hub what happened longer ago than lag.
func (h *simHub) deliver(lag time.Duration) {
	for len(h.events) > 0 && h.now.Sub(h.events[0].at) >= lag {
		e := h.events[0]
		h.events = h.events[1:]
		if !e.gone {
			h.see(e.pod)
			continue
		}
		delete(h.cache, e.pod.UID)
		h.accounting(e.pod.Owner).Gone(e.pod.UID, e.pod.Version, h.now)
		for _, d := range h.droughts {
			d.Gone(e.pod.UID)
		}
	}
}

// leave cuts the member off for a while. When it comes back, everything is listed anew.
func (h *simHub) leave(until time.Time) { h.away = until }

// joined tells of nodes that the autoscaler has brought.
func (h *simHub) joined(nodes []*simNode) {
	for _, n := range nodes {
		h.droughts[n.capacity].NodeJoined(h.now)
	}
}

// doomed takes in news of nodes.
func (h *simHub) doomed() {
	for _, p := range h.cache {
		h.see(p)
	}
}

func (h *simHub) mix(w *simWorkload) policy.Mix {
	m := w.policy.Mix()
	_, m.Dry = h.droughts[capacity.Spot].Dry(w.shape())
	_, m.OnDemandDry = h.droughts[capacity.OnDemand].Dry(w.shape())
	return m
}

// place answers an admission, sometimes twice.
func (h *simHub) place(s *simSet, p *simPod) {
	if h.now.Before(h.away) {
		return // the webhook fails open
	}
	h.requests++
	a := h.accounting(s.uid)
	ask := Ask{ID: fmt.Sprintf("request-%d", h.requests), Wanted: s.replicas, Mix: h.mix(s.simWorkload)}
	ask.Ordinal, _ = phrase.Ordinal(p.Name)
	answer := a.Reserve(ask, h.now)
	if answer.Doubt == DoubtUnproven && h.rand.Float64() >= h.blind {
		var pods []plan.Pod
		for _, p := range h.sorted(func(p *simPod) bool { return p.controller == s.uid }) {
			pods = append(pods, h.enrich(p.Pod))
		}
		a.Sync(pods, when.Later(h.now, a.ProvenBy()), h.now)
		answer = a.Reserve(ask, h.now)
		h.assert(answer.Doubt != DoubtUnproven, "%s rests on a live list, and is in doubt", ask.ID)
	}
	if answer.Doubt != DoubtNone {
		ask.Final = true
		answer = a.Reserve(ask, h.now)
	}
	if h.rand.Float64() < 0.05 {
		again := a.Reserve(ask, h.now)
		h.assert(again.Reservation == answer.Reservation, "%s is answered %+v, then %+v", ask.ID, answer, again)
	}
	h.assert(!ask.Mix.Dry || answer.Capacity != capacity.Spot, "%s is sent to spot, which is dry", p.Name)
	p.Slot, p.Capacity, p.Reservation, p.Moved = answer.Slot, answer.Capacity, answer.ID, answer.Moved
	if !s.ordinals && answer.Capacity != capacity.Unknown {
		p.DeletionCost = ask.Mix.Cost(answer.Slot)
	}
}

// sources are the sets whose pods a plan looks at: those that have or want any, and those of which released pods are left.
func (h *simHub) sources(w *simWorkload) []*simSet {
	sets := slices.Clone(w.sets)
	for _, s := range w.past {
		if o := h.owners[s.uid]; o != nil && o.slots.Known() > 0 {
			sets = append(sets, s)
		}
	}
	return sets
}

func (h *simHub) observed(w *simWorkload) plan.Observed {
	o := plan.Observed{Ordinals: w.ordinals, Replicas: w.replicas, Rolling: len(w.sets) > 1}
	var selected []int
	for i, b := range w.budgets {
		o.Budgets = append(o.Budgets, plan.Budget{Name: b.name, Allowed: b.allowed, Healthy: b.healthy >= b.want && b.want > 0, UnhealthyAlways: b.always})
		selected = append(selected, i)
	}
	sets := h.sources(w)
	for _, s := range sets {
		o.Pods = append(o.Pods, h.cached(s.uid)...)
		a := h.accounting(s.uid)
		owner := plan.Owner{UID: s.uid, Name: string(s.uid), Replicas: s.replicas, Accounting: a.Summary(s.replicas, h.now)}
		owner.DrySince, _ = h.droughts[capacity.Spot].Dry(w.shape())
		owner.OnDemandDrySince, _ = h.droughts[capacity.OnDemand].Dry(w.shape())
		owner.SpotOnTrial, owner.OnDemandOnTrial = h.droughts[capacity.Spot].OnTrial(w.shape()), h.droughts[capacity.OnDemand].OnTrial(w.shape())
		o.LastMove = when.Later(o.LastMove, a.LastMove())
		o.Owners = append(o.Owners, owner)
	}
	for i, s := range sets {
		o.Pods = append(o.Pods, withoutKnown(h.unlabelled(s, o.Pods, len(o.Owners[i].Accounting.Reserved)), o.Pods)...)
	}
	for i := range o.Pods {
		pod := &o.Pods[i]
		pod.Budgets = selected
		if pod.Capacity != capacity.Unknown {
			pod.NodeComing = h.droughts[pod.Capacity].NodeComing(pod.UID, h.now)
			if w.ordinals {
				pod.TriedUntil = h.droughts[pod.Capacity.Other()].Tried(replicaOf(pod))
			}
		}
	}
	slices.SortFunc(o.Pods, func(a, b plan.Pod) int { return plan.ByAge(&a, &b) })
	h.rand.Shuffle(len(o.Pods), func(i, j int) { o.Pods[i], o.Pods[j] = o.Pods[j], o.Pods[i] })
	return o
}

// cached returns the pods of an owner that the cache shows, with what is known beyond it.
func (h *simHub) cached(uid types.UID) []plan.Pod {
	var pods []plan.Pod
	a := h.accounting(uid)
	for _, p := range h.cache {
		if p.Owner == uid {
			p = h.enrich(p)
			a.Observe(&p, h.now)
			a.Mark(&p)
			pods = append(pods, p)
		}
	}
	return pods
}

// unlabelled finds pods of a set without a slot as production does: by the set's status, and by live lists at times.
func (h *simHub) unlabelled(s *simSet, known []plan.Pod, reserved int) []plan.Pod {
	o, sub := h.owner(s.uid), subject{ordinals: s.ordinals}
	visible := 0
	for i := range known {
		if p := &known[i]; p.Owner == s.uid && p.Released == nil && sub.counts(p) {
			visible++
		}
	}
	active := h.sorted(func(p *simPod) bool { return p.controller == s.uid && sub.counts(&p.Pod) })
	if search, _ := o.wantsList(len(active), visible+reserved, h.now); search {
		found := []foundPod{}
		for _, p := range active {
			if p.Slot == plan.NoSlot && p.Alive() && h.rand.Float64() >= h.blind {
				found = append(found, foundPod{Pod: p.Pod})
			}
		}
		o.keepFound(found, h.now)
	}
	pods := []plan.Pod{}
	for i := range o.listed.found {
		pods = append(pods, h.enrich(o.listed.found[i].Pod))
	}
	return pods
}

// reconcile plans a workload and does what the plan says, unless the hub is started anew in between.
func (h *simHub) reconcile(w *simWorkload) plan.Result {
	o := h.observed(w)
	before := o
	before.Pods = slices.Clone(o.Pods)
	r := plan.Plan(o, w.policy, w.settings, h.now)
	h.assert(reflect.DeepEqual(before, o), "the plan changes what it was made from")
	if h.rand.IntN(4) == 0 {
		h.assert(reflect.DeepEqual(r, plan.Plan(o, w.policy, w.settings, h.now)), "two plans of the same state differ")
	}
	h.checkPlan(w, &o, &r)
	for _, s := range r.Stamps {
		p := h.pods[s.Pod]
		if p == nil {
			for i := range o.Owners {
				h.owner(o.Owners[i].UID).searchAgain()
			}
		} else {
			p.Slot = s.Slot
			if s.DeletionCost != "" {
				p.DeletionCost = s.DeletionCost
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
func (h *simHub) removeEnded(w *simWorkload, pods []plan.Pod) {
	for i := range pods {
		if p := h.pods[pods[i].UID]; p != nil && pods[i].Released != nil && pods[i].Finished && !w.settings.ReadOnly && !w.settings.Paused {
			h.remove(p)
		}
	}
}

// finishStrays ends the releases of sets that are gone.
func (h *simHub) finishStrays() {
	known := map[types.UID]bool{}
	for _, w := range h.workloads {
		for _, s := range append(slices.Clone(w.sets), w.past...) {
			known[s.uid] = true
		}
	}
	groups := map[types.UID]*simWorkload{}
	for _, p := range h.cache {
		if r := p.Released; r != nil && !known[r.Owner] && h.now.Sub(r.At) >= strayPatience && h.pods[p.UID] != nil {
			groups[r.Owner] = h.pods[p.UID].set.simWorkload
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

func (h *simHub) crashes() bool {
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

func (h *simHub) release(w *simWorkload, r plan.Release) {
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

func (h *simHub) take(w *simWorkload, e plan.Eviction) {
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
	h.assert(e.For != plan.PurposeDrought || !ready, "%s is evicted for a drought, and ready", e.Name)
	if p != nil {
		h.countLeaving(w, e.For)
		h.checkLeft(w, e.Name, e.From, e.For)
		if ready && h.evicted != nil {
			h.evicted(w, p, e)
		}
	}
}

// countLeaving counts a move for the mix, and remembers when it was.
func (h *simHub) countLeaving(w *simWorkload, purpose plan.Purpose) {
	if purpose.Paced() {
		h.recent[w] = append(h.recent[w], simMove{h.now, w.limit()})
	}
	if purpose == plan.PurposeMove {
		h.moves[w]++
	}
}

// stepDroughts does what droughts ask for.
func (h *simHub) stepDroughts() {
	for _, capacityType := range []capacity.Type{capacity.Spot, capacity.OnDemand} {
		h.stepDrought(capacityType, h.droughts[capacityType])
	}
}

func (h *simHub) stepDrought(capacityType capacity.Type, d *shortage.Tracker) {
	for _, p := range h.probes {
		if p.Capacity == capacityType {
			d.ObserveProbe(*p, h.now)
			d.ProbeSign(p.Name, h.coming(capacityType), h.now)
		}
	}
	plan := d.Step(h.now)
	for _, name := range plan.Delete {
		delete(h.probes, name)
		d.ProbeGone(name)
	}
	for _, p := range plan.Create {
		if h.crashes() {
			return
		}
		h.probes[p.Name] = &p
		d.ObserveProbe(p, h.now)
	}
	for _, name := range plan.Open {
		p := h.probes[name]
		p.Gated, p.OpenedAt = false, h.now
		d.ObserveProbe(*p, h.now)
	}
}
