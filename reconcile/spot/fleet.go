package spot

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/when"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// splits are those of all members. The zero value has none. It is safe for concurrent use.
type splits struct {
	mu      sync.RWMutex
	members map[string]map[policy.WorkloadKey]policy.FleetSplit
	runtime *reconcile.Runtime // wakes the workloads; nil until [Engine.Controllers]
}

// wakes says who looks at workloads again.
func (s *splits) wakes(rt *reconcile.Runtime) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runtime = rt
}

func (s *splits) of(member string, key policy.WorkloadKey) *policy.FleetSplit {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if split, ok := s.members[member][key]; ok {
		return &split
	}
	return nil
}

// set stores the splits of a member, and returns the workloads for which they have changed.
func (s *splits) set(member string, now map[policy.WorkloadKey]policy.FleetSplit) (changed []policy.WorkloadKey, wake *reconcile.Runtime) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.members[member]
	for key, split := range now {
		if was, there := before[key]; !there || was != split {
			changed = append(changed, key)
		}
	}
	for key := range before {
		if _, stays := now[key]; !stays {
			changed = append(changed, key)
		}
	}
	if s.members == nil {
		s.members = map[string]map[policy.WorkloadKey]policy.FleetSplit{}
	}
	if len(now) == 0 {
		delete(s.members, member)
	} else {
		s.members[member] = maps.Clone(now)
	}
	return changed, s.runtime
}

// SetFleetSplits says what fleet placements want of workloads in a member: of all that are named, and of no others. Workloads for which
// that has changed are looked at again.
func (e *Engine) SetFleetSplits(member string, now map[policy.WorkloadKey]policy.FleetSplit) {
	changed, wake := e.splits.set(member, now)
	if len(changed) == 0 {
		return
	}
	if dir := e.directory(member); dir != nil {
		dir.readPolicies(changed)
	}
	for _, key := range changed {
		e.wake(wake, member, key)
	}
}

// wake has a workload looked at. A member that is not engaged, or a workload that is not there, is looked at when it is.
func (e *Engine) wake(rt *reconcile.Runtime, member string, key policy.WorkloadKey) {
	if controller, known := e.Controller(key.Kind); known && rt != nil {
		_, _ = rt.RequeueFor(reconcile.Key{Controller: controller, Member: member, NamespacedName: key.NamespacedName}, "fleet")
	}
}

// Revisit has a workload of a member looked at again, for whoever needs to know how it is now.
func (e *Engine) Revisit(member string, key policy.WorkloadKey) {
	e.splits.mu.RLock()
	rt := e.splits.runtime
	e.splits.mu.RUnlock()
	e.wake(rt, member, key)
}

// readPolicies reads the policies of workloads again.
func (d *directory) readPolicies(keys []policy.WorkloadKey) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, key := range keys {
		if w := d.workloads[key]; w != nil {
			d.setPolicyLocked(w)
		}
	}
}

// FleetCount counts pods of one capacity type.
type FleetCount struct {
	Ready int
	// Starting have a node, or nothing says that they get none.
	Starting int
	// Waiting have none, and their capacity type is dry.
	Waiting int
	// Leaving run, and are no supply any more. Lost of them are because their nodes go.
	Leaving, Lost int
}

// FleetState is how far a replica is.
type FleetState uint8

// The states, in the order in which replicas get through them. FleetGone is about to go, or has gone, and is made again if the
// workload is to have it.
const (
	FleetGone FleetState = iota
	FleetWaiting
	FleetStarting
	FleetReady
)

// FleetOrdinal is a pod of a StatefulSet.
type FleetOrdinal struct {
	// Number counts from the first ordinal on, which is 0 whatever its name says.
	Number   int
	OnDemand bool
	State    FleetState
}

// FleetView is what a member shows of a workload, for those who decide about its split.
type FleetView struct {
	// At is when the pods were looked at.
	At time.Time
	// Replicas that its spec asks for.
	Replicas       int
	Spot, OnDemand FleetCount
	// DrySince is since when a type has been dry for the pods; zero: it is not.
	SpotDrySince, OnDemandDrySince time.Time
	// SpotUnboundSince is since when the oldest pod on spot waits for a node of which there is no sign; zero: none does.
	SpotUnboundSince time.Time
	// SpotProbing says that a probe found room on spot after a drought, and no replica has yet.
	SpotProbing bool
	// NodeStart is how long nodes were seen to take, and PodStart how long pods take from then on until they are ready; zero: none was
	// seen.
	NodeStart, PodStart time.Duration
	// Requirements is the scheduling requirements of its pods as text; empty: they are not known. Equal ones have equal texts.
	Requirements string
	// Split is the one that the last plan was made under; nil: none.
	Split *policy.FleetSplit
	// Settled says that the pods have the slots of that split, or may not get them: when the workload shrinks, those go that
	// should.
	Settled bool
	// Ordinals are the pods of a StatefulSet, the highest number first: those go first when it shrinks. Nil: it is none.
	Ordinals []FleetOrdinal
	// Rolling says that the workload's controller is not at rest.
	Rolling bool
	// Paused and ReadOnly say that nothing of it is to be moved.
	Paused, ReadOnly bool
}

// FleetView returns what the last plan of a workload was made from; false: it is not enabled there, or not planned yet.
func (e *Engine) FleetView(member string, key policy.WorkloadKey) (FleetView, bool) {
	dir := e.directory(member)
	if dir == nil {
		return FleetView{}, false
	}
	if _, enabled := dir.view(key); !enabled {
		return FleetView{}, false
	}
	last, known := dir.journal.LastPlan(key)
	if !known {
		return FleetView{}, false
	}
	v := ViewOf(&last.Observed)
	v.At, v.Split, v.Paused, v.ReadOnly = last.At, last.Policy.Fleet, last.Settings.Paused, last.Settings.ReadOnly
	v.Settled, v.NodeStart = len(last.Plan.Assignments) == 0 || last.Plan.WaitsFor(plan.WaitRefused), dir.droughts.StartTime(time.Now())
	if w, there := dir.replicasOf(key); there {
		v.Settled = v.Settled && w == v.Replicas // the plan is of an older spec
		v.Replicas = w
	}
	most := -1
	for i := range last.Observed.Owners {
		o := &last.Observed.Owners[i]
		if text := dir.shapeText(ownerKey{key.Namespace, o.UID}); text != "" && o.Replicas > most {
			v.Requirements, most = text, o.Replicas
		}
	}
	return v, true
}

// ViewOf is what a view says that follows from pods and owners alone.
func ViewOf(o *plan.Observed) FleetView {
	v := FleetView{Replicas: o.Replicas, Rolling: o.Rolling, PodStart: podStart(o.Pods)}
	start := 0
	for i := range o.Owners {
		owner := &o.Owners[i]
		v.SpotDrySince, v.OnDemandDrySince = when.Earlier(v.SpotDrySince, owner.DrySince), when.Earlier(v.OnDemandDrySince, owner.OnDemandDrySince)
		v.SpotProbing = v.SpotProbing || owner.SpotProbing
		start = owner.Start
	}
	if o.Ordinals {
		v.Ordinals = make([]FleetOrdinal, 0, len(o.Pods))
	}
	for i := range o.Pods {
		pod := &o.Pods[i]
		state := v.add(pod)
		if number, ok := phrase.Ordinal(pod.Name); ok && o.Ordinals && number >= start {
			v.Ordinals = append(v.Ordinals, FleetOrdinal{Number: number - start, OnDemand: pod.Capacity == capacity.OnDemand, State: state})
		}
	}
	slices.SortFunc(v.Ordinals, func(a, b FleetOrdinal) int {
		return cmp.Or(cmp.Compare(b.Number, a.Number), cmp.Compare(b.State, a.State))
	})
	return v
}

// longestStart bounds what counts as a start: a pod that became ready later has been so before, and was not for a while.
const longestStart = 30 * time.Minute

// podStart is how long pods take to be ready once there are a pod and its node: the median, for some become ready a second time.
func podStart(pods []plan.Pod) time.Duration {
	var took []time.Duration
	for i := range pods {
		pod := &pods[i]
		if d := pod.UnreadySince.Sub(when.Later(pod.Created, pod.NodeJoined)); pod.Ready && d >= 0 && d <= longestStart {
			took = append(took, d)
		}
	}
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// add counts a pod, once the view says which types are dry. One of unknown type counts as spot: it is not one of the floor.
func (v *FleetView) add(pod *plan.Pod) (state FleetState) {
	c, dry := &v.Spot, !v.SpotDrySince.IsZero()
	if pod.Capacity == capacity.OnDemand {
		c, dry = &v.OnDemand, !v.OnDemandDrySince.IsZero()
	}
	switch {
	case pod.Finished:
	case !pod.Supply():
		c.Leaving++
		if pod.Leaving() {
			c.Lost++
		}
	case pod.Ready:
		c.Ready++
		state = FleetReady
	case pod.Bound || pod.NodeComing || !dry:
		c.Starting++
		state = FleetStarting
	default:
		c.Waiting++
		state = FleetWaiting
	}
	if c == &v.Spot && !pod.Finished && pod.Supply() && !pod.Bound && !pod.NodeComing {
		v.SpotUnboundSince = when.Earlier(v.SpotUnboundSince, pod.Created)
	}
	return state
}

// shapeText returns the shape that an owner's template has, as text; empty: it is not known.
func (d *directory) shapeText(key ownerKey) string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if o := d.owners[key]; o != nil && o.template != nil {
		return o.template.shape
	}
	return ""
}

// replicasOf returns how many replicas a workload's spec asks for.
func (d *directory) replicasOf(key policy.WorkloadKey) (int, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if w := d.workloads[key]; w != nil {
		return w.replicas, true
	}
	return 0, false
}
