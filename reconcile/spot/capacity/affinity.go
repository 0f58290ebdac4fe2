package capacity

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Terms returns the terms of a pod's required node affinity that send it to a capacity type, and everywhere else where its
// own terms want it; changed is false when its own are right already. Terms without any demand fit no node and stay as they are.
//
// Of the pod's own demands those go that name a capacity label which no node of the member carries, and those that ask for
// the other type, unless an alternative is free of them. What a steering asks for is in every alternative, whether it was
// asked for already or not, so patching a pod twice changes nothing.
func (s *Steering) Terms(own []corev1.NodeSelectorTerm, capacity Type) (steered []corev1.NodeSelectorTerm, changed bool) {
	w := s.Direction(capacity)
	if len(w.Terms) == 0 && !slices.ContainsFunc(own, s.concerns) {
		return own, false
	}
	free := slices.ContainsFunc(own, func(t corev1.NodeSelectorTerm) bool { return !emptyTerm(&t) && !s.contradicts(&t, capacity) })
	var bases []corev1.NodeSelectorTerm
	for i := range own {
		base, dropped := s.base(&own[i], capacity, !free)
		changed = changed || dropped
		switch {
		case dropped && emptyTerm(&base): // an alternative that any node of the type meets
			return slices.Clone(w.Terms), !slices.EqualFunc(w.Terms, own, sameTerm)
		case len(w.Terms) > 0 && repeats(bases, &base): // it was steered before, and is one of several
		default:
			bases = append(bases, base)
		}
	}
	if len(w.Terms) == 0 {
		return bases, changed
	}
	for i := range bases {
		if emptyTerm(&bases[i]) {
			steered = append(steered, bases[i])
			continue
		}
		for j := range w.Terms {
			both := bases[i]
			both.MatchExpressions = slices.Concat(bases[i].MatchExpressions, w.Terms[j].MatchExpressions)
			steered = append(steered, both)
		}
	}
	return steered, !slices.EqualFunc(steered, own, sameTerm)
}

// base returns a term of the pod without what steers it, and reports whether that took something out.
func (s *Steering) base(term *corev1.NodeSelectorTerm, capacity Type, takeOther bool) (base corev1.NodeSelectorTerm, dropped bool) {
	goes := func(e corev1.NodeSelectorRequirement) bool {
		if s.Labels.find(e.Key) == nil {
			return false
		}
		if s.Labels.OfExpression(&e) == capacity.Other() {
			return takeOther
		}
		return s.Foreign(e.Key) || slices.ContainsFunc(s.Direction(capacity).Terms, func(t corev1.NodeSelectorTerm) bool {
			return slices.ContainsFunc(t.MatchExpressions, func(own corev1.NodeSelectorRequirement) bool { return sameExpression(own, e) })
		})
	}
	base = *term
	if !slices.ContainsFunc(term.MatchExpressions, goes) {
		return base, false
	}
	base.MatchExpressions = slices.DeleteFunc(slices.Clone(term.MatchExpressions), goes)
	return base, true
}

// concerns reports whether a term names a capacity label.
func (s *Steering) concerns(term corev1.NodeSelectorTerm) bool {
	return slices.ContainsFunc(term.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool { return s.Labels.find(e.Key) != nil })
}

// contradicts reports whether a term asks for the other capacity type alone.
func (s *Steering) contradicts(term *corev1.NodeSelectorTerm, capacity Type) bool {
	return slices.ContainsFunc(term.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool {
		return s.Labels.OfExpression(&e) == capacity.Other()
	})
}

func emptyTerm(t *corev1.NodeSelectorTerm) bool {
	return len(t.MatchExpressions)+len(t.MatchFields) == 0
}

// repeats reports whether a term is the last of some once more, as steering leaves them side by side. Only that one is looked at: a
// tenant decides how many there are.
func repeats(terms []corev1.NodeSelectorTerm, t *corev1.NodeSelectorTerm) bool {
	return len(terms) > 0 && sameTerm(terms[len(terms)-1], *t)
}

func sameTerm(a, b corev1.NodeSelectorTerm) bool {
	return slices.EqualFunc(a.MatchExpressions, b.MatchExpressions, sameExpression) && slices.EqualFunc(a.MatchFields, b.MatchFields, sameExpression)
}

func sameExpression(a, b corev1.NodeSelectorRequirement) bool {
	return a.Key == b.Key && a.Operator == b.Operator && slices.Equal(a.Values, b.Values)
}

// Steer sends a pod that is not made yet to a capacity type, as admissions do; spot pods also get the tolerations.
func (s *Steering) Steer(spec *corev1.PodSpec, capacity Type, tolerations []corev1.Toleration) {
	w := s.Direction(capacity)
	if w.Key != "" {
		if spec.NodeSelector == nil {
			spec.NodeSelector = map[string]string{}
		}
		spec.NodeSelector[w.Key] = w.Value
	}
	if len(w.Terms) > 0 {
		required := requiredNodes(spec)
		if len(required.NodeSelectorTerms) == 0 {
			required.NodeSelectorTerms = slices.Clone(w.Terms)
		} else {
			required.NodeSelectorTerms, _ = s.Terms(required.NodeSelectorTerms, capacity)
		}
	}
	if capacity != Spot {
		return
	}
	for i := range w.Tolerations {
		tolerate(spec, w.Tolerations[i].Toleration)
	}
	for i := range tolerations {
		tolerate(spec, tolerations[i])
	}
}

func tolerate(spec *corev1.PodSpec, t corev1.Toleration) {
	if !Tolerated(spec.Tolerations, &t) {
		spec.Tolerations = append(spec.Tolerations, t)
	}
}

// Tolerated reports whether some tolerations cover another one.
func Tolerated(has []corev1.Toleration, t *corev1.Toleration) bool {
	return slices.ContainsFunc(has, func(own corev1.Toleration) bool { return own.MatchToleration(t) })
}
