package spot

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// terms returns the terms of a pod's required node affinity that send it to a capacity type, and everywhere else where its
// own terms want it; changed is false when its own are right already. Terms without any demand fit no node and stay as they are.
//
// Of the pod's own demands those go that name a capacity label which no node of the member carries, and those that ask for
// the other type, unless an alternative is free of them. What a steering asks for is in every alternative, whether it was
// asked for already or not, so patching a pod twice changes nothing.
func (s *Steering) terms(own []corev1.NodeSelectorTerm, capacity Capacity) (steered []corev1.NodeSelectorTerm, changed bool) {
	w := s.way(capacity)
	free := slices.ContainsFunc(own, func(t corev1.NodeSelectorTerm) bool { return !emptyTerm(&t) && !s.contradicts(&t, capacity) })
	var bases []corev1.NodeSelectorTerm
	for i := range own {
		base, dropped := s.base(&own[i], capacity, !free)
		changed = changed || dropped
		switch {
		case dropped && emptyTerm(&base): // an alternative that any node of the type meets
			return slices.Clone(w.terms), len(w.terms) != len(own) || !equality.Semantic.DeepEqual(w.terms, own)
		case len(w.terms) > 0 && containsTerm(bases, &base): // it was steered before, and is one of several
		default:
			bases = append(bases, base)
		}
	}
	if len(w.terms) == 0 {
		return bases, changed
	}
	for i := range bases {
		if emptyTerm(&bases[i]) {
			steered = append(steered, bases[i])
			continue
		}
		for j := range w.terms {
			both := bases[i]
			both.MatchExpressions = slices.Concat(bases[i].MatchExpressions, w.terms[j].MatchExpressions)
			steered = append(steered, both)
		}
	}
	return steered, !equality.Semantic.DeepEqual(steered, own)
}

// base returns a term of the pod without what steers it, and tells whether that took something out.
func (s *Steering) base(term *corev1.NodeSelectorTerm, capacity Capacity, takeOther bool) (base corev1.NodeSelectorTerm, dropped bool) {
	base = *term
	base.MatchExpressions = slices.DeleteFunc(slices.Clone(term.MatchExpressions), func(e corev1.NodeSelectorRequirement) bool {
		if s.labels.find(e.Key) == nil {
			return false
		}
		if s.labels.ofExpression(&e) == capacity.Other() {
			return takeOther
		}
		return s.foreign(e.Key) || s.way(capacity).has(&e)
	})
	return base, len(base.MatchExpressions) < len(term.MatchExpressions)
}

// contradicts tells whether a term asks for the other capacity type alone.
func (s *Steering) contradicts(term *corev1.NodeSelectorTerm, capacity Capacity) bool {
	return slices.ContainsFunc(term.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool {
		return s.labels.ofExpression(&e) == capacity.Other()
	})
}

// has tells whether an expression is one of those that send pods this way.
func (w *way) has(e *corev1.NodeSelectorRequirement) bool {
	for i := range w.terms {
		for j := range w.terms[i].MatchExpressions {
			own := &w.terms[i].MatchExpressions[j]
			if own.Key == e.Key && own.Operator == e.Operator && slices.Equal(own.Values, e.Values) {
				return true
			}
		}
	}
	return false
}

func emptyTerm(t *corev1.NodeSelectorTerm) bool {
	return len(t.MatchExpressions)+len(t.MatchFields) == 0
}

func containsTerm(terms []corev1.NodeSelectorTerm, t *corev1.NodeSelectorTerm) bool {
	return slices.ContainsFunc(terms, func(other corev1.NodeSelectorTerm) bool { return equality.Semantic.DeepEqual(other, *t) })
}

// steer sends a pod that is not made yet to a capacity type, as admissions do; spot pods also get the tolerations.
func (s *Steering) steer(spec *corev1.PodSpec, capacity Capacity, tolerations []corev1.Toleration) {
	w := s.way(capacity)
	if w.key != "" {
		if spec.NodeSelector == nil {
			spec.NodeSelector = map[string]string{}
		}
		spec.NodeSelector[w.key] = w.value
	}
	if len(w.terms) > 0 {
		required := requiredNodes(spec)
		if len(required.NodeSelectorTerms) == 0 {
			required.NodeSelectorTerms = slices.Clone(w.terms)
		} else {
			required.NodeSelectorTerms, _ = s.terms(required.NodeSelectorTerms, capacity)
		}
	}
	if capacity != Spot {
		return
	}
	for i := range w.tolerations {
		tolerate(spec, w.tolerations[i].Toleration)
	}
	for i := range tolerations {
		tolerate(spec, tolerations[i])
	}
}

func tolerate(spec *corev1.PodSpec, t corev1.Toleration) {
	if !tolerated(spec.Tolerations, &t) {
		spec.Tolerations = append(spec.Tolerations, t)
	}
}

func tolerated(has []corev1.Toleration, t *corev1.Toleration) bool {
	return slices.ContainsFunc(has, func(own corev1.Toleration) bool { return own.MatchToleration(t) })
}
