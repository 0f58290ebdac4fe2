package webhook

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// review is what the hub takes from an AdmissionReview. All strings of one review share their memory: what is kept for
// long should be cloned.
type review struct {
	apiVersion, kind string
	uid              string
	group, resource  string // what the request is about, as the rule of the configuration names it
	subResource      string
	operation        string
	name, namespace  string
	dryRun           bool
	pod              podFacts
}

// podFacts are what placement needs of a pod that is about to be made. A pod with generateName has no name yet.
type podFacts struct {
	name, generateName, namespace     string
	labels, annotations, nodeSelector map[string]string
	controller                        ownerFacts           // empty without a controller
	required                          *corev1.NodeSelector // of its node affinity
	tolerations                       int
}

type ownerFacts struct{ apiVersion, kind, name, uid string }

// textGuess is how much text a review of a usual pod holds, so that it is allocated once.
const textGuess = 1536

// decodeReview reads the body of an admission call. Its errors tell where the body is wrong, and never quote it.
func decodeReview(body []byte) (review, error) {
	var r review
	s := scanner{data: body}
	s.text.Grow(textGuess)
	var once seen
	for fields := s.object(); fields.nextField(); {
		switch string(fields.key) {
		case "apiVersion":
			once.once(&s, 1<<0)
			r.apiVersion = s.string()
		case "kind":
			once.once(&s, 1<<1)
			r.kind = s.string()
		case "request":
			once.once(&s, 1<<2)
			s.request(&r)
		default:
			s.skip()
		}
	}
	if s.end(); s.err != nil {
		return review{}, fmt.Errorf("admission review: %w", s.err)
	}
	return r, nil
}

func (s *scanner) request(r *review) {
	var once seen
	for fields := s.object(); fields.nextField(); {
		switch string(fields.key) {
		case "uid":
			once.once(s, 1<<0)
			r.uid = s.string()
		case "resource":
			once.once(s, 1<<1)
			s.groupResource(r)
		case "subResource":
			once.once(s, 1<<2)
			r.subResource = s.string()
		case "name":
			once.once(s, 1<<3)
			r.name = s.string()
		case "namespace":
			once.once(s, 1<<4)
			r.namespace = s.string()
		case "operation":
			once.once(s, 1<<5)
			r.operation = s.string()
		case "dryRun":
			once.once(s, 1<<6)
			r.dryRun = s.bool()
		case "object":
			once.once(s, 1<<7)
			s.pod(&r.pod)
		default:
			s.skip()
		}
	}
}

func (s *scanner) groupResource(r *review) {
	var once seen
	for fields := s.object(); fields.nextField(); {
		switch string(fields.key) {
		case "group":
			once.once(s, 1<<0)
			r.group = s.string()
		case "resource":
			once.once(s, 1<<1)
			r.resource = s.string()
		default:
			s.skip()
		}
	}
}

func (s *scanner) pod(p *podFacts) {
	var once seen
	for fields := s.object(); fields.nextField(); {
		switch string(fields.key) {
		case "metadata":
			once.once(s, 1<<0)
			s.metadata(p)
		case "spec":
			once.once(s, 1<<1)
			s.spec(p)
		default:
			s.skip()
		}
	}
}

func (s *scanner) metadata(p *podFacts) {
	var once seen
	for fields := s.object(); fields.nextField(); {
		switch string(fields.key) {
		case "name":
			once.once(s, 1<<0)
			p.name = s.string()
		case "generateName":
			once.once(s, 1<<1)
			p.generateName = s.string()
		case "namespace":
			once.once(s, 1<<2)
			p.namespace = s.string()
		case "labels":
			once.once(s, 1<<3)
			p.labels = s.stringMap()
		case "annotations":
			once.once(s, 1<<4)
			p.annotations = s.stringMap()
		case "ownerReferences":
			once.once(s, 1<<5)
			s.controller(p)
		default:
			s.skip()
		}
	}
}

// controller keeps the first owner that is the controller.
func (s *scanner) controller(p *podFacts) {
	found := false
	for items := s.array(); items.next(); {
		if owner, controls := s.owner(); controls && !found {
			p.controller, found = owner, true
		}
	}
}

func (s *scanner) owner() (owner ownerFacts, controls bool) {
	var once seen
	for fields := s.object(); fields.nextField(); {
		switch string(fields.key) {
		case "apiVersion":
			once.once(s, 1<<0)
			owner.apiVersion = s.string()
		case "kind":
			once.once(s, 1<<1)
			owner.kind = s.string()
		case "name":
			once.once(s, 1<<2)
			owner.name = s.string()
		case "uid":
			once.once(s, 1<<3)
			owner.uid = s.string()
		case "controller":
			once.once(s, 1<<4)
			controls = s.bool()
		default:
			s.skip()
		}
	}
	return owner, controls
}

func (s *scanner) spec(p *podFacts) {
	var once seen
	for fields := s.object(); fields.nextField(); {
		switch string(fields.key) {
		case "nodeSelector":
			once.once(s, 1<<0)
			p.nodeSelector = s.stringMap()
		case "affinity":
			once.once(s, 1<<1)
			s.affinity(p)
		case "tolerations":
			once.once(s, 1<<2)
			for items := s.array(); items.next(); p.tolerations++ {
				s.skip()
			}
		default:
			s.skip()
		}
	}
}
