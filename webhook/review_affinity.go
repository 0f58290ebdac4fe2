package webhook

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
)

func (s *scanner) affinity(p *spot.PodRequest) {
	if s.null() {
		return
	}
	p.Affinity = true
	var once seen
	for fields := s.object(); fields.nextField(); {
		switch string(fields.key) {
		case "nodeAffinity":
			once.once(s, 1<<0)
			s.nodeAffinity(p)
		default:
			s.skip()
		}
	}
}

func (s *scanner) nodeAffinity(p *spot.PodRequest) {
	if s.null() {
		return
	}
	p.NodeAffinity = true
	var once seen
	for fields := s.object(); fields.nextField(); {
		switch string(fields.key) {
		case "requiredDuringSchedulingIgnoredDuringExecution":
			once.once(s, 1<<0)
			s.nodeSelector(p)
		default:
			s.skip()
		}
	}
}

func (s *scanner) nodeSelector(p *spot.PodRequest) {
	if s.null() {
		return
	}
	p.Required = &corev1.NodeSelector{}
	var once seen
	for fields := s.object(); fields.nextField(); {
		switch string(fields.key) {
		case "nodeSelectorTerms":
			once.once(s, 1<<0)
			for items := s.array(); items.next(); {
				p.Required.NodeSelectorTerms = append(p.Required.NodeSelectorTerms, s.term())
			}
		default:
			s.skip()
		}
	}
}

func (s *scanner) term() (term corev1.NodeSelectorTerm) {
	var once seen
	for fields := s.object(); fields.nextField(); {
		switch string(fields.key) {
		case "matchExpressions":
			once.once(s, 1<<0)
			term.MatchExpressions = s.requirements()
		case "matchFields":
			once.once(s, 1<<1)
			term.MatchFields = s.requirements()
		default:
			s.skip()
		}
	}
	return term
}

func (s *scanner) requirements() (list []corev1.NodeSelectorRequirement) {
	for items := s.array(); items.next(); {
		list = append(list, s.requirement())
	}
	return list
}

func (s *scanner) requirement() (r corev1.NodeSelectorRequirement) {
	var once seen
	for fields := s.object(); fields.nextField(); {
		switch string(fields.key) {
		case "key":
			once.once(s, 1<<0)
			r.Key = s.string()
		case "operator":
			once.once(s, 1<<1)
			r.Operator = corev1.NodeSelectorOperator(s.string())
		case "values":
			once.once(s, 1<<2)
			r.Values = s.strings()
		default:
			s.skip()
		}
	}
	return r
}
