package webhook

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
)

// review is what the hub takes from an AdmissionReview. Its strings share their memory; spot.PodRequest says so, too.
type review struct {
	apiVersion, kind string
	group, resource  string // what the request is about, as the rule of the configuration names it
	subResource      string
	operation        string
	pod              spot.PodRequest
	spare            []corev1.Toleration // memory for the next pod's
}

// textGuess is how much text of a usual pod's review is kept, so that it is allocated once.
const textGuess = 512

// decode reads the body of an admission call into r, which keeps nothing of an earlier one but its memory. reads tells
// which labels and annotations of the pod are looked at; nil: all. Errors tell where the body is wrong, and never quote it.
func (r *review) decode(body []byte, reads func(key []byte) bool) error {
	r.reset()
	s := scanner{data: body, reads: reads}
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
			s.request(r)
		default:
			s.skip()
		}
	}
	if s.end(); s.err != nil {
		r.reset()
		return fmt.Errorf("admission review: %w", s.err)
	}
	return nil
}

func (r *review) reset() {
	*r = review{spare: r.spare}
}

func (s *scanner) request(r *review) {
	var once seen
	for fields := s.object(); fields.nextField(); {
		switch string(fields.key) {
		case "uid":
			once.once(s, 1<<0)
			r.pod.RequestUID = s.string()
		case "resource":
			once.once(s, 1<<1)
			s.groupResource(r)
		case "subResource":
			once.once(s, 1<<2)
			r.subResource = s.string()
		case "namespace":
			once.once(s, 1<<3)
			r.pod.Namespace = s.string()
		case "operation":
			once.once(s, 1<<4)
			r.operation = s.string()
		case "dryRun":
			once.once(s, 1<<5)
			r.pod.DryRun = s.bool()
		case "object":
			once.once(s, 1<<6)
			s.pod(r)
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

func (s *scanner) pod(r *review) {
	var once seen
	for fields := s.object(); fields.nextField(); {
		switch string(fields.key) {
		case "metadata":
			once.once(s, 1<<0)
			s.metadata(&r.pod)
		case "spec":
			once.once(s, 1<<1)
			s.spec(r)
		default:
			s.skip()
		}
	}
}

func (s *scanner) metadata(p *spot.PodRequest) {
	var once seen
	for fields := s.object(); fields.nextField(); {
		switch string(fields.key) {
		case "name":
			once.once(s, 1<<0)
			p.Name = s.string()
		case "labels":
			once.once(s, 1<<1)
			p.Labels, p.MoreLabels = s.stringMap(s.reads)
		case "annotations":
			once.once(s, 1<<2)
			p.Annotations, p.MoreAnnotations = s.stringMap(s.reads)
		case "ownerReferences":
			once.once(s, 1<<3)
			s.controller(p)
		default:
			s.skip()
		}
	}
}

// controller keeps the first owner that is the controller.
func (s *scanner) controller(p *spot.PodRequest) {
	found := false
	for items := s.array(); items.next(); {
		if owner, controls := s.owner(); controls && !found {
			p.Owner, found = owner, true
			p.ReplicaSet = owner.Kind == "ReplicaSet"
		}
	}
}

func (s *scanner) owner() (owner spot.OwnerRef, controls bool) {
	var once seen
	for fields := s.object(); fields.nextField(); {
		switch string(fields.key) {
		case "apiVersion":
			once.once(s, 1<<0)
			owner.APIVersion = s.string()
		case "kind":
			once.once(s, 1<<1)
			owner.Kind = s.string()
		case "name":
			once.once(s, 1<<2)
			owner.Name = s.string()
		case "uid":
			once.once(s, 1<<3)
			owner.UID = s.string()
		case "controller":
			once.once(s, 1<<4)
			controls = s.bool()
		default:
			s.skip()
		}
	}
	return owner, controls
}

func (s *scanner) spec(r *review) {
	var once seen
	for fields := s.object(); fields.nextField(); {
		switch string(fields.key) {
		case "nodeSelector":
			once.once(s, 1<<0)
			r.pod.NodeSelector, _ = s.stringMap(nil)
		case "affinity":
			once.once(s, 1<<1)
			s.affinity(&r.pod)
		case "tolerations":
			once.once(s, 1<<2)
			r.pod.Tolerations = s.tolerations(r)
		case "topologySpreadConstraints":
			once.once(s, 1<<3)
			r.pod.Spreads = s.spreads()
		default:
			s.skip()
		}
	}
}

// tolerations reads an array of them, without their seconds; one that is there and empty is not nil.
func (s *scanner) tolerations(r *review) []corev1.Toleration {
	if s.null() {
		return nil
	}
	if r.spare == nil {
		r.spare = make([]corev1.Toleration, 0, 4)
	}
	list := r.spare[:0]
	for items := s.array(); items.next(); {
		list = append(list, s.toleration())
	}
	r.spare = list
	return list
}

func (s *scanner) toleration() (t corev1.Toleration) {
	var once seen
	for fields := s.object(); fields.nextField(); {
		switch string(fields.key) {
		case "key":
			once.once(s, 1<<0)
			t.Key = s.string()
		case "operator":
			once.once(s, 1<<1)
			t.Operator = corev1.TolerationOperator(s.string())
		case "value":
			once.once(s, 1<<2)
			t.Value = s.string()
		case "effect":
			once.once(s, 1<<3)
			t.Effect = corev1.TaintEffect(s.string())
		default:
			s.skip()
		}
	}
	return t
}
