package spot

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/admission"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/slots"
)

// doubtTimeout is how long an admission waits for news of its owner when the counts do not show what is missing. The news
// is an event of the informer, and comes at once unless the watch lags.
const doubtTimeout = 250 * time.Millisecond

// PodRequest is one pod that a member's API server asks about. Its strings may share memory with a larger buffer: what is
// kept is cloned.
type PodRequest struct {
	admission.Incoming
	// RequestUID is that of the AdmissionRequest.
	RequestUID string
	// Namespace of the pod; Name is empty while only generateName is set.
	Namespace, Name string
	// Owner is the pod's controller reference; zero when it has none.
	Owner OwnerRef
	// DryRun reserves nothing.
	DryRun bool
	// PatchInto is memory that the patch may be written to; nil: it is allocated.
	PatchInto []byte
}

// OwnerRef is a controller reference.
type OwnerRef struct{ APIVersion, Kind, Name, UID string }

// Outcome is how an admission was answered; it is the label value of the metric.
type Outcome string

// Outcomes.
const (
	OutcomeSpot       Outcome = "spot"        // sent to spot capacity
	OutcomeOnDemand   Outcome = "on_demand"   // sent to on-demand capacity
	OutcomeNotOwned   Outcome = "not_owned"   // nothing whose pods are placed controls the pod
	OutcomeNotEnabled Outcome = "not_enabled" // the workload, or its namespace, is not enabled
	OutcomeUnmanaged  Outcome = "unmanaged"   // enabled, and no value is set anywhere
	OutcomeReadOnly   Outcome = "read_only"   // the hub is configured to change nothing
	OutcomeWarming    Outcome = "warming"     // the member's caches are not synced yet
	OutcomeUnknown    Outcome = "unknown"     // the owner could not be read in time
)

// Placement is the answer for one pod. The pod is always let through.
type Placement struct {
	Outcome Outcome
	// Patch is a JSON patch; empty: the pod stays as it is.
	Patch []byte
	// Reservation is the zero value unless the pod was placed.
	Reservation plan.Reservation
	// Reason is a constant sentence; empty unless the pod was placed.
	Reason string
}

// Reads reports whether placement looks at a pod's label or annotation with that key.
func (e *Engine) Reads(key []byte) bool { return e.patcher.Reads(key) }

// Place decides where a pod goes. It makes no API call but one live read of an owner that the cache does not know, shared
// by all pods that wait for it, and is done when ctx is.
func (e *Engine) Place(ctx context.Context, memberName string, pod *PodRequest) Placement {
	m := e.member(memberName)
	if m == nil {
		return Placement{Outcome: OutcomeWarming}
	}
	dir := m.awaitDirectory(ctx)
	if dir == nil {
		return Placement{Outcome: OutcomeWarming}
	}
	kind := e.kinds.owner(pod.Owner.APIVersion, pod.Owner.Kind)
	if kind == "" {
		return Placement{Outcome: OutcomeNotOwned}
	}
	pod.ReplicaSet = kind != KindStatefulSet
	s, err := m.standing(ctx, dir, kind, pod)
	switch {
	case errors.Is(err, errNotOfWorkload):
		return Placement{Outcome: OutcomeNotOwned}
	case err != nil:
		e.options.Log.WarnContext(ctx, "cannot read the owner of a pod; the pod is admitted unchanged", "member", memberName,
			"namespace", pod.Namespace, "owner", pod.Owner.Kind+"/"+pod.Owner.Name, "error", err)
		return Placement{Outcome: OutcomeUnknown}
	case s.others:
		return Placement{Outcome: OutcomeNotOwned}
	case s.policy == nil:
		return Placement{Outcome: OutcomeNotEnabled}
	case e.settingsFor(memberName, s.policy).ReadOnly:
		return Placement{Outcome: OutcomeReadOnly}
	}
	placed := e.reserve(ctx, m, dir, s, pod)
	if placed.Reservation.Capacity == capacity.Unknown {
		placed.Outcome = OutcomeUnmanaged
	}
	return placed
}

var errNotOfWorkload = errors.New("the owner belongs to no workload that can be placed")

// standing looks an owner up, and reads it live when the cache does not know it, or what was read live is stale.
func (m *member) standing(ctx context.Context, dir *directory, kind string, pod *PodRequest) (standing, error) {
	key := ownerKey{pod.Namespace, types.UID(pod.Owner.UID)}
	if s, ok := dir.lookup(key, time.Now()); ok {
		return s, nil
	}
	err := m.reads.read(ctx, m.cluster.Live(), dir, ownerRef{
		ownerKey: ownerKey{strings.Clone(pod.Namespace), types.UID(strings.Clone(pod.Owner.UID))}, kind: kind, name: strings.Clone(pod.Owner.Name),
	})
	if err != nil {
		return standing{}, err
	}
	s, ok := dir.lookup(key, time.Now())
	if !ok {
		return standing{}, errNotOfWorkload
	}
	return s, nil
}

// reserve asks the accounting until it has no doubt, or the time to doubt is over.
func (e *Engine) reserve(ctx context.Context, m *member, dir *directory, s standing, pod *PodRequest) Placement {
	taken := m.takenOver(dir)
	pod.together(dir, s.owner)
	if s.isSet && dir.droughts.AnyTried.Load() {
		pod.TriedSpot, pod.TriedOnDemand = dir.droughts.TriedAt(replicaName(s.owner.uid, pod.Name))
	}
	var deadline <-chan time.Time
	for final := false; ; {
		placed, doubt, news := e.ask(dir.nodes.Census.Steering(), s, pod, taken, final)
		if doubt == slots.DoubtNone {
			if final {
				e.options.Log.DebugContext(ctx, "placed a pod in doubt: its owner's other pods were not all known in time", "member", m.name,
					"namespace", pod.Namespace, "owner", pod.Owner.Kind+"/"+pod.Owner.Name, "outcome", placed.Outcome, "reason", placed.Reason)
			}
			return placed
		}
		if doubt == slots.DoubtUnproven {
			final = m.prove(ctx, dir, &s) != nil
			if ctx.Err() != nil {
				return Placement{Outcome: OutcomeUnknown}
			}
			continue
		}
		if deadline == nil {
			timer := time.NewTimer(doubtTimeout)
			defer timer.Stop()
			deadline = timer.C
		}
		select {
		case <-news:
		case <-deadline:
			final = true
		case <-ctx.Done():
			return Placement{Outcome: OutcomeUnknown} // nobody hears the answer: nothing must be reserved for it
		}
		if again, ok := dir.lookup(s.owner.ownerKey, time.Now()); ok {
			s = again // the owner may want more by now
		}
	}
}

// ask puts one question to the accounting. With a doubt comes the channel that the owner's next news close.
func (e *Engine) ask(steering *capacity.Steering, s standing, pod *PodRequest, taken time.Time, final bool) (Placement, slots.Doubt, <-chan struct{}) {
	if s.policy == nil {
		return Placement{Outcome: OutcomeNotEnabled}, slots.DoubtNone, nil
	}
	ask := slots.Ask{ID: pod.RequestUID, Wanted: s.wanted, Mix: s.mix(), Start: s.start, Final: final, DryRun: pod.DryRun}
	if s.isSet {
		ask.Ordinal, _ = phrase.Ordinal(pod.Name)
	}
	ask.ID, pod.Floor = strings.Clone(ask.ID), ask.Mix.Floor
	s.owner.mu.Lock()
	defer s.owner.mu.Unlock()
	s.owner.slots.TakeOver(taken)
	patch, answer := e.patcher.Admit(pod.PatchInto[:0], &pod.Incoming, steering, s.owner.slots, ask, time.Now())
	if answer.Doubt != slots.DoubtNone {
		return Placement{}, answer.Doubt, s.owner.heard()
	}
	outcome := OutcomeOnDemand
	if answer.Capacity == capacity.Spot {
		outcome = OutcomeSpot
	}
	return Placement{Outcome: outcome, Patch: patch, Reservation: answer.Reservation, Reason: answer.Reason}, slots.DoubtNone, nil
}

// together finds out over which keys a new pod of an owner is to be spread together, if it has a constraint that leaves it open.
func (pod *PodRequest) together(dir *directory, o *owner) {
	pod.Together = nil
	if slices.ContainsFunc(pod.Spreads, func(s admission.Spread) bool { return s.CountsByDefault() }) {
		pod.Together = dir.together(o)
	}
}
