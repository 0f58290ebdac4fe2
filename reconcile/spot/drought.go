package spot

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// DroughtSettings are the times of droughts. The zero value is not usable; see [DefaultDroughtSettings].
type DroughtSettings struct {
	// FirstProbe is the time from a verdict to its first probe; it doubles with every probe that was in vain, up to MostBetween.
	FirstProbe, MostBetween time.Duration
	// ProbeTime is how long a probe may wait for a node. It is long enough for an autoscaler to bring one.
	ProbeTime time.Duration
}

// DefaultDroughtSettings probes after 2 minutes, then after 4, and so on up to 30.
func DefaultDroughtSettings() DroughtSettings {
	return DroughtSettings{FirstProbe: 2 * time.Minute, MostBetween: 30 * time.Minute, ProbeTime: 2 * time.Minute}
}

// SpotPod is what a [Drought] has to know of a pod that is steered to spot capacity.
type SpotPod struct {
	UID   types.UID
	Shape Shape
	// Timeout is how long the pod may be unschedulable before spot is dry for its shape; see [Settings.PendingTimeout].
	Timeout time.Duration
	// UnschedulableSince is as in [Pod].
	UnschedulableSince time.Time
	// BoundAt is when a node took it; zero: none has.
	BoundAt time.Time
}

// Verdict says that spot capacity has no room for pods that are as hard to place as Shape, or harder.
type Verdict struct {
	Shape Shape
	// Since is when that was found.
	Since time.Time
	// Tries is how many probes were in vain.
	Tries int
	// NextProbe is when the next probe starts, or did.
	NextProbe time.Time
}

// Probe is a surplus pod that finds out whether spot has room again, so that no replica has to: a pause pod of a verdict's
// shape, steered to spot, of the lowest priority, in Plimsoll's own namespace. It exists as long as the verdict stands and is
// the only record of it: between tries it waits behind a scheduling gate, and its annotations keep the verdict through
// restarts; see [ProbeOf] and [Probe.Annotations]. Each try is a pod of its own.
type Probe struct {
	// Name of the pod: the same verdict and try have the same name.
	Name string
	Verdict
	// Gated says that the scheduling gate is on.
	Gated bool
	// OpenedAt is when the gate was taken off; zero while it is on.
	OpenedAt time.Time
	// BoundAt is when a node took it: spot has room. Zero: none has.
	BoundAt time.Time
}

// DroughtPlan is what has to be done about the probes of a member now.
type DroughtPlan struct {
	// Create are probes that are missing; each with its gate on.
	Create []Probe
	// Open are the names of probes whose gate comes off now, which writes [Keys.ProbeOpened] as well.
	Open []string
	// Delete are the names of probes that are over.
	Delete []string
	// Recheck is when to step again although nothing has changed; zero: only on change.
	Recheck time.Time
}
