package webhook

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/webhook/internal/calls"
	"github.com/plimsoll-dev/plimsoll/webhook/internal/jsonscan"
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

// A reviewScanner reads the parts of an AdmissionReview.
type reviewScanner struct{ jsonscan.Scanner }

// textGuess is how much text of a usual pod's review is kept, so that it is allocated once.
const textGuess = 512

// decode reads the body of an admission call into r, which keeps nothing of an earlier one but its memory. reads says
// which labels and annotations of the pod are looked at; nil: all. Errors say where the body is wrong, and never quote it.
func (r *review) decode(body []byte, reads func(key []byte) bool) error {
	r.reset()
	s := reviewScanner{Scanner: jsonscan.Scanner{Data: body, Reads: reads, MaxValues: maxValues}}
	if len(body) > calls.LargeCall {
		s.Piece, s.Pause = calls.Piece, calls.Pause
	}
	s.Text.Grow(textGuess)
	var once jsonscan.Seen
	for fields := s.Object(); fields.NextField(); {
		switch string(fields.Key) {
		case "apiVersion":
			once.Once(&s.Scanner, 1<<0)
			r.apiVersion = s.ReadString()
		case "kind":
			once.Once(&s.Scanner, 1<<1)
			r.kind = s.ReadString()
		case "request":
			once.Once(&s.Scanner, 1<<2)
			s.request(r)
		default:
			s.Skip()
		}
	}
	if s.End(); s.Err != nil {
		r.reset()
		return fmt.Errorf("admission review: %w", s.Err)
	}
	return nil
}

// maxValues is how many fields and items of a review are read at most, and kept. A pod that its API server can store has a hundred or
// two; without a bound, a body of 3 MiB becomes 75 MB of tolerations.
const maxValues = 10_000

func (r *review) reset() {
	*r = review{spare: r.spare}
}

func (s *reviewScanner) request(r *review) {
	var once jsonscan.Seen
	for fields := s.Object(); fields.NextField(); {
		switch string(fields.Key) {
		case "uid":
			once.Once(&s.Scanner, 1<<0)
			r.pod.RequestUID = s.ReadString()
		case "resource":
			once.Once(&s.Scanner, 1<<1)
			s.groupResource(r)
		case "subResource":
			once.Once(&s.Scanner, 1<<2)
			r.subResource = s.ReadString()
		case "namespace":
			once.Once(&s.Scanner, 1<<3)
			r.pod.Namespace = s.ReadString()
		case "operation":
			once.Once(&s.Scanner, 1<<4)
			r.operation = s.ReadString()
		case "dryRun":
			once.Once(&s.Scanner, 1<<5)
			r.pod.DryRun = s.ReadBool()
		case "object":
			once.Once(&s.Scanner, 1<<6)
			s.pod(r)
		default:
			s.Skip()
		}
	}
}

func (s *reviewScanner) groupResource(r *review) {
	var once jsonscan.Seen
	for fields := s.Object(); fields.NextField(); {
		switch string(fields.Key) {
		case "group":
			once.Once(&s.Scanner, 1<<0)
			r.group = s.ReadString()
		case "resource":
			once.Once(&s.Scanner, 1<<1)
			r.resource = s.ReadString()
		default:
			s.Skip()
		}
	}
}

func (s *reviewScanner) pod(r *review) {
	var once jsonscan.Seen
	for fields := s.Object(); fields.NextField(); {
		switch string(fields.Key) {
		case "metadata":
			once.Once(&s.Scanner, 1<<0)
			s.metadata(&r.pod)
		case "spec":
			once.Once(&s.Scanner, 1<<1)
			s.spec(r)
		default:
			s.Skip()
		}
	}
}

func (s *reviewScanner) metadata(p *spot.PodRequest) {
	var once jsonscan.Seen
	for fields := s.Object(); fields.NextField(); {
		switch string(fields.Key) {
		case "name":
			once.Once(&s.Scanner, 1<<0)
			p.Name = s.ReadString()
		case "labels":
			once.Once(&s.Scanner, 1<<1)
			p.Labels, p.MoreLabels = s.StringMap(s.Reads)
		case "annotations":
			once.Once(&s.Scanner, 1<<2)
			p.Annotations, p.MoreAnnotations = s.StringMap(s.Reads)
		case "ownerReferences":
			once.Once(&s.Scanner, 1<<3)
			s.controller(p)
		default:
			s.Skip()
		}
	}
}

// controller keeps the first owner that is the controller.
func (s *reviewScanner) controller(p *spot.PodRequest) {
	found := false
	for items := s.Array(); items.Next(); {
		if owner, controls := s.owner(); controls && !found {
			p.Owner, found = owner, true
			p.ReplicaSet = owner.Kind == "ReplicaSet"
		}
	}
}

func (s *reviewScanner) owner() (owner spot.OwnerRef, controls bool) {
	var once jsonscan.Seen
	for fields := s.Object(); fields.NextField(); {
		switch string(fields.Key) {
		case "apiVersion":
			once.Once(&s.Scanner, 1<<0)
			owner.APIVersion = s.ReadString()
		case "kind":
			once.Once(&s.Scanner, 1<<1)
			owner.Kind = s.ReadString()
		case "name":
			once.Once(&s.Scanner, 1<<2)
			owner.Name = s.ReadString()
		case "uid":
			once.Once(&s.Scanner, 1<<3)
			owner.UID = s.ReadString()
		case "controller":
			once.Once(&s.Scanner, 1<<4)
			controls = s.ReadBool()
		default:
			s.Skip()
		}
	}
	return owner, controls
}

func (s *reviewScanner) spec(r *review) {
	var once jsonscan.Seen
	for fields := s.Object(); fields.NextField(); {
		switch string(fields.Key) {
		case "nodeSelector":
			once.Once(&s.Scanner, 1<<0)
			r.pod.NodeSelector, _ = s.StringMap(nil)
		case "affinity":
			once.Once(&s.Scanner, 1<<1)
			s.affinity(&r.pod)
		case "tolerations":
			once.Once(&s.Scanner, 1<<2)
			r.pod.Tolerations = s.tolerations(r)
		case "topologySpreadConstraints":
			once.Once(&s.Scanner, 1<<3)
			r.pod.Spreads = s.spreads()
		default:
			s.Skip()
		}
	}
}

// tolerations reads an array of them, without their seconds; one that is there and empty is not nil.
func (s *reviewScanner) tolerations(r *review) []corev1.Toleration {
	if s.Null() {
		return nil
	}
	if r.spare == nil {
		r.spare = make([]corev1.Toleration, 0, 4)
	}
	list := r.spare[:0]
	for items := s.Array(); items.Next(); {
		list = append(list, s.toleration())
	}
	r.spare = list
	return list
}

func (s *reviewScanner) toleration() (t corev1.Toleration) {
	var once jsonscan.Seen
	for fields := s.Object(); fields.NextField(); {
		switch string(fields.Key) {
		case "key":
			once.Once(&s.Scanner, 1<<0)
			t.Key = s.ReadString()
		case "operator":
			once.Once(&s.Scanner, 1<<1)
			t.Operator = corev1.TolerationOperator(s.ReadString())
		case "value":
			once.Once(&s.Scanner, 1<<2)
			t.Value = s.ReadString()
		case "effect":
			once.Once(&s.Scanner, 1<<3)
			t.Effect = corev1.TaintEffect(s.ReadString())
		default:
			s.Skip()
		}
	}
	return t
}
