package spot

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// simHub is the shell around the core: a cache that lags behind the cluster, the accountings, the state of droughts. It may be
// started anew at any moment, and checks at every write what must hold.
type simHub struct {
	*simCluster

	cache   map[types.UID]Pod
	slots   map[types.UID]*Accounting
	drought *Drought
	started time.Time

	crash    float64 // chance to be started anew between two writes
	requests int
	moves    map[*simWorkload]int       // evictions and releases for the mix
	recent   map[*simWorkload][]simMove // moves since the last start, the oldest first
	asserted []string                   // what did not hold
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
		h.asserted = append(h.asserted, fmt.Sprintf("at %s: ", h.now.Sub(epoch))+fmt.Sprintf(format, args...))
	}
}

// restart forgets everything but what a list shows.
func (h *simHub) restart() {
	clear(h.recent)
	h.events, h.cache, h.slots = nil, map[types.UID]Pod{}, map[types.UID]*Accounting{}
	h.started = h.now
	h.drought = NewDrought(DefaultDroughtSettings())
	for _, p := range h.probes {
		h.drought.ObserveProbe(*p, h.now)
	}
	for _, p := range h.sorted(func(p *simPod) bool { return p.Slot != NoSlot }) {
		h.see(p.Pod)
	}
}

// see takes in an event of a pod.
func (h *simHub) see(p Pod) {
	h.cache[p.UID] = p
	marked := h.enrich(p)
	h.accounting(p.Owner).Observe(&marked, h.now)
	h.tellDrought(&marked)
}

// tellDrought tells of a pod that is steered to spot. Its shape never changes, so it is read off the truth.
func (h *simHub) tellDrought(p *Pod) {
	truth := h.pods[p.UID]
	if truth == nil || p.Capacity != Spot || !p.Alive() {
		h.drought.Gone(p.UID)
		return
	}
	s := SpotPod{UID: p.UID, Shape: truth.set.shape(), Timeout: time.Minute, UnschedulableSince: p.UnschedulableSince}
	if p.Bound {
		s.BoundAt = truth.boundAt
	}
	h.drought.Observe(s, h.now)
}

// enrich adds what a hub knows of a pod's node and budgets.
func (h *simHub) enrich(p Pod) Pod {
	if truth := h.pods[p.UID]; truth != nil && truth.node != nil && p.Bound {
		p.Doom = truth.node.doom
	}
	return p
}

func (h *simHub) accounting(uid types.UID) *Accounting {
	if h.slots[uid] == nil {
		ordinals := false
		for _, w := range h.workloads {
			ordinals = ordinals || (w.ordinals && w.sets[0].uid == uid)
		}
		h.slots[uid] = NewAccounting(ordinals)
	}
	return h.slots[uid]
}

// deliver shows the hub what happened longer ago than lag.
func (h *simHub) deliver(lag time.Duration) {
	for len(h.events) > 0 && h.now.Sub(h.events[0].at) >= lag {
		e := h.events[0]
		h.events = h.events[1:]
		if e.gone {
			delete(h.cache, e.pod.UID)
			h.accounting(e.pod.Owner).Gone(e.pod.UID, e.pod.Version, h.now)
			h.drought.Gone(e.pod.UID)
		} else {
			h.see(e.pod)
		}
	}
}

// doomed takes in news of nodes.
func (h *simHub) doomed() {
	for _, p := range h.cache {
		h.see(p)
	}
}

func (h *simHub) mix(w *simWorkload) Mix {
	m := w.policy.Mix()
	_, m.Dry = h.drought.Dry(w.shape())
	return m
}

// place answers an admission, sometimes twice.
func (h *simHub) place(s *simSet, p *simPod) {
	h.requests++
	a := h.accounting(s.uid)
	ask := Ask{ID: fmt.Sprintf("request-%d", h.requests), Wanted: s.replicas, Mix: h.mix(s.simWorkload)}
	ask.Ordinal, _ = OrdinalOf(p.Name)
	answer := a.Reserve(ask, h.now)
	if answer.Doubt != DoubtNone {
		var pods []Pod
		for _, p := range h.sorted(func(p *simPod) bool { return p.controller == s.uid }) {
			pods = append(pods, h.enrich(p.Pod))
		}
		a.Sync(pods, h.now, h.now)
		ask.Final = true
		answer = a.Reserve(ask, h.now)
	}
	if h.rand.Float64() < 0.05 {
		again := a.Reserve(ask, h.now)
		h.assert(again.Reservation == answer.Reservation, "%s is answered %+v, then %+v", ask.ID, answer, again)
	}
	h.assert(!ask.Mix.Dry || answer.Capacity != Spot, "%s is sent to spot, which is dry", p.Name)
	p.Slot, p.Capacity, p.Reservation, p.Moved = answer.Slot, answer.Capacity, answer.ID, answer.Moved
	if !s.ordinals && answer.Capacity != Unknown {
		p.DeletionCost = ask.Mix.Cost(answer.Slot)
	}
}

func (h *simHub) observed(w *simWorkload) Observed {
	o := Observed{Ordinals: w.ordinals, Replicas: w.replicas, Rolling: len(w.sets) > 1}
	var selected []int
	for i, b := range w.budgets {
		o.Budgets = append(o.Budgets, Budget{Name: b.name, Allowed: b.allowed, Healthy: b.healthy >= b.want && b.want > 0, UnhealthyAlways: b.always})
		selected = append(selected, i)
	}
	owners := map[types.UID]bool{}
	for _, s := range w.sets {
		owner := Owner{UID: s.uid, Name: string(s.uid), Replicas: s.replicas}
		owner.DrySince, _ = h.drought.Dry(w.shape())
		owners[s.uid] = true
		for _, p := range h.cache {
			if p.Owner == s.uid {
				p = h.enrich(p)
				h.accounting(s.uid).Observe(&p, h.now)
			}
		}
		owner.Accounting = h.accounting(s.uid).Summary(s.replicas, h.now)
		o.LastMove = later(o.LastMove, h.accounting(s.uid).LastMove())
		o.Owners = append(o.Owners, owner)
	}
	add := func(p Pod) {
		p = h.enrich(p)
		h.accounting(p.Owner).Mark(&p)
		p.Budgets = selected
		o.Pods = append(o.Pods, p)
	}
	for _, p := range h.cache {
		if owners[p.Owner] || (p.Released != nil && p.Released.Workload == w.name) {
			add(p)
		}
	}
	for _, p := range h.of(w) { // what a live list finds
		if p.Slot == NoSlot && owners[p.controller] {
			add(p.Pod)
		}
	}
	slices.SortFunc(o.Pods, byAgeOf)
	h.rand.Shuffle(len(o.Pods), func(i, j int) { o.Pods[i], o.Pods[j] = o.Pods[j], o.Pods[i] })
	return o
}

// reconcile plans a workload and does what the plan says, unless the hub is started anew in between.
func (h *simHub) reconcile(w *simWorkload) PlanResult {
	o := h.observed(w)
	before := o
	before.Pods = slices.Clone(o.Pods)
	r := Plan(o, w.policy, w.settings, h.now)
	h.assert(reflect.DeepEqual(before, o), "the plan changes what it was made from")
	if h.rand.IntN(4) == 0 {
		h.assert(reflect.DeepEqual(r, Plan(o, w.policy, w.settings, h.now)), "two plans of the same state differ")
	}
	h.checkPlan(w, &o, &r)
	for _, s := range r.Stamps {
		if p := h.pods[s.Pod]; p != nil {
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
	return r
}

func (h *simHub) crashes() bool {
	if h.rand.Float64() >= h.crash {
		return false
	}
	h.restart()
	return true
}

func (h *simHub) release(w *simWorkload, r Release) {
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
	p.Hash, p.Released = ReleasedHash(released.Hash), &released
	h.write(p)
}

func (h *simHub) take(w *simWorkload, e Eviction) {
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
	h.assert(e.For != PurposeDrought || !ready, "%s is evicted for a drought, and ready", e.Name)
	if p != nil {
		h.countLeaving(w, e.For)
	}
}

// checkPlan checks what a plan says against what it was made from.
func (h *simHub) checkPlan(w *simWorkload, o *Observed, r *PlanResult) {
	byUID := map[types.UID]*Pod{}
	for i := range o.Pods {
		byUID[o.Pods[i].UID] = &o.Pods[i]
	}
	if w.settings.ReadOnly {
		h.assert(len(r.Stamps)+len(r.Releases)+len(r.Evictions) == 0, "a plan in read-only mode writes")
	}
	if w.settings.Paused {
		h.assert(len(r.Releases)+len(r.Evictions) == 0, "a plan of a paused workload moves")
	}
	shut := w.policy.Window != nil && !w.policy.Window.Contains(h.now)
	moves, goes := 0, map[types.UID]bool{}
	room := make([]int, len(o.Budgets))
	for _, e := range r.Evictions {
		pod := byUID[e.Pod]
		h.assert(!goes[e.Pod], "%s goes twice", e.Name)
		goes[e.Pod] = true
		switch e.For {
		case PurposeAdvisory:
			moves++
			h.assert(pod.advised() && pod.Released == nil, "%s leaves on advice, and nobody gave one", e.Name)
		case PurposeMove:
			moves++
			h.assert(!pod.leaving() && pod.Released == nil, "%s is moved, and is no supply", e.Name)
			h.assert(e.From == Spot || o.Owners[0].DrySince.IsZero(), "%s is evicted to find out whether spot is back", e.Name)
		case PurposeDrought:
			h.assert(!pod.Ready && !pod.Bound && pod.Capacity == Spot, "%s is replaced for a drought, and has a node", e.Name)
		case PurposeInterruption:
			h.assert(pod.leaving(), "%s is replaced, and its node stays", e.Name)
		case PurposeFinish:
			h.assert(pod.Released != nil, "%s is finished, and was not released", e.Name)
			h.assert(!shut || !pod.Released.For.Paced() || pod.leaving() || h.superseded(o, pod), "%s ends outside the window", e.Name)
		}
		if pod.Ready && len(pod.Budgets) > 0 {
			h.assert(len(pod.Budgets) == 1, "%s has several budgets", e.Name)
			room[pod.Budgets[0]]++
		}
	}
	for i, n := range room {
		h.assert(n <= o.Budgets[i].Allowed, "%d evictions of ready pods where budget %s allows %d", n, o.Budgets[i].Name, o.Budgets[i].Allowed)
	}
	for _, release := range r.Releases {
		h.assert(!goes[release.Pod], "%s goes twice", release.Name)
		goes[release.Pod] = true
		floor := (release.From == OnDemand && byUID[release.Pod].Doom != nil) || release.Released.For == PurposeAdvisory
		h.assert(!w.ordinals && byUID[release.Pod].Ready && (floor || w.settings.Strategy == StrategyRelease), "%s is released", release.Name)
		if release.Released.For.Paced() {
			moves++
		}
		if release.Released.For == PurposeMove {
			h.assert(release.From == Spot || o.Owners[0].DrySince.IsZero(), "%s is released to find out whether spot is back", release.Name)
		}
	}
	limit := w.limit()
	h.assert(moves == 0 || moves+r.Released+r.Doomed <= limit, "%d moves beside %d released and %d doomed pods, the limit is %d",
		moves, r.Released, r.Doomed, limit)
	h.checkStandIns(o, goes)
	h.checkFloor(w, o, r)
	h.assert(moves == 0 || !shut, "moves outside the window")
	h.assert(moves == 0 || len(w.sets) == 1, "moves during a rollout")
	together := moves
	for _, move := range h.recent[w] {
		if h.now.Sub(move.at) < w.settings.Cooldown {
			together++
			limit = max(limit, move.limit)
		}
	}
	// Of those before, others may have taken the replacements away since, and nothing tells of them any more.
	h.assert(moves == 0 || moves <= limit && together <= 2*limit, "%d moves within a cool-down, the limit is %d", together, limit)
}

// superseded tells whether a pod was released from a ReplicaSet that wants no replicas any more, or is gone.
func (h *simHub) superseded(o *Observed, pod *Pod) bool {
	return !slices.ContainsFunc(o.Owners, func(owner Owner) bool { return owner.UID == pod.Owner && owner.Replicas > 0 })
}

// checkStandIns checks that as many released pods stay as replicas do not serve that came, or should have come, since.
func (h *simHub) checkStandIns(o *Observed, goes map[types.UID]bool) {
	for _, owner := range o.Owners {
		first, stay, end := h.now, 0, 0
		for i := range o.Pods {
			p := &o.Pods[i]
			if p.Owner != owner.UID || p.Released == nil || !p.Alive() || !p.serves() {
				continue
			}
			if p.Released.At.Before(first) {
				first = p.Released.At
			}
			if goes[p.UID] && (p.Doom == nil || p.Doom.By.IsZero()) {
				end++
			} else if !goes[p.UID] {
				stay++
			}
		}
		fine := 0
		for i := range o.Pods {
			if p := &o.Pods[i]; p.Owner == owner.UID && p.Alive() && p.Released == nil && (p.Doom != nil || p.Ready || p.Created.Before(first.Truncate(time.Second))) {
				fine++
			}
		}
		h.assert(end == 0 || stay >= owner.Replicas-fine || h.now.Sub(first) >= StuckAfter,
			"%d released pods go and %d stay, with %d of %d replicas in place", end, stay, fine, owner.Replicas)
	}
}

// checkFloor checks that moves leave as many on-demand replicas as the floor asks for, of those that the hub can know of.
func (h *simHub) checkFloor(w *simWorkload, o *Observed, r *PlanResult) {
	moves, have := 0, 0
	for _, e := range r.Evictions {
		if e.For == PurposeMove && e.From == OnDemand {
			moves++
		}
	}
	for _, release := range r.Releases {
		if release.Released.For == PurposeMove && release.From == OnDemand {
			moves++
		}
	}
	for i := range o.Pods {
		if o.Pods[i].Supply() && o.Pods[i].Capacity == OnDemand {
			have++
		}
	}
	floor := min(w.policy.Mix().Floor, w.replicas)
	h.assert(moves == 0 || have-moves >= floor, "%d of %d on-demand replicas move, the floor is %d", moves, have, floor)
}

// countLeaving counts a move for the mix, and remembers when it was.
func (h *simHub) countLeaving(w *simWorkload, purpose Purpose) {
	if purpose.Paced() {
		h.recent[w] = append(h.recent[w], simMove{h.now, w.limit()})
	}
	if purpose == PurposeMove {
		h.moves[w]++
	}
}

// stepDrought does what droughts ask for.
func (h *simHub) stepDrought() {
	for _, p := range h.probes {
		h.drought.ObserveProbe(*p, h.now)
	}
	plan := h.drought.Step(h.now)
	for _, name := range plan.Delete {
		delete(h.probes, name)
		h.drought.ProbeGone(name)
	}
	for _, p := range plan.Create {
		if h.crashes() {
			return
		}
		h.probes[p.Name] = &p
		h.drought.ObserveProbe(p, h.now)
	}
	for _, name := range plan.Open {
		p := h.probes[name]
		p.Gated, p.OpenedAt = false, h.now
		h.drought.ObserveProbe(*p, h.now)
	}
}
