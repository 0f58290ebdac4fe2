package capacity

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// NodeRequirements are what a pod's own nodeSelector and required node affinity ask of a node, beside its capacity type: every
// element must hold, and of an element one of its terms. Nil: any node will do.
type NodeRequirements [][]corev1.NodeSelectorTerm

// NodeRequirementsOf reads what scheduling requirements ask of nodes.
func NodeRequirementsOf(s Requirements) NodeRequirements {
	var needs NodeRequirements
	one := func(e corev1.NodeSelectorRequirement) {
		needs = append(needs, []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{e}}})
	}
	for _, constraint := range s.Constraints {
		if text, ok := strings.CutPrefix(constraint, ConstraintSelector); ok {
			key, value, _ := strings.Cut(text, "=")
			one(corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}})
		}
		if text, ok := strings.CutPrefix(constraint, constraintNode); ok {
			var e corev1.NodeSelectorRequirement
			if json.Unmarshal([]byte(text), &e) == nil {
				one(e)
			}
		}
		if text, ok := strings.CutPrefix(constraint, constraintNodes); ok {
			var terms []corev1.NodeSelectorTerm
			if json.Unmarshal([]byte(text), &terms) == nil {
				needs = append(needs, terms)
			}
		}
	}
	return needs
}

// Fit reports whether a node is what a pod asks for.
func (n NodeRequirements) Fit(name string, labels map[string]string) bool {
	for _, terms := range n {
		if !slices.ContainsFunc(terms, func(term corev1.NodeSelectorTerm) bool { return termFits(&term, name, labels) }) {
			return false
		}
	}
	return true
}

// MayFit reports whether a node that is to come may be what a pod asks for: labels that it does not have yet speak for it.
func (n NodeRequirements) MayFit(labels map[string]string) bool {
	for _, terms := range n {
		if !slices.ContainsFunc(terms, func(term corev1.NodeSelectorTerm) bool { return termMayFit(&term, labels) }) {
			return false
		}
	}
	return true
}

func termMayFit(term *corev1.NodeSelectorTerm, labels map[string]string) bool {
	for i := range term.MatchExpressions {
		e := &term.MatchExpressions[i]
		if value, has := labels[e.Key]; has && !requirementFits(e, value, has) {
			return false
		}
	}
	return len(term.MatchFields) == 0 // which name a node that there is
}

func termFits(term *corev1.NodeSelectorTerm, name string, labels map[string]string) bool {
	for i := range term.MatchExpressions {
		e := &term.MatchExpressions[i]
		value, has := labels[e.Key]
		if !requirementFits(e, value, has) {
			return false
		}
	}
	for i := range term.MatchFields { // of which there is only metadata.name
		if !requirementFits(&term.MatchFields[i], name, true) {
			return false
		}
	}
	return true
}

// requirementFits says what the scheduler says; what cannot be read fits no node there, and every node here: it is no reason
// to place a pod elsewhere.
func requirementFits(e *corev1.NodeSelectorRequirement, value string, has bool) bool {
	switch e.Operator {
	case corev1.NodeSelectorOpIn:
		return has && slices.Contains(e.Values, value)
	case corev1.NodeSelectorOpNotIn:
		return !has || !slices.Contains(e.Values, value)
	case corev1.NodeSelectorOpExists:
		return has
	case corev1.NodeSelectorOpDoesNotExist:
		return !has
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		is, err := strconv.ParseInt(value, 10, 64)
		if len(e.Values) != 1 || (has && err != nil) {
			return true
		}
		limit, err := strconv.ParseInt(e.Values[0], 10, 64)
		return err != nil || (has && (is > limit) == (e.Operator == corev1.NodeSelectorOpGt) && is != limit)
	}
	return true
}
