package spot

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Incoming is what an admission request shows of a pod that is being created, as far as placement looks at it.
type Incoming struct {
	// Labels and Annotations hold at least what [Patcher.Reads] tells; MoreLabels and MoreAnnotations say that the pod has others,
	// too. NodeSelector is whole.
	Labels, Annotations, NodeSelector map[string]string
	MoreLabels, MoreAnnotations       bool
	// Required is the pod's required node affinity; nil: none.
	Required *corev1.NodeSelector
	// Tolerations that the pod has already.
	Tolerations []corev1.Toleration
	// ReplicaSet is true where the pod's owner is one, or shrinks like one: by the deletion costs of its pods.
	ReplicaSet bool
	// Floor is how many slots the on-demand floor of the pod's workload takes; see [Mix.Cost].
	Floor int
}

// Patcher writes the JSON patch that puts a new pod on its slot. It is safe for concurrent use.
type Patcher struct {
	capacity    CapacityLabels
	tolerations []toleration

	slotKey, reservationKey, movedKey              string
	slotPath, reservationPath, movedPath, costPath string // JSON pointers
	steerPath                                      string
}

type toleration struct {
	corev1.Toleration
	json string
}

// NewPatcher makes a patcher. Pods that are sent to spot capacity also get the tolerations.
func NewPatcher(keys Keys, capacity CapacityLabels, spotTolerations []corev1.Toleration) (*Patcher, error) {
	steer, _ := capacity.Steer(Spot)
	p := &Patcher{capacity: capacity,
		slotKey: keys.Slot(), reservationKey: keys.Reservation(), movedKey: keys.Moved(),
		slotPath:        "/metadata/labels/" + pointer(keys.Slot()),
		reservationPath: "/metadata/annotations/" + pointer(keys.Reservation()),
		movedPath:       "/metadata/annotations/" + pointer(keys.Moved()),
		costPath:        "/metadata/annotations/" + pointer(DeletionCost),
		steerPath:       "/spec/nodeSelector/" + pointer(steer),
	}
	for _, t := range spotTolerations {
		text, err := json.Marshal(t)
		if err != nil {
			return nil, fmt.Errorf("spot toleration of %q: %w", shorten(t.Key), err)
		}
		p.tolerations = append(p.tolerations, toleration{t, string(text)})
	}
	return p, nil
}

// Reads tells whether a pod's label or annotation with that key is looked at.
func (p *Patcher) Reads(key []byte) bool {
	switch string(key) {
	case p.slotKey, p.reservationKey, p.movedKey, DeletionCost:
		return true
	}
	return false
}

// Admit decides where a new pod goes and appends the JSON patch that sends it there to dst; it appends nothing when the pod
// is as it should be, or the answer is a doubt.
//
// A pod that carries a live stamp of ours was here before (reinvocation, because a later webhook changed it): it keeps its
// slot, and what was undone is done again. A stamp of any other origin, copied into a template for example, is replaced.
func (p *Patcher) Admit(dst []byte, in *Incoming, a *Accounting, ask Ask, now time.Time) ([]byte, Answer) {
	if id := in.Annotations[p.reservationKey]; id != "" {
		if r, ok := a.Live(id); ok && in.Labels[p.slotKey] == strconv.Itoa(r.Slot) {
			return p.AppendPatch(dst, in, r), Answer{Reservation: r, Reused: true, Reason: reasonRepeated}
		}
	}
	answer := a.Reserve(ask, now)
	if answer.Doubt != DoubtNone {
		return dst, answer
	}
	return p.AppendPatch(dst, in, answer.Reservation), answer
}

// AppendPatch appends the JSON patch that gives a pod the slot and capacity type of a reservation, nothing if it has them.
// Of the pod's own, only what contradicts is overridden: its value of the node label that steers, other node labels of
// capacity with the other type, and required affinities that allow the other type alone.
func (p *Patcher) AppendPatch(dst []byte, in *Incoming, r Reservation) []byte {
	ops := patch{b: dst, start: len(dst)}
	p.stamp(&ops, in, r)
	if r.Capacity != Unknown {
		p.steer(&ops, in, r.Capacity)
	}
	if r.Capacity == Spot {
		p.tolerate(&ops, in.Tolerations)
	}
	return ops.done()
}

// stamp sets the slot, the reservation and what goes with them.
func (p *Patcher) stamp(ops *patch, in *Incoming, r Reservation) {
	slot := strconv.Itoa(r.Slot)
	switch {
	case r.Slot < 0: // an ordinal below the first one that is known; it is stamped when more is known
	case len(in.Labels) == 0 && !in.MoreLabels:
		ops.addMap("/metadata/labels", p.slotKey, slot)
	case in.Labels[p.slotKey] != slot:
		ops.add(p.slotPath, slot)
	}
	cost := ""
	if in.ReplicaSet && r.Capacity != Unknown && (in.Annotations[DeletionCost] == "" || p.copiedCost(in)) {
		cost = Mix{Floor: in.Floor}.Cost(r.Slot)
	}
	moved := ""
	if r.Moved {
		moved = movedValue
	}
	if len(in.Annotations) == 0 && !in.MoreAnnotations {
		ops.addMap("/metadata/annotations", p.reservationKey, r.ID, DeletionCost, cost, p.movedKey, moved)
		return
	}
	if in.Annotations[p.reservationKey] != r.ID {
		ops.add(p.reservationPath, r.ID)
	}
	if cost != "" && in.Annotations[DeletionCost] != cost {
		ops.add(p.costPath, cost)
	}
	if old, has := in.Annotations[p.movedKey]; moved != "" && old != moved {
		ops.add(p.movedPath, moved)
	} else if has && moved == "" {
		ops.remove(p.movedPath)
	}
}

// copiedCost tells whether the deletion cost is part of a stamp: then it is not the user's own.
func (p *Patcher) copiedCost(in *Incoming) bool {
	_, own := ownCost(parseSlot(in.Labels[p.slotKey]), in.Annotations[DeletionCost])
	return own
}

// steer sends the pod to a capacity type.
func (p *Patcher) steer(ops *patch, in *Incoming, capacity Capacity) {
	key, value := p.capacity.Steer(capacity)
	if len(in.NodeSelector) == 0 {
		ops.addMap("/spec/nodeSelector", key, value)
	} else if in.NodeSelector[key] != value {
		ops.add(p.steerPath, value)
	}
	for i := range p.capacity.labels {
		label := &p.capacity.labels[i]
		if other, has := in.NodeSelector[label.Key]; has && label.Key != key && label.of(other) == capacity.Other() {
			ops.remove("/spec/nodeSelector/" + pointer(label.Key))
		}
	}
	if in.Required != nil {
		p.steerAffinity(ops, in.Required.NodeSelectorTerms, capacity)
	}
}

const requiredPath = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution"

// steerAffinity takes expressions out that allow the other capacity type alone: with the node selector, no node would
// match. Terms are alternatives, so nothing is done while one of them is free of such expressions.
func (p *Patcher) steerAffinity(ops *patch, terms []corev1.NodeSelectorTerm, capacity Capacity) {
	if len(terms) == 0 {
		return
	}
	everything := false // a term that nothing is left of would match no node, where it should match all
	for i := range terms {
		contradicting := 0
		for j := range terms[i].MatchExpressions {
			if p.capacity.ofExpression(&terms[i].MatchExpressions[j]) == capacity.Other() {
				contradicting++
			}
		}
		if contradicting == 0 {
			return
		}
		everything = everything || (contradicting == len(terms[i].MatchExpressions) && len(terms[i].MatchFields) == 0)
	}
	if everything {
		ops.remove(requiredPath)
		return
	}
	for i := range terms {
		for j := range slices.Backward(terms[i].MatchExpressions) { // from the end: indexes before it stay
			if p.capacity.ofExpression(&terms[i].MatchExpressions[j]) == capacity.Other() {
				ops.remove(requiredPath + "/nodeSelectorTerms/" + strconv.Itoa(i) + "/matchExpressions/" + strconv.Itoa(j))
			}
		}
	}
}

// tolerate adds the tolerations that the pod does not have.
func (p *Patcher) tolerate(ops *patch, has []corev1.Toleration) {
	list := len(has) > 0
	for i := range p.tolerations {
		t := &p.tolerations[i]
		if slices.ContainsFunc(has, func(own corev1.Toleration) bool { return own.MatchToleration(&t.Toleration) }) {
			continue
		}
		if list {
			ops.addRaw("/spec/tolerations/-", t.json)
			continue
		}
		ops.addRaw("/spec/tolerations", "["+t.json+"]")
		list = true
	}
}

// pointer escapes a key for a JSON pointer (RFC 6901).
func pointer(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}
