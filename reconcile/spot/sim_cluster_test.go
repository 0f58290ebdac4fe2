package spot

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
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

// simEvent is what an informer shows of a pod.
type simEvent struct {
	at   time.Time
	pod  plan.Pod
	gone bool
}

// simCluster is a model of one member: nodes, a scheduler, kubelets, the controllers of workloads and of disruption budgets,
// and the Eviction API. It is the truth; what a hub knows of it comes later, see simHub. Randomness comes from a seed.
type simCluster struct {
	rand    *rand.Rand
	now     time.Time
	version uint64
	serial  int

	nodes     []*simNode
	scaler    simScaler
	workloads []*simWorkload
	pods      map[types.UID]*simPod
	ranOn     map[types.UID]*simNode // where pods ran that are deleted: a cache that lags still shows them, with the name of their node
	probes    map[string]*shortage.Probe
	events    []simEvent // of pods, not seen by the hub yet

	admit  func(s *simSet, p *simPod) // what the webhook does
	strict bool                       // nothing is lost, refused or late
	hangs  float64                    // chance that a pod takes minutes to end
}

type simNode struct {
	name     string
	capacity capacity.Type
	room     int
	doom     *plan.Doom
	joined   time.Time
	goneAt   time.Time // zero: it is there
	idle     time.Time // since when it is empty
	scaled   bool      // the autoscaler made it, and takes it away
}

type simWorkload struct {
	name     string
	ordinals bool
	replicas int
	size     int // what a pod takes of a node's room
	probed   int // what a probe takes, which may be less: volumes and topology spread are no part of it
	policy   policy.Policy
	settings plan.Settings
	sets     []*simSet // of a Deployment the newest last
	past     []*simSet // sets that want nothing and have nothing, kept to go back to
	budgets  []*simBudget
	ordered  bool // a StatefulSet makes one pod after the other
}

// simSet is a ReplicaSet or a StatefulSet.
type simSet struct {
	*simWorkload
	uid      types.UID
	hash     string
	replicas int
}

// simBudget is a PodDisruptionBudget over all pods of a workload.
type simBudget struct {
	name                   string
	minimum, maximum       int // minAvailable if it is not negative, else maxUnavailable
	percent, always        bool
	allowed, healthy, want int // status
}

// simPod is a pod as the API server has it. Its Doom and Budgets are what a hub adds.
type simPod struct {
	plan.Pod
	set        *simSet
	controller types.UID // empty once its ReplicaSet has let it go
	node       *simNode
	boundAt    time.Time
	readyAt    time.Time
}

func (w *simWorkload) shape() capacity.Requirements {
	return capacity.Requirements{CPU: int64(w.probed)}
}

func newSimCluster(seed uint64) *simCluster {
	return &simCluster{rand: rand.New(rand.NewPCG(seed, 7)), now: spottest.Epoch, pods: map[types.UID]*simPod{}, ranOn: map[types.UID]*simNode{}, probes: map[string]*shortage.Probe{}}
}

func (c *simCluster) addNode(capacityType capacity.Type, room int) *simNode {
	c.serial++
	n := &simNode{name: fmt.Sprintf("%s-%d", capacityType, c.serial), capacity: capacityType, room: room, joined: c.now}
	c.nodes = append(c.nodes, n)
	return n
}

func (c *simCluster) newSet(w *simWorkload, replicas int) *simSet {
	c.serial++
	s := &simSet{simWorkload: w, uid: types.UID(fmt.Sprintf("%s-set-%d", w.name, c.serial)), replicas: replicas}
	if !w.ordinals {
		s.hash = fmt.Sprintf("h%d", c.serial)
	}
	w.sets = append(w.sets, s)
	return s
}

// write tells of a changed pod; the hub's cache selects by the slot label.
func (c *simCluster) write(p *simPod) {
	c.version++
	p.Version = c.version
	p.Owner = p.controller
	if p.Released != nil {
		p.Owner = p.Released.Owner
	}
	c.events = append(c.events, simEvent{at: c.now, pod: p.Pod, gone: p.Slot == plan.NoSlot})
}

func (c *simCluster) remove(p *simPod) {
	delete(c.pods, p.UID)
	c.ranOn[p.UID] = p.node
	c.version++
	p.Version = c.version
	c.events = append(c.events, simEvent{at: c.now, pod: p.Pod, gone: true})
}

// end deletes a pod, with time to end if it runs anywhere.
func (c *simCluster) end(p *simPod) {
	if p.node == nil {
		c.remove(p)
		return
	}
	if p.GoneBy.IsZero() {
		p.GoneBy = c.now.Add(2 * time.Second)
		if !c.strict && c.rand.Float64() < c.hangs {
			p.GoneBy = c.now.Add(time.Minute + time.Duration(c.rand.IntN(600))*time.Second)
		}
		c.write(p)
	}
}

// sorted returns the pods that fulfil a condition, by name.
func (c *simCluster) sorted(want func(p *simPod) bool) []*simPod {
	var pods []*simPod
	for _, p := range c.pods {
		if want(p) {
			pods = append(pods, p)
		}
	}
	slices.SortFunc(pods, func(a, b *simPod) int { return cmp.Compare(a.UID, b.UID) })
	return pods
}

func (c *simCluster) of(w *simWorkload) []*simPod {
	return c.sorted(func(p *simPod) bool { return p.set.simWorkload == w })
}

// active are the pods that a set's controller counts.
func (c *simCluster) active(s *simSet) []*simPod {
	return c.sorted(func(p *simPod) bool { return p.controller == s.uid && p.GoneBy.IsZero() && !p.Finished })
}

// supply counts the pods of a workload that are there and stay.
func (c *simCluster) supply(w *simWorkload) (t capacity.Tally, ready int) {
	for _, p := range c.of(w) {
		if p.GoneBy.IsZero() && !p.Finished && p.Released == nil && (p.node == nil || !(&plan.Pod{Doom: p.node.doom}).Leaving()) {
			t.Add(p.Capacity, 1)
			if p.Ready {
				ready++
			}
		}
	}
	return t, ready
}

// control runs the controllers of a workload once.
func (c *simCluster) control(w *simWorkload) {
	c.rollout(w)
	for _, s := range w.sets {
		for _, p := range c.sorted(func(p *simPod) bool { return p.controller == s.uid && s.hash != "" && p.Hash != s.hash }) {
			p.controller = "" // it does not match the selector any more
			c.write(p)
		}
		active := c.active(s)
		if w.ordinals {
			c.controlOrdinals(s, active)
			continue
		}
		for range s.replicas - len(active) {
			c.create(s, "")
		}
		if over := len(active) - s.replicas; over > 0 {
			slices.SortFunc(active, func(a, b *simPod) int { return plantest.DeletedFirst(&a.Pod, &b.Pod) })
			for _, p := range active[:over] {
				c.end(p)
			}
		}
	}
}

// rollout scales the sets of a Deployment: the newest up by a surge of one, the others down as it gets ready.
func (c *simCluster) rollout(w *simWorkload) {
	newest := w.sets[len(w.sets)-1]
	if len(w.sets) == 1 || w.ordinals {
		newest.replicas = w.replicas
		return
	}
	ready, total := 0, 0
	for _, p := range c.active(newest) {
		if p.Ready {
			ready++
		}
	}
	for _, s := range w.sets {
		total += s.replicas
	}
	newest.replicas = min(w.replicas, max(newest.replicas, ready)+max(w.replicas+1-total, 0))
	old := max(w.replicas-ready, 0)
	for _, s := range w.sets[:len(w.sets)-1] {
		s.replicas = min(s.replicas, old)
		old -= s.replicas
	}
	w.sets = slices.DeleteFunc(w.sets, func(s *simSet) bool {
		if s == newest || s.replicas > 0 || len(c.sorted(func(p *simPod) bool { return p.controller == s.uid })) > 0 {
			return false
		}
		w.past = append(w.past, s)
		return true
	})
}

func (c *simCluster) controlOrdinals(s *simSet, active []*simPod) {
	have, busy := map[int]bool{}, map[int]bool{}
	for _, p := range c.sorted(func(p *simPod) bool { return p.controller == s.uid }) {
		number, _ := phrase.Ordinal(p.Name)
		have[number] = true
		busy[number] = !p.Ready || !p.GoneBy.IsZero()
	}
	for _, p := range active {
		if number, _ := phrase.Ordinal(p.Name); number >= s.replicas {
			c.end(p)
		}
	}
	for number := range s.replicas {
		if !have[number] {
			c.create(s, fmt.Sprintf("%s-%d", s.name, number))
		}
		if s.ordered && (!have[number] || busy[number]) {
			return
		}
	}
}

// create admits a pod and stores it, unless it is refused in between or its answer is lost.
func (c *simCluster) create(s *simSet, name string) {
	c.serial++
	uid := types.UID(fmt.Sprintf("pod-%05d", c.serial))
	if name == "" {
		name = string(uid)
	}
	p := &simPod{set: s, controller: s.uid, Pod: plan.Pod{Name: name, UID: uid, Slot: plan.NoSlot, Hash: s.hash,
		Created: c.now.Truncate(time.Second), UnreadySince: c.now.Truncate(time.Second)}}
	lost := !c.strict && c.rand.Float64() < 0.02
	if !lost {
		c.admit(s, p)
	}
	if !c.strict && c.rand.Float64() < 0.02 {
		return // a quota
	}
	c.pods[uid] = p
	c.write(p)
}

// schedule binds pods to nodes with room for them, in random order, and says of the others that there is none.
func (c *simCluster) schedule() {
	used := map[*simNode]int{}
	for _, p := range c.pods {
		if p.node != nil && !p.Finished {
			used[p.node] += p.set.size
		}
	}
	place := func(capacityType capacity.Type, size int) *simNode {
		for _, at := range c.rand.Perm(len(c.nodes)) {
			n := c.nodes[at]
			if n.goneAt.IsZero() && n.doom == nil && n.room-used[n] >= size && (capacityType == capacity.Unknown || capacityType == n.capacity) {
				return n
			}
		}
		return nil
	}
	waiting := c.sorted(func(p *simPod) bool { return p.node == nil && p.GoneBy.IsZero() && !p.Finished })
	c.rand.Shuffle(len(waiting), func(i, j int) { waiting[i], waiting[j] = waiting[j], waiting[i] })
	for _, p := range waiting {
		if n := place(p.Capacity, p.set.size); n != nil {
			p.node, p.Bound, p.Capacity, p.UnschedulableSince = n, true, n.capacity, time.Time{}
			p.boundAt = c.now.Truncate(time.Second)
			p.readyAt = c.now.Add(time.Duration(c.rand.IntN(4000)) * time.Millisecond)
			used[n] += p.set.size
			c.write(p)
		} else if p.UnschedulableSince.IsZero() {
			p.UnschedulableSince = c.now.Truncate(time.Second)
			c.write(p)
		}
	}
	for _, probe := range c.probes {
		if probe.Gated || !probe.BoundAt.IsZero() {
			continue
		}
		if n := place(probe.Capacity, int(probe.Requirements.CPU)); n != nil {
			probe.BoundAt, probe.NodeJoined = c.now, n.joined
		}
	}
}

// run lets kubelets, the node controllers and the budgets' controller do their work.
func (c *simCluster) run() {
	for _, n := range c.nodes {
		if n.doom != nil && !n.doom.By.IsZero() && n.goneAt.IsZero() && !c.now.Before(n.doom.By) {
			c.lose(n)
		}
	}
	for _, p := range c.sorted(func(p *simPod) bool { return p.node != nil }) {
		lost := !p.node.goneAt.IsZero()
		switch {
		case lost && c.now.Sub(p.node.goneAt) >= 40*time.Second:
			c.remove(p) // the garbage collector
		case lost:
		case !p.GoneBy.IsZero() && !c.now.Before(p.GoneBy):
			c.remove(p)
		case p.Finished:
			if p.controller != "" && (c.strict || p.set.ordinals) {
				c.remove(p) // the garbage collector, or the StatefulSet's controller
			}
		case p.Released != nil && !p.Released.Until.IsZero() && !c.now.Before(p.Released.Until):
			c.fail(p) // activeDeadlineSeconds
		case p.GoneBy.IsZero() && !p.Ready && !c.now.Before(p.readyAt):
			p.Ready = true
			c.write(p)
		}
	}
	for _, w := range c.workloads {
		for _, b := range w.budgets {
			b.count(w.replicas, c.of(w))
		}
	}
}

// fail ends a pod without anybody's asking.
func (c *simCluster) fail(p *simPod) {
	if p.GoneBy.IsZero() && !p.Finished {
		p.Finished, p.Ready = true, false
		c.write(p)
	}
}

// recreate deletes a Deployment and makes it anew: the garbage collector ends the pods of its sets. Released ones are nobody's.
func (c *simCluster) recreate(w *simWorkload) {
	gone := map[types.UID]bool{}
	for _, s := range append(w.sets, w.past...) {
		gone[s.uid] = true
	}
	w.sets, w.past = nil, nil
	for _, p := range c.of(w) {
		if gone[p.controller] {
			c.end(p)
		}
	}
	c.newSet(w, w.replicas)
}

// lose takes a node away without a word: nobody changes its pods before the garbage collector does.
func (c *simCluster) lose(n *simNode) {
	n.goneAt = c.now
	n.doom = &plan.Doom{Node: n.name, Notice: "the node is gone", Since: c.now, Gone: true}
}

func (b *simBudget) count(expected int, pods []*simPod) {
	scaled := func(n int) int {
		if b.percent {
			return (expected*n + 99) / 100
		}
		return n
	}
	b.want = max(expected-scaled(b.maximum), 0)
	if b.minimum >= 0 {
		b.want = scaled(b.minimum)
	}
	b.healthy = 0
	for _, p := range pods {
		if p.Ready && p.GoneBy.IsZero() {
			b.healthy++
		}
	}
	b.allowed = max(b.healthy-b.want, 0)
}

// evict is the Eviction API: it tells whether the pod goes, or was gone.
func (c *simCluster) evict(e plan.Eviction) (done, refused bool) {
	p := c.pods[e.Pod]
	if p == nil || !p.GoneBy.IsZero() {
		return true, false
	}
	if e.Version != 0 && e.Version != p.Version {
		return false, false
	}
	budgets := p.set.budgets
	if p.node != nil && len(budgets) > 1 {
		return false, true
	}
	if p.node != nil && len(budgets) == 1 {
		b := budgets[0]
		unready := !p.Ready && (b.always || (b.healthy >= b.want && b.want > 0))
		if !unready && b.allowed == 0 {
			return false, true
		}
		if !unready {
			b.allowed--
		}
	}
	c.end(p)
	return true, false
}
