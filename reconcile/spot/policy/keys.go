package policy

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
)

// DefaultPrefix is the prefix of labels and annotations where the configuration names no other.
const DefaultPrefix = "plimsoll.dev"

// DeletionCost is Kubernetes' annotation by which a ReplicaSet that shrinks chooses among ready pods: the lowest goes first.
const DeletionCost = "controller.kubernetes.io/pod-deletion-cost"

// MovedValue is the value of the moved annotation.
const MovedValue = "true"

// EnabledValue is the only value of the enabled label that means yes.
const EnabledValue = "true"

// Keys makes the keys of labels and annotations from a prefix. The suffixes are a compatibility contract. Use [NewKeys].
type Keys struct {
	// Prefix is what stands before the slash.
	Prefix string
}

// NewKeys checks that prefix can stand before the slash of a label key; empty means [DefaultPrefix].
func NewKeys(prefix string) (Keys, error) {
	if prefix == "" {
		prefix = DefaultPrefix
	}
	if problems := validation.IsDNS1123Subdomain(prefix); len(problems) > 0 {
		return Keys{}, fmt.Errorf("annotation prefix %q: %s", phrase.Value(prefix), strings.Join(problems, "; "))
	}
	return Keys{Prefix: prefix}, nil
}

// Enabled is the label that a workload and its namespace both need, with the value "true".
func (k Keys) Enabled() string { return k.Prefix + "/enabled" }

// SpotPercentage is the annotation with the share of replicas on spot capacity: 0 to 100, with or without %.
func (k Keys) SpotPercentage() string { return k.Prefix + "/spot-percentage" }

// MinOnDemand is the annotation with the floor of on-demand replicas: 0 to 10000.
func (k Keys) MinOnDemand() string { return k.Prefix + "/min-on-demand" }

// DisruptionSchedule is the annotation with the times at which a disruption window opens: five cron fields, in UTC unless
// DisruptionTimezone names another zone.
func (k Keys) DisruptionSchedule() string { return k.Prefix + "/disruption-schedule" }

// DisruptionDuration is the annotation with the time that a disruption window stays open: a Go duration.
func (k Keys) DisruptionDuration() string { return k.Prefix + "/disruption-duration" }

// DisruptionTimezone is the annotation with the IANA time zone of the schedule beside it.
func (k Keys) DisruptionTimezone() string { return k.Prefix + "/disruption-timezone" }

// ReadOnly is the annotation, "true" or "false", on a workload or namespace that is only looked at; see [Modes].
func (k Keys) ReadOnly() string { return k.Prefix + "/read-only" }

// Paused is the annotation, "true" or "false", on a workload or namespace of which nothing is moved; see [Modes].
func (k Keys) Paused() string { return k.Prefix + "/paused" }

// Strategy is the annotation with the way in which replicas are moved: evict or release.
func (k Keys) Strategy() string { return k.Prefix + "/strategy" }

// PendingTimeout is the annotation with the time after which an unschedulable spot pod is a sign of a drought: a Go duration.
func (k Keys) PendingTimeout() string { return k.Prefix + "/spot-pending-timeout" }

// MaxMoves is the annotation with how many replicas may be on the move at a time: a number, or a percentage of them.
func (k Keys) MaxMoves() string { return k.Prefix + "/max-moves" }

// Cooldown is the annotation with the least time between two batches of moves: a Go duration.
func (k Keys) Cooldown() string { return k.Prefix + "/cool-down" }

// Slot is the label on a pod with the number of the slot that it holds, counted from 0.
func (k Keys) Slot() string { return k.Prefix + "/slot" }

// Reservation is the annotation on a pod with the id of the reservation that it was admitted on.
func (k Keys) Reservation() string { return k.Prefix + "/reservation" }

// Moved is the annotation, "true", on a pod that replaces one we evicted. The newest such pod shows when the last batch of
// moves was, after a restart as well.
func (k Keys) Moved() string { return k.Prefix + "/moved" }

// Tried is the annotation on a pod of a StatefulSet with the time, in RFC 3339, at which its ordinal was found to have no node of the
// other capacity type although a probe had found room; see [shortage.Tracker.Tried]. A hub that starts later reads it.
func (k Keys) Tried() string { return k.Prefix + "/tried" }

// Enabled reports whether a workload asks for placement: both labels must be exactly "true".
func Enabled(keys Keys, workloadLabels, namespaceLabels map[string]string) bool {
	key := keys.Enabled()
	return workloadLabels[key] == EnabledValue && namespaceLabels[key] == EnabledValue
}

// TriedTime is how long a replica is not tried again that found no node although a probe had: its volume is most likely
// bound to a zone without such nodes.
const TriedTime = 24 * time.Hour

// ProbeRequirements is the annotation with the decision's shape; see [capacity.Requirements.String].
func (k Keys) ProbeRequirements() string { return k.Prefix + "/probe-shape" }

// ProbeCapacity is the annotation with the capacity type that is dry; missing: spot.
func (k Keys) ProbeCapacity() string { return k.Prefix + "/probe-capacity" }

// ProbeNamespaces is the annotation with the namespaces whose pods the decision is about, ordered and separated by commas; missing: all.
func (k Keys) ProbeNamespaces() string { return k.Prefix + "/probe-namespaces" }

// ProbeSince is the annotation with the time since when the capacity is dry, in RFC 3339.
func (k Keys) ProbeSince() string { return k.Prefix + "/probe-since" }

// ProbeTries is the annotation with the number of probes that were unsuccessful before this one.
func (k Keys) ProbeTries() string { return k.Prefix + "/probe-tries" }

// ProbeRelapses is the annotation with the number of times in a row that a probe found room and no replica did; missing: 0.
func (k Keys) ProbeRelapses() string { return k.Prefix + "/probe-relapses" }

// ProbeNext is the annotation with the time at which the gate comes off, in RFC 3339.
func (k Keys) ProbeNext() string { return k.Prefix + "/probe-next" }

// ProbeOpened is the annotation with the time at which the gate came off, in RFC 3339.
func (k Keys) ProbeOpened() string { return k.Prefix + "/probe-opened" }

// ProbeSteering is the annotation that says by what the probe was sent to spot; see [capacity.Steering].
func (k Keys) ProbeSteering() string { return k.Prefix + "/probe-steering" }

// Released is the annotation on a pod that has left its ReplicaSet and serves until its replacement is ready.
func (k Keys) Released() string { return k.Prefix + "/released" }

// PodKeys are the keys that are looked for on every pod, made once for many pods.
type PodKeys struct{ Slot, Reservation, Moved, Tried, Released string }

// OfPods returns the keys that are looked for on every pod.
func (k Keys) OfPods() *PodKeys {
	return &PodKeys{Slot: k.Slot(), Reservation: k.Reservation(), Moved: k.Moved(), Tried: k.Tried(), Released: k.Released()}
}
