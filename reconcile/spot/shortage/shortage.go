package shortage

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/when"
)

// Settings are the times of shortages. The zero value is not usable; see [DefaultSettings].
type Settings struct {
	// FirstProbe is the time from a decision to its first probe; it doubles with every probe that was unsuccessful, up to MostBetween.
	FirstProbe, MostBetween time.Duration
	// ProbeTime is how long a probe may wait for a node of which nothing is known.
	ProbeTime time.Duration
	// NodeStart is how long a node that is on its way may take: as long as that, what waits for it is no sign of a shortage.
	NodeStart time.Duration
}

// DefaultSettings probes after 2 minutes, then after 4, and so on up to 30, and gives nodes 5 minutes to start.
func DefaultSettings() Settings {
	return Settings{FirstProbe: 2 * time.Minute, MostBetween: 30 * time.Minute, ProbeTime: 2 * time.Minute, NodeStart: 5 * time.Minute}
}

// Pod is what a [Tracker] has to know of a pod that is steered to its capacity type, which is spot as a rule.
type Pod struct {
	UID          types.UID
	Namespace    string
	Requirements capacity.Requirements
	// Timeout is how long the pod may be unschedulable before the capacity is dry for its requirements; see [spot.Settings.PendingTimeout].
	Timeout time.Duration
	// UnschedulableSince is as in [spot.Pod].
	UnschedulableSince time.Time
	// NodeComing is as in [spot.Pod]: the timeout does not run out meanwhile, up to [Settings.NodeStart].
	NodeComing bool
	// Unasked says that nobody has looked yet whether a node is coming: the pod is not judged.
	Unasked bool
	// BoundAt is when a node took it; zero: none has. NodeJoined is when that node came; zero: that is not known.
	BoundAt, NodeJoined time.Time
	// Replica names the replica where it outlives the pod, as an ordinal of a StatefulSet does; empty: it does not.
	Replica string
}

// Decision says that capacity of a type has no room for pods that are as hard to place as its Requirements say, or harder: for those of some
// namespaces at first, whose pods have shown it, and for all once pods of several namespaces have, or a probe.
type Decision struct {
	Requirements capacity.Requirements
	// Capacity is never [capacity.Unknown].
	Capacity capacity.Type
	// Since is when that was found.
	Since time.Time
	// Tries is how many probes were unsuccessful.
	Tries int
	// Relapses is how often in a row a probe found room and no replica did.
	Relapses int
	// NextProbe is when the next probe starts, or did.
	NextProbe time.Time
	// Namespaces for whose pods it holds, ordered; nil: for all.
	Namespaces []string
}

// appliesTo reports whether it holds for pods of a namespace.
func (v *Decision) appliesTo(namespace string) bool {
	return v.Namespaces == nil || slices.Contains(v.Namespaces, namespace)
}

// appliesToAll reports whether it holds for pods of all some namespaces; nil: of every namespace.
func (v *Decision) appliesToAll(namespaces []string) bool {
	return v.Namespaces == nil || (namespaces != nil && !slices.ContainsFunc(namespaces, func(n string) bool { return !v.appliesTo(n) }))
}

// Probe is a surplus pod that finds out whether capacity that was dry has room again, so that no replica has to: a pause pod of
// a decision's requirements, steered to its capacity type, of the lowest priority, in Plimsoll's own namespace. It exists as long as the
// decision stands and is the only record of it: between tries it waits behind a scheduling gate, and its annotations keep the
// decision through restarts; see [ProbeOf] and [Probe.Annotations]. Each try is a pod of its own.
type Probe struct {
	// Name of the pod: the same decision and try have the same name. UID is empty until it exists.
	Name string
	UID  types.UID
	Decision
	// Gated says that the scheduling gate is on.
	Gated bool
	// OpenedAt is when the gate was taken off; zero while it is on.
	OpenedAt time.Time
	// BoundAt is when a node took it: there is room. Zero: none has.
	BoundAt time.Time
	// NodeJoined is when that node came; zero: that is not known.
	NodeJoined time.Time
}

// Plan is what has to be done about the probes of a member now.
type Plan struct {
	// Create are probes that are missing; each with its gate on.
	Create []Probe
	// Open are the names of probes whose gate comes off now, which writes [policy.Keys.ProbeOpened] as well.
	Open []string
	// Note are probes whose decision holds for other namespaces than is written on them.
	Note []Probe
	// Delete are the names of probes that are over.
	Delete []string
	// Recheck is when to step again although nothing has changed; zero: only on change.
	Recheck time.Time
}

// Empty reports whether nothing has to be done.
func (p *Plan) Empty() bool { return len(p.Create)+len(p.Open)+len(p.Note)+len(p.Delete) == 0 }

// add takes in the plan of another shortage.
func (p *Plan) add(other Plan) {
	p.Create, p.Open = append(p.Create, other.Create...), append(p.Open, other.Open...)
	p.Note, p.Delete = append(p.Note, other.Note...), append(p.Delete, other.Delete...)
	p.Recheck = when.Earlier(p.Recheck, other.Recheck)
}
