package capacity

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
)

// Type is what a node costs and how long it stays.
type Type string

// Capacity types. The zero value is Unknown.
const (
	Unknown  Type = ""
	Spot     Type = "spot"      // cheap, and may be taken away at any time
	OnDemand Type = "on-demand" // stays until it is given back
)

// Other returns the opposite type; Unknown for Unknown.
func (c Type) Other() Type {
	switch c {
	case Spot:
		return OnDemand
	case OnDemand:
		return Spot
	}
	return Unknown
}

// NodeLabel says which values of a node label mean spot, and which on-demand.
type NodeLabel struct {
	Key            string
	Spot, OnDemand []string
	// Family is a label that all nodes of a provider have which labels its spot nodes only: a node with Family and without
	// Key is on-demand. Empty: a node without Key is unknown.
	Family string

	provider string // the name by which a registration may choose it; empty: it has none
	everyone bool   // nodes of both types carry the label, so that a nodeSelector can ask for either
	tainted  bool   // the provider taints its spot nodes with the label's key and value, NoSchedule, or autoscalers do
}

// knownLabels are recognised without configuration. Spot VMs of GKE carry two labels, preemptible ones the third instead of
// gke-spot; nodes of older versions have no gke-provisioning.
var knownLabels = []NodeLabel{
	{Key: "karpenter.sh/capacity-type", Spot: []string{"spot"}, OnDemand: []string{"on-demand", "reserved"}, provider: "karpenter", everyone: true},
	{Key: "eks.amazonaws.com/capacityType", Spot: []string{"SPOT"}, OnDemand: []string{"ON_DEMAND", "CAPACITY_BLOCK"}, provider: "eks"},
	{Key: "cloud.google.com/gke-provisioning", Spot: []string{"spot", "preemptible"}, OnDemand: []string{"standard"}, provider: "gke"},
	{Key: "cloud.google.com/gke-spot", Spot: []string{"true"}, OnDemand: []string{"false"}, Family: "cloud.google.com/gke-nodepool", provider: "gke", tainted: true},
	{Key: "cloud.google.com/gke-preemptible", Spot: []string{"true"}, OnDemand: []string{"false"}, Family: "cloud.google.com/gke-nodepool", provider: "gke", tainted: true},
	{Key: "kubernetes.azure.com/scalesetpriority", Spot: []string{"spot"}, OnDemand: []string{"regular"}, Family: "kubernetes.azure.com/agentpool", provider: "aks", tainted: true},
}

// Labels are the node labels that show the capacity type. The first is the one that pods are steered with where
// nothing is known about a member's nodes; see [Steering]. It is read-only after [NewLabels] and safe for concurrent use.
type Labels struct {
	NodeLabels []NodeLabel
	keys       []string

	toSpot, toOnDemand *corev1.Affinity // see keep
}

// Clone returns a copy whose node labels can be written to without changing c.
func (c Labels) Clone() Labels {
	c.NodeLabels = slices.Clone(c.NodeLabels)
	for i := range c.NodeLabels {
		label := &c.NodeLabels[i]
		label.Spot, label.OnDemand = slices.Clone(label.Spot), slices.Clone(label.OnDemand)
	}
	return c
}

// NewLabels returns the configured labels, followed by those that are known without configuration: Karpenter's
// (the one to steer with where nothing is configured), EKS's, GKE's and AKS's.
func NewLabels(configured ...NodeLabel) (Labels, error) {
	var c Labels
	for _, label := range configured {
		if err := label.validate(); err != nil {
			return Labels{}, err
		}
		if c.find(label.Key) != nil {
			return Labels{}, fmt.Errorf("node label %s: specified twice", label.Key)
		}
		c.NodeLabels = append(c.NodeLabels, label)
	}
	for _, label := range knownLabels {
		if own := c.find(label.Key); own == nil {
			c.NodeLabels = append(c.NodeLabels, label)
		} else {
			own.Family = cmp.Or(own.Family, label.Family)
			own.provider, own.tainted = label.provider, label.tainted
		}
	}
	for i := range c.NodeLabels[:len(configured)] {
		c.NodeLabels[i].everyone = c.NodeLabels[i].Family == ""
	}
	for _, label := range c.NodeLabels {
		for _, key := range []string{label.Key, label.Family} {
			if key != "" && !slices.Contains(c.keys, key) {
				c.keys = append(c.keys, key)
			}
		}
	}
	c.toSpot, c.toOnDemand = c.asks(Spot), c.asks(OnDemand)
	return c, nil
}

func (l NodeLabel) validate() error {
	if problems := validation.IsQualifiedName(l.Key); len(problems) > 0 {
		return fmt.Errorf("node label %q: %s", phrase.Value(l.Key), problems[0])
	}
	if len(l.Spot) == 0 || len(l.OnDemand) == 0 {
		return fmt.Errorf("node label %s: want at least one value for spot and one for on-demand", l.Key)
	}
	for _, value := range slices.Concat(l.Spot, l.OnDemand) {
		if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
			return fmt.Errorf("node label %s: value %q: %s", l.Key, phrase.Value(value), problems[0])
		}
		if value == "" {
			return fmt.Errorf("node label %s: a value must not be empty", l.Key)
		}
		if slices.Contains(l.Spot, value) && slices.Contains(l.OnDemand, value) {
			return fmt.Errorf("node label %s: value %q cannot mean both spot and on-demand", l.Key, value)
		}
	}
	return nil
}

// Keys returns every label key that is looked at, the one to steer with first. The caller must not change the slice.
func (c Labels) Keys() []string { return c.keys }

// OfNode returns the capacity type of a node with the given labels.
func (c Labels) OfNode(labels map[string]string) Type {
	for i := range c.NodeLabels {
		label := &c.NodeLabels[i]
		value, has := labels[label.Key]
		if capacity := label.Of(value); has && capacity != Unknown {
			return capacity
		}
		if _, family := labels[label.Family]; !has && family && label.Family != "" {
			return c.afterAbsence(i, labels)
		}
	}
	return Unknown
}

// afterAbsence is on-demand unless a label further down says otherwise.
func (c Labels) afterAbsence(i int, labels map[string]string) Type {
	for _, label := range c.NodeLabels[i+1:] {
		if capacity := label.Of(labels[label.Key]); capacity != Unknown {
			return capacity
		}
	}
	return OnDemand
}

// OfPodSpec returns the capacity type that a pod asks for by its nodeSelector or, where that does not say, by its required
// node affinity. Unknown: it asks for none, or may run on either.
func (c Labels) OfPodSpec(nodeSelector map[string]string, required *corev1.NodeSelector) Type {
	for i := range c.NodeLabels {
		if value, ok := nodeSelector[c.NodeLabels[i].Key]; ok {
			if capacity := c.NodeLabels[i].Of(value); capacity != Unknown {
				return capacity
			}
		}
	}
	if required == nil || len(required.NodeSelectorTerms) == 0 {
		return Unknown
	}
	// Terms are alternatives: they say something only if all of them say the same.
	all, found := Unknown, false
	for i := range required.NodeSelectorTerms {
		capacity, possible := c.ofTerm(&required.NodeSelectorTerms[i])
		if !possible {
			continue
		}
		if found && capacity != all {
			return Unknown
		}
		all, found = capacity, true
	}
	return all
}

// ofTerm returns the capacity type to which a term restricts a pod. A term that asks for both types at once, or for nothing at
// all, fits no node: it is not possible.
func (c Labels) ofTerm(term *corev1.NodeSelectorTerm) (capacity Type, possible bool) {
	for i := range term.MatchExpressions {
		of := c.OfExpression(&term.MatchExpressions[i])
		if of != Unknown && capacity == of.Other() {
			return Unknown, false
		}
		capacity = cmp.Or(capacity, of)
	}
	return capacity, !emptyTerm(term)
}

// OfExpression returns the capacity type to which one expression restricts a pod.
func (c Labels) OfExpression(e *corev1.NodeSelectorRequirement) Type {
	label := c.find(e.Key)
	if label == nil {
		return Unknown
	}
	switch e.Operator {
	case corev1.NodeSelectorOpIn:
		return label.ofAll(e.Values)
	case corev1.NodeSelectorOpNotIn:
		switch {
		case containsAll(e.Values, label.Spot):
			return OnDemand
		case containsAll(e.Values, label.OnDemand):
			return Spot
		}
	case corev1.NodeSelectorOpExists:
		if label.Family != "" {
			return Spot
		}
	case corev1.NodeSelectorOpDoesNotExist:
		if label.Family != "" {
			return OnDemand
		}
	}
	return Unknown
}

// KeepAffinity returns what a pod's affinity says about its capacity type, where its nodeSelector says nothing: one of two values that
// all pods share, for a cache holds many pods. Nil: it says nothing either.
func (c Labels) KeepAffinity(nodeSelector map[string]string, a *corev1.Affinity) *corev1.Affinity {
	if a == nil || a.NodeAffinity == nil || c.OfPodSpec(nodeSelector, nil) != Unknown {
		return nil
	}
	switch c.OfPodSpec(nil, a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution) {
	case Spot:
		return c.toSpot
	case OnDemand:
		return c.toOnDemand
	}
	return nil
}

// asks returns the affinity that asks for a capacity type, and for nothing else.
func (c Labels) asks(capacity Type) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: c.alternatives([]int{0}, capacity).Terms,
	}}}
}

// find returns the label with the key, nil when it is none of ours.
func (c Labels) find(key string) *NodeLabel {
	for i := range c.NodeLabels {
		if c.NodeLabels[i].Key == key {
			return &c.NodeLabels[i]
		}
	}
	return nil
}

// Of returns the capacity type that a value of the label means.
func (l *NodeLabel) Of(value string) Type {
	switch {
	case slices.Contains(l.Spot, value):
		return Spot
	case slices.Contains(l.OnDemand, value):
		return OnDemand
	}
	return Unknown
}

// ofAll returns the type that all values mean.
func (l *NodeLabel) ofAll(values []string) Type {
	if len(values) == 0 {
		return Unknown
	}
	all := l.Of(values[0])
	for _, value := range values[1:] {
		if l.Of(value) != all {
			return Unknown
		}
	}
	return all
}

func containsAll(values, wanted []string) bool {
	for _, value := range wanted {
		if !slices.Contains(values, value) {
			return false
		}
	}
	return true
}

// OfPod returns the capacity type of a pod: that of its node once it is bound, else what its spec asks for. node returns
// the labels of a node; false when it is not known, or no more.
func (c Labels) OfPod(pod *corev1.Pod, node func(name string) (map[string]string, bool)) Type {
	if pod.Spec.NodeName != "" {
		if labels, ok := node(pod.Spec.NodeName); ok {
			return c.OfNode(labels)
		}
	}
	var required *corev1.NodeSelector
	if pod.Spec.Affinity != nil && pod.Spec.Affinity.NodeAffinity != nil {
		required = pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return c.OfPodSpec(pod.Spec.NodeSelector, required)
}
