package capacity

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
)

// Steering is how the pods of one member are sent to a capacity type: by a nodeSelector, or by required node affinity where
// the nodes that fit do not all carry one label. It is never changed, and safe for concurrent use.
type Steering struct {
	Labels         Labels
	Spot, OnDemand Direction
	elsewhere      []string // keys of capacity labels that no node of the member carries; nil while nothing is known about its nodes
	SteerBy        string   // the text that it was made with; see [Labels.CheckSteerBy]
}

// Direction is how pods are sent to one capacity type. Without a key and without terms it sends them nowhere.
type Direction struct {
	Key, Value string                    // of the nodeSelector; an empty key: by affinity
	Terms      []corev1.NodeSelectorTerm // of the required node affinity: alternatives

	Tolerations []Toleration // of the taints that providers put on their spot nodes
	// What admissions write, ready made: the path of the key, and the terms as JSON, with what is around them.
	Path                             string
	Required, NodeAffinity, Affinity string
}

// LabelUse is what is known about one capacity label in a member.
type LabelUse struct {
	// Carried says that a node carries the label, or its family, or did since the member was first followed.
	Carried bool
	// FurtherSpot and furtherOnDemand say that a node carries another value for the type than the first, or did.
	FurtherSpot, FurtherOnDemand bool
	// SpotNow and onDemandNow say that there are nodes of the type by this label.
	SpotNow, OnDemandNow bool
}

func (c LabelUse) now(capacity Type) bool {
	return (capacity == Spot && c.SpotNow) || (capacity == OnDemand && c.OnDemandNow)
}

func (c LabelUse) further(capacity Type) bool {
	return (capacity == Spot && c.FurtherSpot) || (capacity == OnDemand && c.FurtherOnDemand)
}

// Configured returns the steering of a member of whose nodes nothing is known: as the configuration says.
func (c Labels) Configured() *Steering {
	return c.SteeringFor(make([]LabelUse, len(c.NodeLabels)), "")
}

// SteeringFor decides how pods are sent where they belong, by what the nodes carry, one element for each label, or by the labels
// that steerBy names, if it can be used.
//
// One label that nodes of both types carry is asked for by a nodeSelector, as it was always done. Otherwise spot pods go to
// nodes with a spot value of any of the labels, and on-demand pods to nodes without one, so that unlabelled on-demand nodes
// fit and an autoscaler's template nodes do. The first label is always among these: its spot nodes may be yet to come.
func (c Labels) SteeringFor(nodes []LabelUse, steerBy string) *Steering {
	s := &Steering{Labels: c, SteerBy: steerBy}
	if len(c.NodeLabels) == 0 {
		return s
	}
	named, _ := c.named(steerBy) // what cannot be used is reported elsewhere, and does not count
	var carried, by []int
	for i := range c.NodeLabels {
		if nodes[i].Carried {
			carried = append(carried, i)
		}
		if slices.Contains(named, i) || (named == nil && (i == 0 || nodes[i].Carried)) {
			by = append(by, i)
		}
		if !nodes[i].Carried && !slices.Contains(named, i) {
			s.elsewhere = append(s.elsewhere, c.NodeLabels[i].Key)
		}
	}
	if len(carried)+len(named) == 0 {
		s.elsewhere = nil
	}
	for _, capacity := range []Type{Spot, OnDemand} {
		single := c.single(nodes, carried, named, capacity)
		if single != nil {
			*s.Direction(capacity) = single.alone(capacity, nodes[c.Index(single.Key)].further(capacity))
		} else {
			*s.Direction(capacity) = c.alternatives(by, capacity)
		}
	}
	return s
}

// single returns the label that is enough to find the nodes of a type; nil: none is. In a member where nodes carry others as
// well it is enough while there are such nodes by it: an autoscaler that labels its nodes makes more of them, and the others
// are as a rule those that it runs on itself.
func (c Labels) single(nodes []LabelUse, carried, named []int, capacity Type) *NodeLabel {
	switch {
	case len(named) > 0:
		carried = named
	case len(carried) == 0:
		carried = []int{0}
	}
	for _, i := range carried {
		if c.NodeLabels[i].everyone {
			if len(carried) == 1 || (named == nil && nodes[i].now(capacity)) {
				return &c.NodeLabels[i]
			}
			return nil
		}
	}
	return nil
}

// alone asks for one label. further: there are nodes with another value for the type than the first, so any will do.
func (l *NodeLabel) alone(capacity Type, further bool) Direction {
	values := l.values(capacity)
	if !further {
		return Direction{Key: l.Key, Value: values[0], Path: "/spec/nodeSelector/" + PointerToken(l.Key)}
	}
	return byAffinity([]corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: l.Key, Operator: corev1.NodeSelectorOpIn, Values: values},
	}}})
}

// alternatives asks for a spot value of one of the labels, or for none of any.
func (c Labels) alternatives(by []int, capacity Type) Direction {
	var spot []corev1.NodeSelectorTerm
	var onDemand corev1.NodeSelectorTerm
	var tolerations []Toleration
	for _, i := range by {
		l := &c.NodeLabels[i]
		spot = append(spot, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: l.Key, Operator: corev1.NodeSelectorOpIn, Values: l.Spot},
		}})
		onDemand.MatchExpressions = append(onDemand.MatchExpressions, corev1.NodeSelectorRequirement{
			Key: l.Key, Operator: corev1.NodeSelectorOpNotIn, Values: l.Spot,
		})
		if l.tainted {
			tolerations = append(tolerations, l.tolerations()...)
		}
	}
	if capacity == OnDemand {
		return byAffinity([]corev1.NodeSelectorTerm{onDemand})
	}
	w := byAffinity(spot)
	w.Tolerations = tolerations
	return w
}

// byAffinity makes a direction with its JSON, which admissions only copy.
func byAffinity(terms []corev1.NodeSelectorTerm) Direction {
	w := Direction{Terms: terms, Required: JSONOf(corev1.NodeSelector{NodeSelectorTerms: terms})}
	w.NodeAffinity = `{"requiredDuringSchedulingIgnoredDuringExecution":` + w.Required + `}`
	w.Affinity = `{"nodeAffinity":` + w.NodeAffinity + `}`
	return w
}

// tolerations are those of the taints that mark the provider's spot nodes.
func (l *NodeLabel) tolerations() []Toleration {
	list := make([]Toleration, len(l.Spot))
	for i, value := range l.Spot {
		list[i] = NewToleration(corev1.Toleration{Key: l.Key, Operator: corev1.TolerationOpEqual, Value: value, Effect: corev1.TaintEffectNoSchedule})
	}
	return list
}

// NewToleration prepares a toleration for patches.
func NewToleration(t corev1.Toleration) Toleration {
	text, _ := json.Marshal(t) // of strings and a number, which can always be written
	return Toleration{t, string(text), "[" + string(text) + "]"}
}

// Direction returns how pods are sent to a capacity type. The caller must not change it.
func (s *Steering) Direction(capacity Type) *Direction {
	if capacity == Spot {
		return &s.Spot
	}
	return &s.OnDemand
}

// Foreign reports whether a capacity label is one that no node of the member carries: whoever asks for it means another member.
func (s *Steering) Foreign(key string) bool { return slices.Contains(s.elsewhere, key) }

// String says in a sentence where pods are sent by what.
func (s *Steering) String() string {
	return fmt.Sprintf("Spot pods of the member are scheduled by %s, on-demand pods by %s.", &s.Spot, &s.OnDemand)
}

// String says by what pods are sent there, as a part of a sentence.
func (w *Direction) String() string {
	switch {
	case w.Key != "":
		return "the nodeSelector " + w.Key + "=" + w.Value
	case len(w.Terms) == 0:
		return "nothing"
	}
	terms := make([]string, len(w.Terms))
	for i := range w.Terms {
		var all []string
		for _, e := range w.Terms[i].MatchExpressions {
			all = append(all, fmt.Sprintf("%s %s (%s)", e.Key, e.Operator, strings.Join(e.Values, ", ")))
		}
		terms[i] = strings.Join(all, " and ")
	}
	return "required node affinity: " + strings.Join(terms, " or ")
}

// RuleSteerBy is what [Labels.CheckSteerBy] wants of a value.
const RuleSteerBy = "karpenter, eks, gke, aks or the key of a node label that spot.nodeLabels names, or several of these, separated by commas"

// CheckSteerBy reports whether a registration may name the labels to steer by with a text: names of providers and keys of
// labels, with commas between them. Empty names none.
func (c Labels) CheckSteerBy(text string) error {
	_, err := c.named(text)
	return err
}

// named returns the indexes of the labels that a text names, in the order of the labels; nil when it is empty, or cannot be used.
func (c Labels) named(text string) ([]int, error) {
	if text == "" {
		return nil, nil
	}
	var named []int
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		known := false
		for i := range c.NodeLabels {
			if l := &c.NodeLabels[i]; name != "" && (name == l.provider || name == l.Key) {
				named, known = append(named, i), true
			}
		}
		if !known {
			return nil, fmt.Errorf("%q: want %s", phrase.Value(text), RuleSteerBy)
		}
	}
	slices.Sort(named)
	return slices.Compact(named), nil
}

// Index returns the place of a label by its key; below 0: it is none of these.
func (c Labels) Index(key string) int {
	return slices.IndexFunc(c.NodeLabels, func(l NodeLabel) bool { return l.Key == key })
}

func (l *NodeLabel) values(capacity Type) []string {
	if capacity == Spot {
		return l.Spot
	}
	return l.OnDemand
}

// Toleration is what a pod tolerates on spot nodes, with the forms in which patches carry it.
type Toleration struct {
	corev1.Toleration
	JSON, List string // as JSON: itself, and a list of it alone
}

// PointerToken escapes a key for a JSON pointer (RFC 6901).
func PointerToken(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}
