package sim

import (
	"cmp"
	"fmt"
	"maps"
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
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/slots"
)

// oneNamespace has all workloads.
const oneNamespace = "shop"

// Hub is the shell around the core: a cache that lags behind the cluster, the accountings, the state of droughts. It may be
// restarted, or taken over from, at any moment, and checks at every write what must hold.
type Hub struct {
	*Cluster

	cache     podCache
	owners    map[types.UID]*owner
	sizes     map[*Set]int  // as the cache shows them; those that it does not have are seen at once
	lag       time.Duration // of the cache
	droughts  *shortage.Trackers
	decisions map[capacity.Type]map[time.Time]bool // when each decision was made that capacity is insufficient
	nodesAs   map[*Node]nodeFacts                  // as they were last seen
	started   time.Time                            // when the process that acts began to
	taken     time.Time                            // until when another one acted; zero: none did
	away      time.Time                            // until when the member cannot be reached

	crash    float64 // chance to be restarted between two writes
	blind    float64 // chance that a live list fails, or leaves a pod out
	requests int
	moves    map[*Workload]int    // evictions and releases for the mix
	recent   map[*Workload][]Move // moves since the last start, the oldest first
	asserted []string             // what did not hold

	evicted func(w *Workload, p *Pod, e plan.Eviction, ready bool) // called after an eviction of a pod that was there; nil: by none
}

// owner is what the hub keeps of a ReplicaSet or a StatefulSet.
type owner struct {
	slots  *slots.Accounting
	search plan.Search // for its pods without a slot
}

func (w *Workload) limit() int {
	if w.ordinals {
		return 1
	}
	return w.settings.MaxMoves.Of(w.replicas)
}

func newHub(c *Cluster) *Hub {
	h := &Hub{Cluster: c, moves: map[*Workload]int{}, recent: map[*Workload][]Move{},
		decisions: map[capacity.Type]map[time.Time]bool{capacity.Spot: {}, capacity.OnDemand: {}}, nodesAs: map[*Node]nodeFacts{}}
	c.admit = h.place
	h.restart()
	return h
}

func (h *Hub) assert(ok bool, format string, args ...any) {
	if !ok {
		h.asserted = append(h.asserted, fmt.Sprintf("at %s: ", h.now.Sub(spottest.Epoch))+fmt.Sprintf(format, args...))
	}
}

// restart forgets everything but what a list shows.
func (h *Hub) restart() {
	clear(h.recent)
	for s := range h.sizes {
		h.sizes[s] = s.replicas
	}
	h.events, h.cache, h.owners = nil, podCache{}, map[types.UID]*owner{}
	h.started = h.now
	h.droughts = shortage.NewTrackers(shortage.DefaultSettings())
	for _, p := range inOrder(h.probes) {
		h.droughts.Of(p.Capacity).ObserveProbe(*p, h.now)
	}
	for _, p := range h.sorted(func(p *Pod) bool { return p.Slot != plan.NoSlot }) {
		h.see(p.Pod)
	}
}

// takeover lets another replica act, which was warm: its cache lags like that of the one before, and it knows of no
// reservations.
func (h *Hub) takeover() {
	clear(h.recent)
	h.owners, h.started, h.taken = map[types.UID]*owner{}, h.now, h.now
	for _, p := range h.cache {
		h.see(*p)
	}
}

// inOrder returns what is in a map in an order that is always the same: a run can be repeated by its seed.
func inOrder[K cmp.Ordered, V any](m map[K]V) []V {
	list := make([]V, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		list = append(list, m[key])
	}
	return list
}

func (h *Hub) owner(uid types.UID) *owner {
	if h.owners[uid] == nil {
		ordinals := false
		for _, w := range h.workloads {
			ordinals = ordinals || (w.ordinals && w.sets[0].uid == uid)
		}
		h.owners[uid] = &owner{slots: slots.NewAccounting(ordinals)}
		h.owners[uid].slots.TakeOver(h.taken)
	}
	return h.owners[uid]
}

func (h *Hub) accounting(uid types.UID) *slots.Accounting { return h.owner(uid).slots }

// deliver shows the hub what happened longer ago than lag.
func (h *Hub) deliver(lag time.Duration) {
	h.lag = lag
	for len(h.events) > 0 && h.now.Sub(h.events[0].at) >= lag {
		h.deliverNext()
	}
}

// deliverNext shows the hub the next event.
func (h *Hub) deliverNext() {
	e := h.events[0]
	h.events = h.events[1:]
	switch _, late := h.sizes[e.set]; {
	case late:
		h.sizes[e.set] = e.size
	case e.set != nil:
	case !e.gone:
		h.see(e.pod)
	default:
		h.cache.remove(e.pod.UID)
		h.accounting(e.pod.Owner).Gone(e.pod.UID, e.pod.Version, h.now)
		h.droughts.Gone(e.pod.UID)
	}
}

// wait lets time go by in which nobody acts: what was admitted is stored, and what happened longer ago than the lag is seen.
func (h *Hub) wait(d, lag time.Duration) {
	h.now = h.now.Add(d)
	h.store()
	h.deliver(lag)
}

// known is how many replicas a set wants, as the cache shows it.
func (h *Hub) known(s *Set) int {
	if n, late := h.sizes[s]; late {
		return n
	}
	return s.replicas
}

// leave cuts the member off for a while. When it comes back, everything is listed again.
func (h *Hub) leave(until time.Time) { h.away = until }

func (h *Hub) mix(w *Workload) policy.Mix {
	m := w.policy.Mix()
	m.Dry = !h.droughts.Since(capacity.Spot, w.shape(), oneNamespace).IsZero()
	m.OnDemandDry = !h.droughts.Since(capacity.OnDemand, w.shape(), oneNamespace).IsZero()
	return m
}

// place answers an admission, sometimes twice.
func (h *Hub) place(s *Set, p *Pod) {
	if h.now.Before(h.away) {
		return // the webhook fails open
	}
	h.requests++
	a := h.accounting(s.uid)
	ask := slots.Ask{ID: fmt.Sprintf("request-%d", h.requests), Wanted: h.known(s), Mix: h.mix(s.Workload)}
	ask.Ordinal, _ = phrase.Ordinal(p.Name)
	answer := a.Reserve(ask, h.now)
	if answer.Doubt == slots.DoubtUnproven && h.rand.Float64() >= h.blind {
		if h.late {
			h.wait(max(a.ProvenBy().Sub(h.now), 0), h.lag) // the list is read when every admitted pod is stored
		}
		var pods []plan.Pod
		for _, p := range h.sorted(func(p *Pod) bool { return p.controller == s.uid }) {
			pods = append(pods, h.enrich(p.Pod))
		}
		a.Sync(pods, when.Later(h.now, a.ProvenBy()), h.now)
		answer = a.Reserve(ask, h.now)
		h.assert(answer.Doubt != slots.DoubtUnproven, "%s rests on a live list, and is in doubt", ask.ID)
	}
	if answer.Doubt != slots.DoubtNone {
		if ask.Final = true; h.rand.Float64() >= h.blind {
			ask.Wanted = s.replicas // the owner's news came while the admission waited for it
		}
		answer = a.Reserve(ask, h.now)
	}
	if h.rand.Float64() < 0.05 {
		again := a.Reserve(ask, h.now)
		h.assert(again.Reservation == answer.Reservation, "%s is answered %+v, then %+v", ask.ID, answer, again)
	}
	h.assert(!ask.Mix.Dry || answer.Capacity != capacity.Spot, "%s is sent to spot, which is dry", p.Name)
	p.Slot, p.Capacity, p.Reservation, p.Moved = answer.Slot, answer.Capacity, answer.ID, answer.Moved
	switch {
	case s.ordinals:
		p.TriedUntil = h.droughts.Tried(p.Capacity, string(s.uid)+"/"+p.Name, time.Time{}, h.now) // the annotation that admission writes
	case answer.Capacity != capacity.Unknown:
		p.DeletionCost = policy.ParseCost(ask.Mix.Cost(answer.Slot))
	}
}
