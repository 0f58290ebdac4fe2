package sim

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/when"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/shortage"
)

// nodeFacts is what a hub sees of a node.
type nodeFacts struct {
	interruption plan.Interruption
	capacity     capacity.Type
}

// see takes in an event of a pod.
func (h *Hub) see(p plan.Pod) {
	h.cache.set(p)
	marked := h.enrich(p)
	h.accounting(p.Owner).Observe(&marked, h.now)
	h.noteDrought(&marked)
}

// noteDrought takes in a pod that is steered to a capacity type. Its shape never changes, so it is read off the truth.
func (h *Hub) noteDrought(p *plan.Pod) {
	truth := h.pods[p.UID]
	if truth == nil || p.Capacity == capacity.Unknown || !p.Alive() {
		h.droughts.Gone(p.UID)
		return
	}
	s := shortage.Pod{UID: p.UID, Namespace: oneNamespace, Requirements: truth.set.shape(), Timeout: truth.set.pendingTimeout(),
		UnschedulableSince: p.UnschedulableSince, NodeComing: !p.Bound && h.coming(p.Capacity)}
	if p.Bound && truth.node != nil {
		s.BoundAt, s.NodeJoined = truth.boundAt, truth.node.joined
		h.droughts.Started(p.Created, truth.node.joined, truth.node.joined, h.now)
	}
	if truth.set.ordinals {
		s.Replica = replicaOf(p)
	}
	h.droughts.Of(p.Capacity.Other()).Gone(p.UID)
	h.droughts.Observe(p.Capacity, s, h.now)
}

// enrich adds what a hub knows of a pod's node and budgets.
func (h *Hub) enrich(p plan.Pod) plan.Pod {
	node := h.ranOn[p.UID]
	if truth := h.pods[p.UID]; truth != nil {
		node = truth.node
	}
	if node != nil && p.Bound {
		p.Interruption, p.Capacity = node.interruption, node.capacity // labels of nodes may change
	}
	return p
}

// podCache has pods in the order in which they were first seen.
type podCache []*plan.Pod

func (c *podCache) set(p plan.Pod) {
	if at := slices.IndexFunc(*c, func(is *plan.Pod) bool { return is.UID == p.UID }); at >= 0 {
		*(*c)[at] = p
		return
	}
	*c = append(*c, &p)
}

func (c *podCache) remove(uid types.UID) {
	*c = slices.DeleteFunc(*c, func(is *plan.Pod) bool { return is.UID == uid })
}

// replicaOf names an ordinal of a StatefulSet.
func replicaOf(p *plan.Pod) string { return string(p.Owner) + "/" + p.Name }

// joined reports nodes that the autoscaler has brought.
func (h *Hub) joined(nodes []*Node) {
	for _, n := range nodes {
		h.droughts.NodeJoined(n.capacity, h.now)
	}
}

// noticeNodes takes in what is new of nodes, and how long the pods wait that have none.
func (h *Hub) noticeNodes() {
	news := false
	for _, n := range h.nodes {
		is := nodeFacts{capacity: n.capacity}
		if n.interruption != nil {
			is.interruption = *n.interruption
		}
		news = news || h.nodesAs[n] != is
		h.nodesAs[n] = is
	}
	if news {
		h.interrupted()
		return
	}
	for _, p := range h.cache {
		if !p.Bound {
			h.noteDrought(p)
		}
	}
}

// interrupted takes in news of nodes.
func (h *Hub) interrupted() {
	for _, p := range h.cache {
		h.see(*p)
	}
}

// sources are the sets whose pods a plan looks at: those that have or want any, and those of which released pods are left.
func (h *Hub) sources(w *Workload) []*Set {
	sets := slices.Clone(w.sets)
	for _, s := range w.past {
		if o := h.owners[s.uid]; o != nil && o.slots.Known() > 0 {
			sets = append(sets, s)
		}
	}
	return sets
}

func (h *Hub) observed(w *Workload) plan.Observed {
	o := plan.Observed{Ordinals: w.ordinals, Replicas: w.replicas, Rolling: len(w.sets) > 1}
	if n, late := h.sizes[w.sets[len(w.sets)-1]]; late {
		o.Replicas = n
	}
	var selected []int
	for i, b := range w.budgets {
		o.Budgets = append(o.Budgets, plan.Budget{Name: b.name, Allowed: b.allowed, Healthy: b.healthy >= b.want && b.want > 0, UnhealthyAlways: b.always})
		selected = append(selected, i)
	}
	sets := h.sources(w)
	for _, s := range sets {
		o.Pods = append(o.Pods, h.cached(s.uid)...)
		a := h.accounting(s.uid)
		owner := plan.Owner{UID: s.uid, Name: string(s.uid), Replicas: h.known(s), Accounting: a.Summary(h.known(s), h.now)}
		owner.DrySince, owner.OnDemandDrySince = h.droughts.Since(capacity.Spot, w.shape(), oneNamespace), h.droughts.Since(capacity.OnDemand, w.shape(), oneNamespace)
		owner.SpotProbing, owner.OnDemandProbing = h.droughts.Probing(w.shape(), oneNamespace)
		o.LastMove = when.Later(o.LastMove, a.LastMove())
		o.Owners = append(o.Owners, owner)
	}
	for i, s := range sets {
		o.Pods = append(o.Pods, plan.WithoutKnown(h.unlabelled(s, o.Pods, len(o.Owners[i].Accounting.Reserved)), o.Pods)...)
	}
	for i := range o.Pods {
		pod := &o.Pods[i]
		pod.Budgets = selected
		if pod.Capacity != capacity.Unknown {
			pod.NodeComing = h.droughts.NodeComing(pod.Capacity, pod.UID, h.now)
			if w.ordinals {
				pod.TriedUntil = h.droughts.Tried(pod.Capacity, replicaOf(pod), pod.TriedUntil, h.now)
			}
		}
	}
	slices.SortFunc(o.Pods, func(a, b plan.Pod) int { return plan.ByAge(&a, &b) })
	h.rand.Shuffle(len(o.Pods), func(i, j int) { o.Pods[i], o.Pods[j] = o.Pods[j], o.Pods[i] })
	return o
}

// cached returns the pods of an owner that the cache shows, with what is known beyond it.
func (h *Hub) cached(uid types.UID) []plan.Pod {
	var pods []plan.Pod
	a := h.accounting(uid)
	for _, is := range h.cache {
		if is.Owner == uid {
			p := h.enrich(*is)
			a.Observe(&p, h.now)
			a.Mark(&p)
			pods = append(pods, p)
		}
	}
	return pods
}

// unlabelled finds pods of a set without a slot as production does: by the set's status, and by live lists at times.
func (h *Hub) unlabelled(s *Set, known []plan.Pod, reserved int) []plan.Pod {
	o := h.owner(s.uid)
	visible := 0
	for i := range known {
		if p := &known[i]; p.Owner == s.uid && p.Released == nil && p.Counted(s.ordinals) {
			visible++
		}
	}
	active := h.sorted(func(p *Pod) bool { return p.controller == s.uid && p.Counted(s.ordinals) })
	if search, _ := o.search.Wanted(len(active), visible+reserved, h.now); search {
		found := []plan.Pod{}
		for _, p := range active {
			if p.Slot == plan.NoSlot && p.Alive() && h.rand.Float64() >= h.blind {
				found = append(found, p.Pod)
			}
		}
		o.search.Keep(found, h.now)
	}
	pods := []plan.Pod{}
	for i := range o.search.Found() {
		pods = append(pods, h.enrich(o.search.Found()[i]))
	}
	return pods
}
