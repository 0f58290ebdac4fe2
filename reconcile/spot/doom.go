package spot

import "time"

// Doom is a notice that a node goes, or the fact that it has gone. Its pods stop being supply at once. Read it only.
type Doom struct {
	// Node that goes.
	Node string
	// Notice names what announced it, for people: "taint karpenter.sh/disrupted" or "the node is gone".
	Notice string
	// Since is when it was announced.
	Since time.Time
	// By is when the node goes at the latest; zero: nobody says. Shortly before, stand-ins do not wait any longer for
	// their replacements, so that they end in order; see [DoomMargin].
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
	// WeightDeadline: the node goes at a known time ([Doom.By]), or has gone. Its pods are replaced at once.
	WeightDeadline
	// WeightAdvisory: somebody would like the node to go, and may take that back. Its pods are replaced as moves are: within
	// windows, cool-downs and limits.
	WeightAdvisory
)

// DoomMargin is how long before a node goes the pods on it are evicted, ready replacements or not.
const DoomMargin = 30 * time.Second

// serves tells whether a pod does its work now.
func (p *Pod) serves() bool { return p.Ready && (p.Doom == nil || !p.Doom.Gone) }
