package plan

import "time"

// Interruption is a notice that a node goes, or the fact that it has gone. Its pods stop being supply at once, unless the notice is only
// advisory. Read it only.
type Interruption struct {
	// Node that goes.
	Node string
	// Notice names what announced it, for people: "taint karpenter.sh/disrupted" or "the node was deleted".
	Notice string
	// Since is when it was announced.
	Since time.Time
	// By is when the node goes at the latest; zero: nobody says. Shortly before, stand-ins do not wait any longer for
	// their replacements, so that they end in order; see [InterruptionMargin].
	By time.Time
	// Weight is how certain and how urgent the notice is; see [Weight].
	Weight Weight
	// Gone says that the node is there no more: its pods serve nobody, whatever their conditions say.
	Gone bool
}

// Weight is what a notice that a node goes is worth. The zero value is [WeightCertain].
type Weight uint8

// Weights of notices.
const (
	// WeightCertain: the node goes, and nobody says when. Its pods are replaced without waiting for windows and cool-downs, in
	// batches, and what serves of the on-demand floor goes only when its replacement serves.
	WeightCertain Weight = iota
	// WeightDeadline: the node goes at a known time ([Interruption.By]), or has gone. Its pods are replaced at once.
	WeightDeadline
	// WeightAdvisory: somebody would like the node to go, and may take that back. Its pods are replaced as moves are: within
	// windows, cool-downs and limits.
	WeightAdvisory
)

const (
	// InterruptionMargin is how long before a node goes the pods on it are evicted, ready replacements or not.
	InterruptionMargin = 30 * time.Second
	// InterruptionUrgent is how soon a node must go for its pods to be replaced all at once. A deadline that is further away leaves time
	// for batches.
	InterruptionUrgent = 10 * time.Minute
)

// EffectiveWeight returns what a notice is worth: where the node has gone, or the time is known, there is a deadline whatever the sign says.
func (d *Interruption) EffectiveWeight() Weight {
	if d.Gone || !d.By.IsZero() {
		return WeightDeadline
	}
	return d.Weight
}

// Leaving reports whether a pod's node goes for certain, or has gone: the pod is no supply any more.
func (p *Pod) Leaving() bool {
	return p.Interruption != nil && p.Interruption.EffectiveWeight() != WeightAdvisory
}

// Advised reports whether there is an advisory notice for a pod's node: the pod stays supply until it is replaced.
func (p *Pod) Advised() bool {
	return p.Interruption != nil && p.Interruption.EffectiveWeight() == WeightAdvisory
}

// Serves reports whether a pod does its work now.
func (p *Pod) Serves() bool { return p.Ready && (p.Interruption == nil || !p.Interruption.Gone) }
