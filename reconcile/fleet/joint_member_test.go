package fleet_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/slots"
)

// jointPod is a pod of the model.
type jointPod struct {
	plan.Pod
	readyAt time.Time // when it will be ready, if it has a node
}

// serves reports whether the pod does its work and nothing takes that away.
func (p *jointPod) serves() bool { return p.Ready && p.Supply() }

// jointMember is a cluster with one ReplicaSet, whose controller, scheduler and kubelets are the model's, and whose spot placement
// is the real one: slots by [slots.Accounting], moves by [plan.Plan].
type jointMember struct {
	name, domain string
	now          *time.Time
	pods         map[types.UID]*jointPod
	replicas     int // of the spec
	room         int // spot pods that nodes are for
	made         int
	start        time.Duration // from a node to ready

	away     time.Time // since when it is out of the hub's reach; zero: it is not
	split    *policy.FleetSplit
	slots    *slots.Accounting
	last     plan.Result
	lastMove time.Time
	dry      time.Time // since when spot has no room, as far as spot placement knows
	full     time.Time // since when a probe finds room again
	trial    bool

	// taken is called before the hub takes a ready pod away, by whatever way.
	taken func(m *jointMember, p *jointPod, why string)
}

func (m *jointMember) owner() types.UID { return types.UID("set-" + m.name) }

func (m *jointMember) sorted() []*jointPod {
	return slices.SortedFunc(maps.Values(m.pods), func(a, b *jointPod) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
	})
}

// policy is what spot placement goes by: the split.
func (m *jointMember) policy() policy.Policy {
	all, floor := 100, m.split.OnDemand
	return policy.Policy{
		Percentage: &all, PercentageSource: policy.SourceFleet, MinOnDemand: &floor, MinOnDemandSource: policy.SourceFleet, Fleet: m.split,
	}
}

// control is the ReplicaSet's controller.
func (m *jointMember) control() {
	var alive []*jointPod
	for _, p := range m.sorted() {
		if p.GoneBy.IsZero() {
			alive = append(alive, p)
		}
	}
	for n := len(alive); n < m.replicas; n++ {
		m.create()
	}
	if len(alive) <= m.replicas {
		return
	}
	slices.SortStableFunc(alive, func(a, b *jointPod) int {
		return cmp.Or(truth(a.Bound)-truth(b.Bound), truth(a.Ready)-truth(b.Ready), cmp.Compare(costOf(a), costOf(b)), b.Created.Compare(a.Created))
	})
	for _, p := range alive[:len(alive)-m.replicas] {
		m.end(p, "the member shrinks")
	}
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

func costOf(p *jointPod) int {
	cost, err := strconv.Atoi(p.DeletionCost)
	if err != nil {
		return 0
	}
	return cost
}

// create makes a pod, which spot placement gives its slot and type. Out of reach nobody does, and the pod goes on-demand.
func (m *jointMember) create() {
	m.made++
	p := &jointPod{Pod: plan.Pod{
		Name: fmt.Sprintf("%s-%d", m.name, m.made), UID: types.UID(fmt.Sprintf("%s-%d", m.name, m.made)), Owner: m.owner(),
		Slot: plan.NoSlot, Capacity: capacity.OnDemand, Created: *m.now, UnreadySince: *m.now, Version: 1, Hash: "hash",
	}}
	if m.away.IsZero() && m.split != nil {
		policy := m.policy()
		ask := slots.Ask{ID: p.Name, Wanted: m.replicas, Mix: policy.Mix(), Final: true}
		ask.Mix.Dry = !m.dry.IsZero()
		answer := m.slots.Reserve(ask, *m.now)
		p.Slot, p.Capacity, p.Reservation, p.Moved = answer.Slot, answer.Capacity, p.Name, answer.Moved
		p.DeletionCost = ask.Mix.Cost(answer.Slot)
	}
	m.pods[p.UID] = p
	m.see(p)
}

func (m *jointMember) see(p *jointPod) {
	if m.away.IsZero() {
		m.slots.Observe(&p.Pod, *m.now)
	}
}

// write is what every change of a pod ends with.
func (m *jointMember) write(p *jointPod) {
	p.Version++
	m.see(p)
}

// end deletes a pod in order.
func (m *jointMember) end(p *jointPod, why string) {
	if p.serves() {
		m.taken(m, p, why)
	}
	p.GoneBy = m.now.Add(5 * time.Second)
	m.write(p)
}

// gone removes a pod.
func (m *jointMember) gone(p *jointPod) {
	delete(m.pods, p.UID)
	if m.away.IsZero() {
		m.slots.Gone(p.UID, p.Version+1, *m.now)
	}
}

// onSpot are the pods that spot nodes run.
func (m *jointMember) onSpot() []*jointPod {
	return slices.DeleteFunc(m.sorted(), func(p *jointPod) bool { return p.Capacity != capacity.Spot || !p.Bound })
}

// live lets nodes and pods do what they do.
func (m *jointMember) live() {
	used := len(m.onSpot())
	for _, p := range m.sorted() {
		switch {
		case !p.GoneBy.IsZero() && !m.now.Before(p.GoneBy), p.Doom != nil && !m.now.Before(p.Doom.By):
			m.gone(p)
		case !p.Bound && p.GoneBy.IsZero() && (p.Capacity == capacity.OnDemand || used < m.room):
			if p.Capacity == capacity.Spot {
				used++
			}
			p.Bound, p.Node, p.UnschedulableSince = true, "node-of-"+p.Name, time.Time{}
			p.readyAt = m.now.Add(m.start)
			m.write(p)
		case !p.Bound && p.UnschedulableSince.IsZero():
			p.UnschedulableSince = *m.now
			m.write(p)
		case p.Bound && !p.Ready && p.GoneBy.IsZero() && !m.now.Before(p.readyAt):
			p.Ready, p.UnreadySince = true, *m.now
			m.write(p)
		}
	}
}

// setRoom changes what spot can run. What is too much gets its notice, which may be none at all.
func (m *jointMember) setRoom(room int, notice time.Duration) {
	m.room = room
	running := m.onSpot()
	for _, p := range running[min(room, len(running)):] {
		if p.Doom == nil {
			p.Doom = &plan.Doom{Node: p.Node, Notice: "taken back", Since: *m.now, By: m.now.Add(notice)}
			m.write(p)
		}
	}
	m.live()
}

// probe finds out whether spot has room, as spot placement does: it is dry when a pod has found no node for a minute, and has room
// again when a probe has found a node for a minute.
func (m *jointMember) probe() {
	for _, p := range m.sorted() {
		if p.Capacity == capacity.Spot && p.Bound && p.Ready {
			m.trial = false
		}
		if p.Capacity == capacity.Spot && !p.UnschedulableSince.IsZero() && m.now.Sub(p.UnschedulableSince) >= time.Minute && m.dry.IsZero() {
			m.dry, m.full, m.trial = *m.now, time.Time{}, false
		}
	}
	switch {
	case m.dry.IsZero():
	case len(m.onSpot()) >= m.room:
		m.full = time.Time{}
	case m.full.IsZero():
		m.full = *m.now
	case m.now.Sub(m.full) >= time.Minute:
		m.dry, m.full, m.trial = time.Time{}, time.Time{}, true
	}
}

// place plans the member's spot placement and does what the plan says.
func (m *jointMember) place() {
	if m.split == nil {
		return
	}
	o := plan.Observed{Replicas: m.replicas, LastMove: m.lastMove, Owners: []plan.Owner{{
		UID: m.owner(), Name: m.name, Replicas: m.replicas, Accounting: m.slots.Summary(m.replicas, *m.now), DrySince: m.dry, SpotOnTrial: m.trial,
	}}}
	for _, p := range m.sorted() {
		pod := p.Pod
		m.slots.Mark(&pod)
		o.Pods = append(o.Pods, pod)
	}
	m.last = plan.Plan(o, m.policy(), plan.Settings{MaxMoves: policy.MoveLimit{Count: 1}, Cooldown: 10 * time.Second}, *m.now)
	for _, s := range m.last.Stamps {
		if p := m.pods[s.Pod]; p != nil {
			p.Slot = s.Slot
			if s.DeletionCost != "" {
				p.DeletionCost = s.DeletionCost
			}
			m.write(p)
		}
	}
	for _, e := range m.last.Evictions {
		p := m.pods[e.Pod]
		if p == nil || !m.slots.Free(e.Pod, *m.now) {
			continue
		}
		if e.For == plan.PurposeMove {
			m.lastMove = *m.now
		}
		m.end(p, fmt.Sprintf("it is evicted for %s", e.For))
	}
}

// settled reports whether the pods have the slots of the split, so that those go that should when the workload shrinks.
func (m *jointMember) settled() bool { return len(m.last.Stamps) == 0 }

// restart forgets what a hub process knows of the member, and lists its pods again.
func (m *jointMember) restart() {
	m.slots = slots.NewAccounting(false)
	m.last, m.lastMove = plan.Result{Stamps: []plan.Stamp{{}}}, time.Time{}
	m.dry, m.full, m.trial = time.Time{}, time.Time{}, false
	if m.away.IsZero() {
		for _, p := range m.sorted() {
			m.slots.Observe(&p.Pod, *m.now)
		}
	}
}
