package webhook

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/webhook/internal/jsonscan"
)

func (s *reviewScanner) affinity(p *spot.PodRequest) {
	if s.Null() {
		return
	}
	p.Affinity = true
	var once jsonscan.Seen
	for fields := s.Object(); fields.NextField(); {
		switch string(fields.Key) {
		case "nodeAffinity":
			once.Once(&s.Scanner, 1<<0)
			s.nodeAffinity(p)
		default:
			s.Skip()
		}
	}
}

func (s *reviewScanner) nodeAffinity(p *spot.PodRequest) {
	if s.Null() {
		return
	}
	p.NodeAffinity = true
	var once jsonscan.Seen
	for fields := s.Object(); fields.NextField(); {
		switch string(fields.Key) {
		case "requiredDuringSchedulingIgnoredDuringExecution":
			once.Once(&s.Scanner, 1<<0)
			s.nodeSelector(p)
		default:
			s.Skip()
		}
	}
}

func (s *reviewScanner) nodeSelector(p *spot.PodRequest) {
	if s.Null() {
		return
	}
	p.Required = &corev1.NodeSelector{}
	var once jsonscan.Seen
	for fields := s.Object(); fields.NextField(); {
		switch string(fields.Key) {
		case "nodeSelectorTerms":
			once.Once(&s.Scanner, 1<<0)
			for items := s.Array(); items.Next(); {
				p.Required.NodeSelectorTerms = append(p.Required.NodeSelectorTerms, s.term())
			}
		default:
			s.Skip()
		}
	}
}

func (s *reviewScanner) term() (term corev1.NodeSelectorTerm) {
	var once jsonscan.Seen
	for fields := s.Object(); fields.NextField(); {
		switch string(fields.Key) {
		case "matchExpressions":
			once.Once(&s.Scanner, 1<<0)
			term.MatchExpressions = s.requirements()
		case "matchFields":
			once.Once(&s.Scanner, 1<<1)
			term.MatchFields = s.requirements()
		default:
			s.Skip()
		}
	}
	return term
}

func (s *reviewScanner) requirements() (list []corev1.NodeSelectorRequirement) {
	for items := s.Array(); items.Next(); {
		list = append(list, s.requirement())
	}
	return list
}

func (s *reviewScanner) requirement() (r corev1.NodeSelectorRequirement) {
	var once jsonscan.Seen
	for fields := s.Object(); fields.NextField(); {
		switch string(fields.Key) {
		case "key":
			once.Once(&s.Scanner, 1<<0)
			r.Key = s.ReadString()
		case "operator":
			once.Once(&s.Scanner, 1<<1)
			r.Operator = corev1.NodeSelectorOperator(s.ReadString())
		case "values":
			once.Once(&s.Scanner, 1<<2)
			r.Values = s.Strings()
		default:
			s.Skip()
		}
	}
	return r
}
