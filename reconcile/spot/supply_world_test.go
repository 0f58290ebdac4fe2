package spot

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/shortage"
)

// supplyWorld is a model of one workload in a member whose capacity comes and goes: nodes of both types, an autoscaler that takes
// its time, a scheduler, the workload's controller, and the hub's core without a lag. It is about supply; simCluster is about
// everything else.
type supplyWorld struct {
	now      time.Time
	tick     time.Duration
	serial   int
	nodes    []*supplyNode
	pods     map[types.UID]*supplyPod
	probes   map[string]*shortage.Probe
	scaler   supplyScaler
	accounts *Accounting
	droughts map[capacity.Type]*shortage.Tracker

	replicas int
	ordinals bool
	size     int
	shape    capacity.Requirements // as the hub knows it
	probed   int                   // what a probe takes, which is less than a replica where a probe cannot have all of its constraints
	refuses  func(pod *supplyPod, node *supplyNode) bool
	policy   policy.Policy
	settings plan.Settings

	verdicts map[capacity.Type]map[time.Time]bool // when each verdict was made
	evicted  []supplyEviction
}

type supplyEviction struct {
	at    time.Time
	name  string
	ready bool
	from  capacity.Type
}

type supplyNode struct {
	name       string
	capacity   capacity.Type
	room       int
	joined     time.Time
	emptySince time.Time
}

type supplyPod struct {
	plan.Pod
	node    *supplyNode
	boundAt time.Time
}

// supplyScaler brings a node of a type for pods that wait, a while after they began to, and takes empty nodes away.
type supplyScaler struct {
	takes   time.Duration
	room    map[capacity.Type]int // of the nodes that it makes; 0: it makes none
	tells   bool                  // whether it gives signs
	idle    time.Duration         // how long a node may be empty; 0: for ever
	ordered map[capacity.Type]time.Time
	made    int
}

func newSupplyWorld(replicas int, pol policy.Policy) *supplyWorld {
	starts := &shortage.StartTimes{}
	return &supplyWorld{now: spottest.Epoch, tick: time.Second, pods: map[types.UID]*supplyPod{}, probes: map[string]*shortage.Probe{}, accounts: NewAccounting(false),
		scaler:   supplyScaler{room: map[capacity.Type]int{}, ordered: map[capacity.Type]time.Time{}},
		droughts: map[capacity.Type]*shortage.Tracker{capacity.Spot: shortage.NewTracker(capacity.Spot, shortage.DefaultSettings(), starts), capacity.OnDemand: shortage.NewTracker(capacity.OnDemand, shortage.DefaultSettings(), starts)},
		replicas: replicas, size: 1, shape: capacity.Requirements{CPU: 1}, probed: 1, policy: pol,
		settings: plan.Settings{MaxMoves: policy.MoveLimit{Percent: 10}, Cooldown: 10 * time.Second},
		verdicts: map[capacity.Type]map[time.Time]bool{capacity.Spot: {}, capacity.OnDemand: {}}}
}

func newSupplySet(replicas int, pol policy.Policy) *supplyWorld {
	w := newSupplyWorld(replicas, pol)
	w.ordinals, w.accounts = true, NewAccounting(true)
	return w
}

func (w *supplyWorld) addNode(capacityType capacity.Type, room int) *supplyNode {
	w.serial++
	n := &supplyNode{name: fmt.Sprintf("%s-%d", capacityType, w.serial), capacity: capacityType, room: room, joined: w.now}
	w.nodes = append(w.nodes, n)
	w.droughts[capacityType].NodeJoined(w.now)
	return n
}

// loseNodes takes all nodes of a type away, with their pods.
func (w *supplyWorld) loseNodes(capacityType capacity.Type) {
	for _, p := range w.sorted() {
		if p.node != nil && p.node.capacity == capacityType {
			w.remove(p)
		}
	}
	w.nodes = slices.DeleteFunc(w.nodes, func(n *supplyNode) bool { return n.capacity == capacityType })
}

func (w *supplyWorld) sorted() []*supplyPod {
	return slices.SortedFunc(maps.Values(w.pods), func(a, b *supplyPod) int { return cmp.Compare(a.UID, b.UID) })
}

func (w *supplyWorld) remove(p *supplyPod) {
	delete(w.pods, p.UID)
	w.accounts.Gone(p.UID, p.Version, w.now)
	for _, d := range w.droughts {
		d.Gone(p.UID)
	}
}

// on counts the pods of a type that serve, and all that are bound to it or wait for it.
func (w *supplyWorld) on(capacityType capacity.Type) (ready, all int) {
	for _, p := range w.pods {
		if p.Capacity == capacityType {
			all++
			if p.Ready {
				ready++
			}
		}
	}
	return ready, all
}

func (w *supplyWorld) ready() int {
	spot, _ := w.on(capacity.Spot)
	onDemand, _ := w.on(capacity.OnDemand)
	return spot + onDemand
}

// readyEvictions counts the replicas that served when they were evicted, since a time.
func (w *supplyWorld) readyEvictions(since time.Time) int {
	n := 0
	for _, e := range w.evicted {
		if e.ready && !e.at.Before(since) {
			n++
		}
	}
	return n
}

// pass lets time pass, tick by tick; each is told of every moment and may be nil.
func (w *supplyWorld) pass(d time.Duration, each func()) {
	for until := w.now.Add(d); w.now.Before(until); {
		w.now = w.now.Add(w.tick)
		w.control()
		w.schedule()
		w.scale()
		w.tend()
		w.reconcile()
		if each != nil {
			each()
		}
	}
}

// until lets time pass until a condition holds.
func (w *supplyWorld) until(t *testing.T, what string, limit time.Duration, done func() bool) {
	t.Helper()
	for start := w.now; !done(); w.pass(w.tick, nil) {
		if w.now.Sub(start) > limit {
			t.Fatalf("not %s within %s: %s", what, limit, w.describe())
		}
	}
}

func (w *supplyWorld) describe() string {
	r := w.plan()
	return fmt.Sprintf("%d spot and %d on-demand pods, %d ready; %s: %s; %v; verdicts %+v %+v", r.SpotActual, r.OnDemandActual, w.ready(),
		r.State, r.Reason, r.Notes, w.droughts[capacity.Spot].Decisions(), w.droughts[capacity.OnDemand].Decisions())
}

// settled tells whether every replica serves where the policy wants it.
func (w *supplyWorld) settled() bool {
	spot, _ := w.on(capacity.Spot)
	onDemand, _ := w.on(capacity.OnDemand)
	m := w.policy.Mix()
	return spot == m.Spot(w.replicas) && onDemand == m.OnDemand(w.replicas) && len(w.pods) == w.replicas
}

func (w *supplyWorld) control() {
	pods := w.sorted()
	if over := len(pods) - w.replicas; over > 0 {
		slices.SortFunc(pods, func(a, b *supplyPod) int { return plantest.DeletedFirst(&a.Pod, &b.Pod) })
		for _, p := range pods[:over] {
			w.remove(p)
		}
	}
	taken := map[string]bool{}
	for _, p := range w.pods {
		taken[p.Name] = true
	}
	for i := 0; len(w.pods) < w.replicas; i++ {
		if name := fmt.Sprintf("db-%d", i); !w.ordinals {
			w.create("")
		} else if !taken[name] {
			w.create(name)
		}
	}
}

func (w *supplyWorld) create(name string) {
	w.serial++
	p := &supplyPod{Pod: plan.Pod{Name: cmp.Or(name, fmt.Sprintf("pod-%06d", w.serial)), UID: types.UID(fmt.Sprintf("pod-%06d", w.serial)), Owner: spottest.OwnerUID,
		Created: w.now, UnreadySince: w.now, Version: uint64(w.serial)}}
	ask := Ask{ID: string(p.UID), Wanted: w.replicas, Mix: w.mix(), Final: true}
	ask.Ordinal, _ = phrase.Ordinal(p.Name)
	answer := w.accounts.Reserve(ask, w.now)
	p.Slot, p.Capacity, p.Reservation, p.Moved = answer.Slot, answer.Capacity, answer.ID, answer.Moved
	if w.ordinals {
		p.TriedUntil = w.droughts[p.Capacity.Other()].Tried(replicaOf(&p.Pod)) // the annotation that admission writes
	}
	if !w.ordinals {
		p.DeletionCost = w.mix().Cost(p.Slot)
	}
	w.pods[p.UID] = p
	w.see(p)
}

func (w *supplyWorld) mix() policy.Mix {
	m := w.policy.Mix()
	_, m.Dry = w.droughts[capacity.Spot].Dry(w.shape)
	_, m.OnDemandDry = w.droughts[capacity.OnDemand].Dry(w.shape)
	return m
}

// see tells the accounting and the droughts of a pod.
func (w *supplyWorld) see(p *supplyPod) {
	w.serial++
	p.Version = uint64(w.serial)
	w.accounts.Observe(&p.Pod, w.now)
	seen := shortage.Pod{UID: p.UID, Requirements: w.shape, Timeout: time.Minute, UnschedulableSince: p.UnschedulableSince, NodeComing: p.NodeComing}
	if w.ordinals {
		seen.Replica = replicaOf(&p.Pod)
	}
	if p.node != nil {
		seen.BoundAt, seen.NodeJoined = p.boundAt, p.node.joined
		w.droughts[p.Capacity].Started(p.Created, p.node.joined, p.node.joined, w.now)
	}
	w.droughts[p.Capacity].Observe(seen, w.now)
}

func (w *supplyWorld) used(n *supplyNode) int {
	used := 0
	for _, p := range w.pods {
		if p.node == n {
			used += w.size
		}
	}
	return used
}

func (w *supplyWorld) schedule() {
	for _, p := range w.sorted() {
		switch {
		case p.node != nil && !p.Ready && w.now.Sub(p.boundAt) >= 3*time.Second:
			p.Ready, p.UnreadySince = true, w.now
		case p.node == nil:
			w.bind(p)
		}
		w.see(p)
	}
	for _, probe := range w.probes {
		for _, n := range w.nodes {
			if !probe.Gated && probe.BoundAt.IsZero() && n.capacity == probe.Capacity && n.room-w.used(n) >= w.probed {
				probe.BoundAt, probe.NodeJoined = w.now, n.joined
			}
		}
	}
}

func (w *supplyWorld) bind(p *supplyPod) {
	for _, n := range w.nodes {
		if n.capacity == p.Capacity && n.room-w.used(n) >= w.size && (w.refuses == nil || !w.refuses(p, n)) {
			p.node, p.boundAt, p.Bound, p.UnschedulableSince, p.NodeComing = n, w.now, true, time.Time{}, false
			return
		}
	}
	if p.UnschedulableSince.IsZero() {
		p.UnschedulableSince = w.now
	}
	_, ordered := w.scaler.ordered[p.Capacity]
	p.NodeComing = ordered && w.scaler.tells
}

func (w *supplyWorld) scale() {
	s := &w.scaler
	for _, capacityType := range []capacity.Type{capacity.Spot, capacity.OnDemand} {
		waits := false
		for _, p := range w.pods {
			waits = waits || (p.node == nil && p.Capacity == capacityType)
		}
		for _, p := range w.probes {
			waits = waits || (!p.Gated && p.BoundAt.IsZero() && p.Capacity == capacityType)
		}
		at, ordered := s.ordered[capacityType]
		switch {
		case !ordered && waits && s.room[capacityType] > 0:
			s.ordered[capacityType] = w.now
		case ordered && w.now.Sub(at) >= s.takes:
			delete(s.ordered, capacityType)
			w.addNode(capacityType, s.room[capacityType])
			s.made++
		}
	}
	w.nodes = slices.DeleteFunc(w.nodes, func(n *supplyNode) bool {
		if w.used(n) > 0 || n.emptySince.IsZero() {
			n.emptySince = w.now
		}
		return s.idle > 0 && w.now.Sub(n.emptySince) > s.idle
	})
}

// tend does what the droughts ask for.
func (w *supplyWorld) tend() {
	for _, capacityType := range []capacity.Type{capacity.Spot, capacity.OnDemand} {
		d := w.droughts[capacityType]
		_, ordered := w.scaler.ordered[capacityType]
		for _, p := range w.probes {
			d.ObserveProbe(*p, w.now)
			d.ProbeSign(p.Name, ordered && w.scaler.tells, w.now)
		}
		plan := d.Step(w.now)
		for _, name := range plan.Delete {
			delete(w.probes, name)
			d.ProbeGone(name)
		}
		for _, p := range plan.Create {
			w.probes[p.Name] = &p
			d.ObserveProbe(p, w.now)
		}
		for _, name := range plan.Open {
			p := w.probes[name]
			p.Gated, p.OpenedAt = false, w.now
			d.ObserveProbe(*p, w.now)
		}
		for _, v := range d.Decisions() {
			w.verdicts[capacityType][v.Since] = true
		}
	}
}

func (w *supplyWorld) plan() plan.Result {
	owner := plan.Owner{UID: spottest.OwnerUID, Name: "w", Replicas: w.replicas, Accounting: w.accounts.Summary(w.replicas, w.now)}
	owner.DrySince, _ = w.droughts[capacity.Spot].Dry(w.shape)
	owner.OnDemandDrySince, _ = w.droughts[capacity.OnDemand].Dry(w.shape)
	owner.SpotOnTrial, owner.OnDemandOnTrial = w.droughts[capacity.Spot].OnTrial(w.shape), w.droughts[capacity.OnDemand].OnTrial(w.shape)
	o := plan.Observed{Ordinals: w.ordinals, Replicas: w.replicas, Owners: []plan.Owner{owner}, LastMove: w.accounts.LastMove()}
	for _, p := range w.sorted() {
		pod := p.Pod
		pod.NodeComing = w.droughts[pod.Capacity].NodeComing(pod.UID, w.now)
		if w.ordinals {
			pod.TriedUntil = w.tried(&pod)
		}
		o.Pods = append(o.Pods, pod)
	}
	return plan.Plan(o, w.policy, w.settings, w.now)
}

// tried is until when a replica is left where it is, by its pod's annotation and by what was found out since.
func (w *supplyWorld) tried(pod *plan.Pod) time.Time {
	d := w.droughts[pod.Capacity.Other()]
	if !pod.TriedUntil.IsZero() {
		d.Recall(replicaOf(pod), pod.TriedUntil.Add(-policy.TriedTime), w.now)
	}
	return d.Tried(replicaOf(pod))
}

func (w *supplyWorld) reconcile() {
	r := w.plan()
	for _, s := range r.Stamps {
		p := w.pods[s.Pod]
		p.Slot, p.DeletionCost = s.Slot, cmp.Or(s.DeletionCost, p.DeletionCost)
		w.see(p)
	}
	for _, e := range r.Evictions {
		if p := w.pods[e.Pod]; w.accounts.Free(e.Pod, w.now) {
			w.evicted = append(w.evicted, supplyEviction{at: w.now, name: p.Name, ready: p.Ready, from: p.Capacity})
			w.remove(p)
		}
	}
}
