package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/shortage"
)

// Event is what an informer shows of a pod, or of the size of a set.
type Event struct {
	at   time.Time
	pod  plan.Pod
	gone bool
	set  *Set // nil: it is about the pod
	size int  // of the set
}

// Cluster is a model of one member: nodes, a scheduler, kubelets, the controllers of workloads and of disruption budgets,
// and the Eviction API. It is the truth; what a hub knows of it comes later, see Hub. Randomness comes from a seed.
type Cluster struct {
	rand    *rand.Rand
	now     time.Time
	version uint64
	serial  int

	nodes     []*Node
	scaler    Scaler
	workloads []*Workload
	pods      map[types.UID]*Pod
	ordered   []*Pod              // the same, in the order in which they were stored
	ranOn     map[types.UID]*Node // where pods ran that are deleted: a cache that lags still shows them, with the name of their node
	killed    map[types.UID]bool  // by somebody else than the hub
	probes    map[string]*shortage.Probe
	events    []Event // of pods, not seen by the hub yet

	admit    func(s *Set, p *Pod) // what the webhook does
	strict   bool                 // nothing is lost, refused or late
	orderly  bool                 // everything happens in the same order: two runs that differ in one thing can be compared
	hangs    float64              // chance that a pod takes minutes to end
	grace    time.Duration        // that a pod takes to end otherwise; 0: it is gone at once
	loses    float64              // chance that the answer to an admission is lost, and the pod let through as it is
	rejects  float64              // chance that a pod is refused after its admission, by a quota for instance
	denies   float64              // chance that an eviction is refused whatever the budgets
	late     bool                 // pods take a time from their admission until they are stored
	inFlight []*Pod               // admitted, and not stored yet
	// refuses reports whether a node does not take a pod for a reason that probes do not find, such as its volume; nil: none does.
	refuses func(p *Pod, n *Node) bool
}

// Node is a node, which an autoscaler may make and take away.
type Node struct {
	name         string
	capacity     capacity.Type
	room         int
	interruption *plan.Interruption
	joined       time.Time
	goneAt       time.Time // zero: it is there
	idle         time.Time // since when it is empty
	scaled       bool      // the autoscaler made it, and takes it away
}

// Workload is a Deployment or a StatefulSet with its pods.
type Workload struct {
	name     string
	ordinals bool
	replicas int
	size     int      // what a pod takes of a node's room
	probed   int      // what a probe takes, which may be less: volumes and topology spread are no part of it
	needs    []string // constraints of its pods that a probe of it does not have
	policy   policy.Policy
	settings plan.Settings
	sets     []*Set // of a Deployment the newest last
	past     []*Set // sets that want nothing and have nothing, kept to go back to
	budgets  []*Budget
	oneByOne bool // a StatefulSet makes one pod after the other
}

// Set is a ReplicaSet or a StatefulSet.
type Set struct {
	*Workload
	uid      types.UID
	hash     string
	replicas int
}

// Pod is a pod as the API server has it. Its Interruption and Budgets are what a hub adds.
type Pod struct {
	plan.Pod
	set        *Set
	admitted   time.Time
	controller types.UID // empty once its ReplicaSet has let it go
	node       *Node
	boundAt    time.Time
	readyAt    time.Time
}

func (w *Workload) shape() capacity.Requirements {
	return capacity.Requirements{CPU: int64(w.probed), Constraints: w.needs}
}

// pendingTimeout is how long a pod may be unschedulable until capacity counts as insufficient for it: a minute, as a hub has it by default,
// unless the workload has another.
func (w *Workload) pendingTimeout() time.Duration {
	return cmp.Or(w.settings.PendingTimeout, time.Minute)
}

func newCluster(seed uint64) *Cluster {
	return &Cluster{rand: rand.New(rand.NewPCG(seed, 7)), now: spottest.Epoch, grace: 2 * time.Second, loses: 0.02, rejects: 0.02, pods: map[types.UID]*Pod{}, ranOn: map[types.UID]*Node{}, killed: map[types.UID]bool{}, probes: map[string]*shortage.Probe{}}
}

func (c *Cluster) addNode(capacityType capacity.Type, room int) *Node {
	c.serial++
	n := &Node{name: fmt.Sprintf("%s-%d", capacityType, c.serial), capacity: capacityType, room: room, joined: c.now}
	c.nodes = append(c.nodes, n)
	return n
}

func (c *Cluster) newSet(w *Workload, replicas int) *Set {
	c.serial++
	s := &Set{Workload: w, uid: types.UID(fmt.Sprintf("%s-set-%d", w.name, c.serial)), replicas: replicas}
	if !w.ordinals {
		s.hash = fmt.Sprintf("h%d", c.serial)
	}
	w.sets = append(w.sets, s)
	return s
}

// write reports a changed pod; the hub's cache selects by the slot label.
func (c *Cluster) write(p *Pod) {
	c.version++
	p.Version = c.version
	p.Owner = p.controller
	if p.Released != nil {
		p.Owner = p.Released.Owner
	}
	c.events = append(c.events, Event{at: c.now, pod: p.Pod, gone: p.Slot == plan.NoSlot})
}

func (c *Cluster) remove(p *Pod) {
	delete(c.pods, p.UID)
	c.ordered = slices.DeleteFunc(c.ordered, func(other *Pod) bool { return other == p })
	c.ranOn[p.UID] = p.node
	c.version++
	p.Version = c.version
	c.events = append(c.events, Event{at: c.now, pod: p.Pod, gone: true})
}

// end deletes a pod, with time to end if it runs anywhere.
func (c *Cluster) end(p *Pod) {
	if p.node == nil || c.grace == 0 {
		c.remove(p)
		return
	}
	if p.GoneBy.IsZero() {
		p.GoneBy = c.now.Add(c.grace)
		if !c.strict && c.rand.Float64() < c.hangs {
			p.GoneBy = c.now.Add(time.Minute + time.Duration(c.rand.IntN(600))*time.Second)
		}
		c.write(p)
	}
}

// perm is an order of n things: a random one, unless the cluster is orderly.
func (c *Cluster) perm(n int) []int {
	if !c.orderly {
		return c.rand.Perm(n)
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

// sorted returns the pods that fulfil a condition, in the order in which they were stored.
func (c *Cluster) sorted(want func(p *Pod) bool) []*Pod {
	var pods []*Pod
	for _, p := range c.ordered {
		if want(p) {
			pods = append(pods, p)
		}
	}
	return pods
}

func (c *Cluster) of(w *Workload) []*Pod {
	return c.sorted(func(p *Pod) bool { return p.set.Workload == w })
}

// active are the pods that a set's controller counts.
func (c *Cluster) active(s *Set) []*Pod {
	return c.sorted(func(p *Pod) bool { return p.controller == s.uid && p.GoneBy.IsZero() && !p.Finished })
}

// supply counts the pods of a workload that are there and stay.
func (c *Cluster) supply(w *Workload) (t capacity.Tally, ready int) {
	for _, p := range c.of(w) {
		if p.GoneBy.IsZero() && !p.Finished && p.Released == nil && (p.node == nil || !(&plan.Pod{Interruption: p.node.interruption}).Leaving()) {
			t.Add(p.Capacity, 1)
			if p.Ready {
				ready++
			}
		}
	}
	return t, ready
}
