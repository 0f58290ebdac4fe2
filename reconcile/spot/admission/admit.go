package admission

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/slots"
)

// Incoming is what an admission request shows of a pod that is being created, as far as placement looks at it.
type Incoming struct {
	// Labels and Annotations hold at least what [Patcher.Reads] names; MoreLabels and MoreAnnotations say that the pod has others,
	// too. NodeSelector is whole.
	Labels, Annotations, NodeSelector map[string]string
	MoreLabels, MoreAnnotations       bool
	// Affinity and NodeAffinity say that spec.affinity is there, and nodeAffinity in it, whatever is in them.
	Affinity, NodeAffinity bool
	// Required is the pod's required node affinity; nil: none.
	Required *corev1.NodeSelector
	// Tolerations that the pod has already.
	Tolerations []corev1.Toleration
	// Spreads are the pod's topology spread constraints.
	Spreads []Spread
	// Together are the topology keys over which pods of both capacity types are to be spread together; see [plan.Spread].
	Together []string
	// ReplicaSet is true where the pod's owner is one, or shrinks like one: by the deletion costs of its pods.
	ReplicaSet bool
	// TriedSpot and TriedOnDemand are when the pod's ordinal was last moved to the type and found no node; zero: it was not. See
	// [shortage.Tracker.Tried].
	TriedSpot, TriedOnDemand time.Time
	// Floor is how many slots the on-demand floor of the pod's workload takes; see [policy.Mix.Cost].
	Floor int
}

// Patcher writes the JSON patch that puts a new pod on its slot. It is safe for concurrent use.
type Patcher struct {
	tolerations []capacity.Toleration

	slotKey, reservationKey, movedKey, triedKey               string
	slotPath, reservationPath, movedPath, triedPath, costPath string // JSON pointers
}

// NewPatcher creates a patcher. Pods that are sent to spot capacity also get the tolerations.
func NewPatcher(keys policy.Keys, spotTolerations []corev1.Toleration) *Patcher {
	p := &Patcher{
		slotKey: keys.Slot(), reservationKey: keys.Reservation(), movedKey: keys.Moved(), triedKey: keys.Tried(),
		slotPath:        "/metadata/labels/" + capacity.PointerToken(keys.Slot()),
		reservationPath: "/metadata/annotations/" + capacity.PointerToken(keys.Reservation()),
		movedPath:       "/metadata/annotations/" + capacity.PointerToken(keys.Moved()),
		triedPath:       "/metadata/annotations/" + capacity.PointerToken(keys.Tried()),
		costPath:        "/metadata/annotations/" + capacity.PointerToken(policy.DeletionCost),
	}
	for _, t := range spotTolerations {
		p.tolerations = append(p.tolerations, capacity.NewToleration(t))
	}
	return p
}

// Reads reports whether a pod's label or annotation with that key is looked at.
func (p *Patcher) Reads(key []byte) bool {
	switch string(key) {
	case p.slotKey, p.reservationKey, p.movedKey, p.triedKey, policy.DeletionCost:
		return true
	}
	return false
}

// Admit decides where a new pod goes and appends the JSON patch that sends it there to dst; it appends nothing when the pod
// is as it should be, or the answer is a doubt.
//
// A pod that carries a live assignment of ours was here before (reinvocation, because a later webhook changed it): it keeps its
// slot, and what was undone is done again. An assignment of any other origin, copied into a template for example, is replaced.
func (p *Patcher) Admit(dst []byte, in *Incoming, s *capacity.Steering, a *slots.Accounting, ask slots.Ask, now time.Time) ([]byte, slots.Answer) {
	if id := in.Annotations[p.reservationKey]; id != "" {
		if r, ok := a.Live(id); ok && in.Labels[p.slotKey] == strconv.Itoa(r.Slot) {
			return p.AppendPatch(dst, in, s, r), slots.Answer{Reservation: r, Reused: true, Reason: slots.ReasonRepeated}
		}
	}
	answer := a.Reserve(ask, now)
	if answer.Doubt != slots.DoubtNone {
		return dst, answer
	}
	return p.AppendPatch(dst, in, s, answer.Reservation), answer
}

// AppendPatch appends the JSON patch that gives a pod the slot and capacity type of a reservation, nothing if it has them.
// Of the pod's own, only what contradicts is overridden: its value of the node label that steers, other node labels of
// capacity with the other type or that no node of the member carries, and required affinities that allow the other type alone.
func (p *Patcher) AppendPatch(dst []byte, in *Incoming, s *capacity.Steering, r plan.Reservation) []byte {
	ops := patch{b: dst, start: len(dst)}
	p.assign(&ops, in, r)
	if r.Capacity != capacity.Unknown {
		p.steer(&ops, in, s, r.Capacity)
		spreadTogether(&ops, in)
	}
	if r.Capacity == capacity.Spot {
		p.tolerate(&ops, in.Tolerations, s)
	}
	return ops.done()
}

// assign sets the slot, the reservation and what goes with them.
func (p *Patcher) assign(ops *patch, in *Incoming, r plan.Reservation) {
	slot := strconv.Itoa(r.Slot)
	switch {
	case r.Slot < 0: // an ordinal below the first one that is known; it is assigned when more is known
	case len(in.Labels) == 0 && !in.MoreLabels:
		ops.addMap("/metadata/labels", p.slotKey, slot)
	case in.Labels[p.slotKey] != slot:
		ops.add(p.slotPath, slot)
	}
	cost := ""
	if in.ReplicaSet && r.Capacity != capacity.Unknown && (in.Annotations[policy.DeletionCost] == "" || p.copiedCost(in)) {
		cost = policy.Mix{Floor: in.Floor}.Cost(r.Slot)
	}
	moved, tried := "", in.tried(r.Capacity)
	if r.Moved {
		moved = policy.MovedValue
	}
	if len(in.Annotations) == 0 && !in.MoreAnnotations {
		ops.addMap("/metadata/annotations", p.reservationKey, r.ID, policy.DeletionCost, cost, p.movedKey, moved, p.triedKey, tried)
		return
	}
	if in.Annotations[p.reservationKey] != r.ID {
		ops.add(p.reservationPath, r.ID)
	}
	if cost != "" && in.Annotations[policy.DeletionCost] != cost {
		ops.add(p.costPath, cost)
	}
	ops.set(in.Annotations, p.movedKey, p.movedPath, moved)
	ops.set(in.Annotations, p.triedKey, p.triedPath, tried)
}

// tried is the value of the annotation on a pod that goes to a capacity type, for the time at which its ordinal found no node of the
// other; empty: none.
func (in *Incoming) tried(capacityType capacity.Type) string {
	var at time.Time
	switch capacityType {
	case capacity.Spot:
		at = in.TriedOnDemand
	case capacity.OnDemand:
		at = in.TriedSpot
	}
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

// copiedCost reports whether the deletion cost is part of an assignment: then it is not the user's own.
func (p *Patcher) copiedCost(in *Incoming) bool {
	own := policy.ParseCost(in.Annotations[policy.DeletionCost]).Own(plan.ParseSlot(in.Labels[p.slotKey]))
	return own
}

// steer sends the pod to a capacity type.
func (p *Patcher) steer(ops *patch, in *Incoming, s *capacity.Steering, capacityType capacity.Type) {
	w := s.Direction(capacityType)
	switch {
	case w.Key == "":
	case len(in.NodeSelector) == 0:
		ops.addMap("/spec/nodeSelector", w.Key, w.Value)
	case in.NodeSelector[w.Key] != w.Value:
		ops.add(w.Path, w.Value)
	}
	for i := range s.Labels.NodeLabels {
		label := &s.Labels.NodeLabels[i]
		value, has := in.NodeSelector[label.Key]
		if has && label.Key != w.Key && (s.Foreign(label.Key) || label.Of(value) == capacityType.Other()) {
			ops.remove("/spec/nodeSelector/" + capacity.PointerToken(label.Key))
		}
	}
	p.steerAffinity(ops, in, s, capacityType)
}

const (
	affinityPath     = "/spec/affinity"
	nodeAffinityPath = affinityPath + "/nodeAffinity"
	requiredPath     = nodeAffinityPath + "/requiredDuringSchedulingIgnoredDuringExecution"
)

// steerAffinity makes the required node affinity that sends the pod to a capacity type, of which only a pod that has one of
// its own costs an allocation. Terms are alternatives; none at all is no valid affinity, and left for the API server to refuse.
func (p *Patcher) steerAffinity(ops *patch, in *Incoming, s *capacity.Steering, capacityType capacity.Type) {
	w := s.Direction(capacityType)
	switch {
	case in.Required != nil && len(in.Required.NodeSelectorTerms) > 0:
		terms, changed := s.Terms(in.Required.NodeSelectorTerms, capacityType)
		switch {
		case !changed:
		case len(terms) == 0:
			ops.remove(requiredPath)
		default:
			ops.addRaw(requiredPath, capacity.JSONOf(corev1.NodeSelector{NodeSelectorTerms: terms}))
		}
	case in.Required != nil || len(w.Terms) == 0:
	case in.NodeAffinity:
		ops.addRaw(requiredPath, w.Required)
	case in.Affinity:
		ops.addRaw(nodeAffinityPath, w.NodeAffinity)
	default:
		ops.addRaw(affinityPath, w.Affinity)
	}
}

// tolerate adds the tolerations that the pod does not have: the configured ones, and those that the steering asks for.
func (p *Patcher) tolerate(ops *patch, has []corev1.Toleration, s *capacity.Steering) {
	list := len(has) > 0
	for _, wanted := range [...][]capacity.Toleration{p.tolerations, s.Spot.Tolerations} {
		for i := range wanted {
			t := &wanted[i]
			switch {
			case capacity.Tolerated(has, &t.Toleration):
			case list:
				ops.addRaw("/spec/tolerations/-", t.JSON)
			default:
				ops.addRaw("/spec/tolerations", t.List)
				list = true
			}
		}
	}
}
