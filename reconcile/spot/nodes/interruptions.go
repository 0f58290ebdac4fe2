package nodes

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
)

// Sign is one way in which a node is said to go away soon: a taint or a condition. Fields that are empty match anything,
// but for Status.
type Sign struct {
	// Taint is the key of a taint.
	Taint  string
	Effect corev1.TaintEffect
	Value  string
	// Condition is the type of a node condition.
	Condition string
	// Status of the condition; empty: True.
	Status corev1.ConditionStatus
	Reason string
	// Message is a part of the condition's message.
	Message string
	// Within is how soon after the sign the node goes at the latest; 0: nobody knows.
	Within time.Duration
	// Weight is what the sign is worth. A sign with Within has a deadline and cannot be advisory.
	Weight plan.Weight
	// Ignore says that what matches means nothing, whatever a later sign says.
	Ignore bool
}

// knownSigns are recognised without configuration. Signs of a mere candidate are not among them (Cluster Autoscaler's
// DeletionCandidateOfClusterAutoscaler), nor is a cordon, nor a node that cannot be reached: it may come back with its pods.
//
// Karpenter's taint alone is advisory: Karpenter puts it on first, then waits for the replacement nodes, for up to an hour, and
// takes it off again if they do not come. When they are there, and in all cases that nobody can stop, such as an interruption,
// it deletes the node, which is certain, and drains it.
var knownSigns = []Sign{
	{Taint: "karpenter.sh/disrupted", Weight: plan.WeightAdvisory},
	{Taint: "karpenter.sh/disruption", Value: "disrupting", Weight: plan.WeightAdvisory}, // before Karpenter 1.0
	{Taint: "aws-node-termination-handler/spot-itn", Within: 2 * time.Minute},
	{Taint: "aws-node-termination-handler/rebalance-recommendation", Weight: plan.WeightAdvisory},
	{Taint: "aws-node-termination-handler/asg-lifecycle-termination"},
	{Taint: "aws-node-termination-handler/scheduled-maintenance"},
	{Taint: "cloud.google.com/impending-node-termination", Within: 30 * time.Second},
	{Taint: "cloudprovider.azure.microsoft.com/draining", Value: "spot-eviction", Within: 30 * time.Second},
	{Condition: "PreemptScheduled", Within: 30 * time.Second}, // AKS; a freeze or a reboot does not end the node
	{Condition: "TerminateScheduled"},
	{Condition: "RedeployScheduled"},
	{Condition: "VMEventScheduled", Reason: "PreemptScheduled", Within: 30 * time.Second},
	{Condition: "VMEventScheduled", Reason: "TerminateScheduled"},
	{Condition: "VMEventScheduled", Reason: "RedeployScheduled"},
	{Taint: "ToBeDeletedByClusterAutoscaler"},
	{Taint: corev1.TaintNodeOutOfService, Weight: plan.WeightDeadline}, // it is down already
	// The kubelet's graceful shutdown; it has no reason of its own.
	{Condition: string(corev1.NodeReady), Status: corev1.ConditionFalse, Message: "node is shutting down", Within: 30 * time.Second},
}

// Interruptions reports which nodes are about to go. It is read-only after [NewInterruptions] and safe for concurrent use; the
// zero value knows what is known without configuration.
type Interruptions struct{ signs []Sign }

// NewInterruptions returns the configured signs, followed by those that are known without configuration: Karpenter's, AWS
// Node Termination Handler's, GKE's, AKS's, Cluster Autoscaler's, and those of a node's own shutdown. The first that matches
// a taint or a condition counts for it.
func NewInterruptions(configured ...Sign) (Interruptions, error) {
	for i := range configured {
		if err := configured[i].validate(); err != nil {
			return Interruptions{}, fmt.Errorf("interruption %d: %w", i, err)
		}
	}
	return Interruptions{signs: slices.Concat(configured, knownSigns)}, nil
}

func (s *Sign) validate() error {
	ofTaint, ofCondition := s.Effect != "" || s.Value != "", s.Status != "" || s.Reason != "" || s.Message != ""
	effects := []corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	states := []corev1.ConditionStatus{"", corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown}
	switch {
	case (s.Taint == "") == (s.Condition == ""):
		return errors.New("want either a taint or a condition")
	case s.Taint != "" && ofCondition:
		return fmt.Errorf("taint %q: status, reason and message apply to conditions only", phrase.Value(s.Taint))
	case s.Condition != "" && ofTaint:
		return fmt.Errorf("condition %q: effect and value apply to taints only", phrase.Value(s.Condition))
	case !slices.Contains(effects, s.Effect):
		return fmt.Errorf("taint %q: effect %q: want NoSchedule, PreferNoSchedule or NoExecute", phrase.Value(s.Taint), phrase.Value(string(s.Effect)))
	case s.Within < 0:
		return fmt.Errorf("%q: within %s: want no less than 0", phrase.Value(s.Taint+s.Condition), s.Within)
	case s.Within > 0 && s.Weight == plan.WeightAdvisory:
		return fmt.Errorf("%q: within %s: an advisory sign has no deadline", phrase.Value(s.Taint+s.Condition), s.Within)
	case !slices.Contains(states, s.Status):
		return fmt.Errorf("condition %q: status %q: want True, False or Unknown", phrase.Value(s.Condition), phrase.Value(string(s.Status)))
	}
	if name := s.Taint + s.Condition; len(validation.IsQualifiedName(name)) > 0 {
		return fmt.Errorf("%q: %s", phrase.Value(name), validation.IsQualifiedName(name)[0])
	}
	return nil
}

// Of returns the interruption of a node; nil: it stays. Of several notices the one with the most weight counts, the first of those that
// weigh the same. now is when it was announced where the node does not say.
func (in *Interruptions) Of(node *corev1.Node, now time.Time) *plan.Interruption {
	var interruption *plan.Interruption
	if !node.DeletionTimestamp.IsZero() {
		interruption = &plan.Interruption{Node: node.Name, Notice: "the node is being deleted", Since: node.DeletionTimestamp.Time}
	}
	for i := range node.Spec.Taints {
		t := &node.Spec.Taints[i]
		if sign := in.ofTaint(t); sign != nil {
			at := now
			if t.TimeAdded != nil {
				at = t.TimeAdded.Time
			}
			interruption = heavier(interruption, sign.interruption(node.Name, "taint "+t.Key, at))
		}
	}
	for i := range node.Status.Conditions {
		c := &node.Status.Conditions[i]
		if sign := in.ofCondition(c); sign != nil {
			at := now
			if !c.LastTransitionTime.IsZero() {
				at = c.LastTransitionTime.Time
			}
			interruption = heavier(interruption, sign.interruption(node.Name, "condition "+string(c.Type)+"="+string(c.Status), at))
		}
	}
	return interruption
}

func (s *Sign) interruption(node, notice string, since time.Time) *plan.Interruption {
	d := &plan.Interruption{Node: node, Notice: notice, Since: since, Weight: s.Weight}
	if s.Within > 0 {
		d.By, d.Weight = since.Add(s.Within), plan.WeightDeadline
	}
	return d
}

// heavier returns the interruption with the more weight, a unless b has more; a may be nil.
func heavier(a, b *plan.Interruption) *plan.Interruption {
	order := [...]int{plan.WeightAdvisory: 0, plan.WeightCertain: 1, plan.WeightDeadline: 2}
	if a == nil || order[b.EffectiveWeight()] > order[a.EffectiveWeight()] {
		return b
	}
	return a
}

// ofTaint returns the sign that a taint is; nil: none.
func (in *Interruptions) ofTaint(t *corev1.Taint) *Sign {
	return in.first(func(s *Sign) bool {
		return s.Taint != "" && s.Taint == t.Key && (s.Effect == "" || s.Effect == t.Effect) && (s.Value == "" || s.Value == t.Value)
	})
}

// ofCondition returns the sign that a condition is; nil: none.
func (in *Interruptions) ofCondition(c *corev1.NodeCondition) *Sign {
	return in.first(func(s *Sign) bool {
		status := s.Status
		if status == "" {
			status = corev1.ConditionTrue
		}
		return s.Condition != "" && s.Condition == string(c.Type) && status == c.Status &&
			(s.Reason == "" || s.Reason == c.Reason) && strings.Contains(c.Message, s.Message)
	})
}

// first returns the first sign that matches, nil when there is none or it says to ignore what matched.
func (in *Interruptions) first(matches func(*Sign) bool) *Sign {
	signs := in.signs
	if signs == nil {
		signs = knownSigns
	}
	for i := range signs {
		if s := &signs[i]; matches(s) {
			if s.Ignore {
				return nil
			}
			return s
		}
	}
	return nil
}

// Keep copies what is read of a node beside its labels, into the object that is cached: what shows that it is about to go or how it
// starts, and nothing that beats.
func (in *Interruptions) Keep(src, dst *corev1.Node) {
	in.keepSigns(src, dst)
	keepStart(src, dst)
}

// keepSigns copies what shows that a node is about to go: of a node that stays, nothing.
func (in *Interruptions) keepSigns(src, dst *corev1.Node) {
	dst.Spec.Taints, dst.Status.Conditions = nil, nil // of another declaration of the kind
	for i := range src.Spec.Taints {
		if t := &src.Spec.Taints[i]; in.ofTaint(t) != nil {
			dst.Spec.Taints = append(dst.Spec.Taints, *t)
		}
	}
	for i := range src.Status.Conditions {
		if c := &src.Status.Conditions[i]; in.ofCondition(c) != nil {
			dst.Status.Conditions = append(dst.Status.Conditions, corev1.NodeCondition{
				Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, LastTransitionTime: c.LastTransitionTime})
		}
	}
}
