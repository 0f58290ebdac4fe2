package webhook

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
)

// spreads reads an array of topology spread constraints.
func (s *scanner) spreads() (list []spot.IncomingSpread) {
	for items := s.array(); items.next(); {
		list = append(list, s.spread())
	}
	return list
}

func (s *scanner) spread() (c spot.IncomingSpread) {
	var once seen
	for fields := s.object(); fields.nextField(); {
		switch string(fields.key) {
		case "topologyKey":
			once.once(s, 1<<0)
			c.Key = s.string()
		case "whenUnsatisfiable":
			once.once(s, 1<<1)
			c.Must = s.string() == string(corev1.DoNotSchedule)
		case "nodeAffinityPolicy":
			once.once(s, 1<<2)
			c.Affinity = corev1.NodeInclusionPolicy(s.string())
		case "nodeTaintsPolicy":
			once.once(s, 1<<3)
			c.Taints = corev1.NodeInclusionPolicy(s.string())
		default:
			s.skip()
		}
	}
	return c
}
