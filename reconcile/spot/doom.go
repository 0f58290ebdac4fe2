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
	// Gone says that the node is there no more: its pods serve nobody, whatever their conditions say.
	Gone bool
}

// DoomMargin is how long before a node goes the pods on it are evicted, ready replacements or not.
const DoomMargin = 30 * time.Second

// serves tells whether a pod does its work now.
func (p *Pod) serves() bool { return p.Ready && (p.Doom == nil || !p.Doom.Gone) }
