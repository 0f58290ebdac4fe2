package webhook

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/admission"
	"github.com/plimsoll-dev/plimsoll/webhook/internal/jsonscan"
)

// spreads reads an array of topology spread constraints.
func (s *reviewScanner) spreads() (list []admission.Spread) {
	for items := s.Array(); items.Next(); {
		list = append(list, s.spread())
	}
	return list
}

func (s *reviewScanner) spread() (c admission.Spread) {
	var once jsonscan.Seen
	for fields := s.Object(); fields.NextField(); {
		switch string(fields.Key) {
		case "topologyKey":
			once.Once(&s.Scanner, 1<<0)
			c.Key = s.ReadString()
		case "whenUnsatisfiable":
			once.Once(&s.Scanner, 1<<1)
			c.Must = s.ReadString() == string(corev1.DoNotSchedule)
		case "nodeAffinityPolicy":
			once.Once(&s.Scanner, 1<<2)
			c.Affinity = corev1.NodeInclusionPolicy(s.ReadString())
		case "nodeTaintsPolicy":
			once.Once(&s.Scanner, 1<<3)
			c.Taints = corev1.NodeInclusionPolicy(s.ReadString())
		default:
			s.Skip()
		}
	}
	return c
}
