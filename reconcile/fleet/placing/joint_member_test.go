package placing

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/shortage"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/slots"
)

// jointPod is a pod of the model.
type jointPod struct {
	plan.Pod
	boundAt time.Time // when a node took it
	readyAt time.Time // when it will be ready, if it has a node
}

// serves reports whether the pod does its work and nothing takes that away.
func (p *jointPod) serves() bool { return p.Ready && p.Supply() }

// jointMember is a cluster with one ReplicaSet or StatefulSet, whose controller, scheduler and kubelets are the model's, and whose spot
// placement is the real one: slots by [slots.Accounting], moves by [plan.Plan], droughts by [shortage.Trackers].
type jointMember struct {
	name, domain string
	ordinals     bool // a StatefulSet, which makes and deletes pods in parallel
	now          *time.Time
	pods         map[types.UID]*jointPod
	replicas     int                   // of the spec
	room         map[capacity.Type]int // pods that nodes of a type are for
	budget       bool                  // a PodDisruptionBudget lets one pod at a time be unavailable
	made         int
	start        time.Duration // from a node to ready
	probes       map[string]*shortage.Probe

	away     time.Time // since when it is out of the hub's reach; zero: it is not
	split    *policy.FleetSplit
	slots    *slots.Accounting
	last     plan.Result
	planned  *policy.FleetSplit // that the last plan was made under
	lastMove time.Time
	droughts *shortage.Trackers

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

// control is the workload's controller.
func (m *jointMember) control() {
	if m.ordinals {
		m.controlOrdinals()
		return
	}
	var alive []*jointPod
	for _, p := range m.sorted() {
		if p.GoneBy.IsZero() {
			alive = append(alive, p)
		}
	}
	for n := len(alive); n < m.replicas; n++ {
		m.create(fmt.Sprintf("%s-%d", m.name, m.made+1))
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

// controlOrdinals is the StatefulSet's controller: it makes an ordinal again when its pod is gone, and deletes the highest ones.
func (m *jointMember) controlOrdinals() {
	have := map[string]bool{}
	for _, p := range m.sorted() {
		have[p.Name] = true
		if ordinalOf(p.Name) >= m.replicas && p.GoneBy.IsZero() {
			m.end(p, "the member shrinks")
		}
	}
	for number := range m.replicas {
		if name := fmt.Sprintf("%s-%d", m.name, number); !have[name] {
			m.create(name)
		}
	}
}

// ordinalOf is the number that a pod's name ends with.
func ordinalOf(name string) int {
	number, err := strconv.Atoi(name[strings.LastIndex(name, "-")+1:])
	if err != nil {
		panic(err)
	}
	return number
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

func costOf(p *jointPod) int { return p.DeletionCost.Number() }

// costFrom reads the annotation of a pod.
func costFrom(text string) policy.Cost { return policy.ParseCost(text) }

// create makes a pod, which spot placement gives its slot and type. Out of reach nobody does, and the pod goes on-demand.
func (m *jointMember) create(name string) {
	m.made++
	p := &jointPod{Pod: plan.Pod{
		Name: name, UID: types.UID(fmt.Sprintf("%s-%d", m.name, m.made)), Owner: m.owner(),
		Slot: plan.NoSlot, Capacity: capacity.OnDemand, Created: *m.now, UnreadySince: *m.now, Version: 1, Hash: "hash",
	}}
	if m.away.IsZero() && m.split != nil {
		policy := m.policy()
		ask := slots.Ask{ID: string(p.UID), Wanted: m.replicas, Mix: policy.Mix(), Final: true}
		ask.Ordinal = ordinalOf(name)
		ask.Mix.Dry, ask.Mix.OnDemandDry = !m.dry(capacity.Spot).IsZero(), !m.dry(capacity.OnDemand).IsZero()
		answer := m.slots.Reserve(ask, *m.now)
		p.Slot, p.Capacity, p.Reservation, p.Moved = answer.Slot, answer.Capacity, string(p.UID), answer.Moved
		if !m.ordinals {
			p.DeletionCost = costFrom(ask.Mix.Cost(answer.Slot))
		}
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
		m.droughts.Gone(p.UID)
		m.slots.Gone(p.UID, p.Version+1, *m.now)
	}
}

// on are the pods that nodes of a type run.
func (m *jointMember) on(c capacity.Type) []*jointPod {
	return slices.DeleteFunc(m.sorted(), func(p *jointPod) bool { return p.Capacity != c || !p.Bound })
}

// live lets nodes and pods do what they do. Pods come before probes, whose priority is the lowest.
func (m *jointMember) live() {
	used := map[capacity.Type]int{capacity.Spot: len(m.on(capacity.Spot)), capacity.OnDemand: len(m.on(capacity.OnDemand))}
	for _, p := range m.sorted() {
		switch {
		case !p.GoneBy.IsZero() && !m.now.Before(p.GoneBy), p.Interruption != nil && !m.now.Before(p.Interruption.By):
			m.gone(p)
		case !p.Bound && p.GoneBy.IsZero() && used[p.Capacity] < m.room[p.Capacity]:
			used[p.Capacity]++
			p.Bound, p.Node, p.UnschedulableSince, p.boundAt = true, "node-of-"+p.Name, time.Time{}, *m.now
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
	for _, p := range m.probed() {
		if !p.Gated && p.BoundAt.IsZero() && used[p.Capacity] < m.room[p.Capacity] {
			used[p.Capacity]++
			p.BoundAt, p.NodeJoined = *m.now, *m.now
		}
	}
}

// setRoom changes what a type can run. What is too much gets its notice, which may be none at all; on-demand capacity takes nothing back.
func (m *jointMember) setRoom(c capacity.Type, room int, notice time.Duration) {
	m.room[c] = room
	running := m.on(c)
	for _, p := range running[min(room, len(running)):] {
		if p.Interruption == nil && c == capacity.Spot {
			p.Interruption = &plan.Interruption{Node: p.Node, Notice: "taken back", Since: *m.now, By: m.now.Add(notice)}
			m.write(p)
		}
	}
	m.live()
}

// probed are the probes, by name.
func (m *jointMember) probed() []*shortage.Probe {
	return slices.SortedFunc(maps.Values(m.probes), func(a, b *shortage.Probe) int { return cmp.Compare(a.Name, b.Name) })
}

const evictedFor = "it is evicted for "

// jointTimes are those of shortages: shorter than in production, and in the same proportion.
var jointTimes = shortage.Settings{FirstProbe: 30 * time.Second, MostBetween: 4 * time.Minute, ProbeTime: time.Minute, NodeStart: 2 * time.Minute}

// jointShape is that of all pods.
var jointShape capacity.Requirements

const jointNamespace = "shop"

// dry returns since when a type has no room, as far as spot placement knows.
func (m *jointMember) dry(c capacity.Type) time.Time {
	return m.droughts.Since(c, jointShape, jointNamespace)
}

// observe takes in what shortages follow from.
func (m *jointMember) observe(p *jointPod) {
	if !p.Alive() {
		m.droughts.Gone(p.UID)
		return
	}
	s := shortage.Pod{UID: p.UID, Namespace: jointNamespace, Requirements: jointShape, Timeout: time.Minute, UnschedulableSince: p.UnschedulableSince}
	if p.Bound {
		s.BoundAt, s.NodeJoined = p.boundAt, p.boundAt
	}
	m.droughts.Observe(p.Capacity, s, *m.now)
}

// probe judges what pods and probes show, and does what is to be done about the probes.
func (m *jointMember) probe() {
	for _, p := range m.sorted() {
		m.observe(p)
	}
	for _, p := range m.probed() {
		m.droughts.Of(p.Capacity).ObserveProbe(*p, *m.now)
	}
	next := m.droughts.Step(*m.now)
	for _, name := range next.Delete {
		delete(m.probes, name)
		m.droughts.ProbeGone(name)
	}
	for _, p := range next.Create {
		m.probes[p.Name] = &p
	}
	for _, name := range next.Open {
		m.probes[name].Gated, m.probes[name].OpenedAt = false, *m.now
	}
}

// budgetNow is what the PodDisruptionBudget says.
func (m *jointMember) budgetNow() plan.Budget {
	healthy := 0
	for _, p := range m.pods {
		healthy += truth(p.Ready && p.GoneBy.IsZero())
	}
	want := max(m.replicas-1, 0)
	return plan.Budget{Name: "one", Allowed: max(healthy-want, 0), Desired: want, Healthy: healthy >= want && want > 0}
}

// evict is the Eviction API: false where the budget does not let the pod go.
func (m *jointMember) evict(p *jointPod, why string) bool {
	if b := m.budgetNow(); m.budget && p.Bound && b.Allowed == 0 && (p.Ready || !b.Healthy) {
		return false
	}
	m.end(p, why)
	return true
}

// observed is what the member's spot placement is planned from.
func (m *jointMember) observed() plan.Observed {
	owner := plan.Owner{
		UID: m.owner(), Name: m.name, Replicas: m.replicas, Accounting: m.slots.Summary(m.replicas, *m.now),
		DrySince: m.dry(capacity.Spot), OnDemandDrySince: m.dry(capacity.OnDemand),
	}
	owner.SpotProbing, owner.OnDemandProbing = m.droughts.Probing(jointShape, jointNamespace)
	o := plan.Observed{Ordinals: m.ordinals, Replicas: m.replicas, LastMove: m.lastMove, Owners: []plan.Owner{owner}}
	if m.budget {
		o.Budgets = []plan.Budget{m.budgetNow()}
	}
	for _, p := range m.sorted() {
		pod := p.Pod
		m.slots.Mark(&pod)
		if m.budget {
			pod.Budgets = []int{0}
		}
		o.Pods = append(o.Pods, pod)
	}
	return o
}

// place plans the member's spot placement and does what the plan says.
func (m *jointMember) place() {
	if m.split == nil {
		return
	}
	m.planned = m.split
	o := m.observed()
	m.last = plan.Plan(o, m.policy(), plan.Settings{MaxMoves: policy.MoveLimit{Count: 1}, Cooldown: 10 * time.Second}, *m.now)
	for _, s := range m.last.Assignments {
		if p := m.pods[s.Pod]; p != nil {
			p.Slot = s.Slot
			if s.DeletionCost != "" {
				p.DeletionCost = costFrom(s.DeletionCost)
			}
			m.write(p)
		}
	}
	for _, e := range m.last.Evictions {
		p := m.pods[e.Pod]
		if p == nil || !m.slots.Free(e.Pod, *m.now) {
			continue
		}
		if !m.evict(p, evictedFor+string(e.For)) {
			m.slots.Restore(e.Pod)
		} else if e.For == plan.PurposeMove {
			m.lastMove = *m.now
		}
	}
}

// settled reports whether the pods have the slots of the split, so that those go that should when the workload shrinks.
func (m *jointMember) settled() bool { return len(m.last.Assignments) == 0 }

// restart forgets what a hub process knows of the member, and lists its pods again.
func (m *jointMember) restart() {
	m.slots = slots.NewAccounting(m.ordinals)
	m.last, m.planned, m.lastMove = plan.Result{Assignments: []plan.Assignment{{}}}, nil, time.Time{}
	m.droughts = shortage.NewTrackers(jointTimes)
	for _, p := range m.probed() {
		m.droughts.Of(p.Capacity).ObserveProbe(*p, *m.now)
	}
	if m.away.IsZero() {
		for _, p := range m.sorted() {
			m.slots.Observe(&p.Pod, *m.now)
		}
	}
}
