package clusters

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Types of the conditions in a [Status].
const (
	ConditionAccepted  = "Accepted"  // the Secret as it is now was vetted, and is what the member runs on
	ConditionReachable = "Reachable" // the API server answers the probes
	ConditionWarm      = "Warm"      // every needed kind is cached
	ConditionPermitted = "Permitted" // everything needed is permitted
	ConditionCurrent   = "Current"   // every cached kind is watched, so that its cache is as old as the member's answers at most
)

// Reasons of the states Connecting, Ready and Degraded, and of conditions that are fine.
const (
	ReasonConnecting   = "Connecting"   // the first probe is under way
	ReasonComparing    = "Comparing"    // another registration says that it is the same cluster, and it is not known yet whether it is
	ReasonWarming      = "Warming"      // the caches are being filled
	ReasonReady        = "Ready"        // nothing is missing
	ReasonKindsMissing = "KindsMissing" // a needed kind is not cached; the message names it and why
	ReasonNotPermitted = "NotPermitted" // the hub's account lacks a needed right; the message names it
	ReasonNotWatched   = "NotWatched"   // the watch of a cached kind is closed, and cannot be opened again
	ReasonUnknown      = "Unknown"      // it has not been found out yet
	ReasonProving      = "Proving"      // the hub tests a changed Secret while the member runs on the previous one
)

// view is all that a status is made of.
type view struct {
	registration Registration
	registered   time.Time
	// refusal is why the Secret as it is now is not in use: it was refused, or could not be proven beside the running
	// member. Nil when it is in use or under way.
	refusal *problem
	// layout is what is wrong with where the Secret is; nil when nobody asks.
	layout *finding
	// comparing is set while it is found out whether the member is another registration's cluster.
	comparing bool
	// proving is set while a changed Secret is tried beside the running member.
	proving bool
	// staleLimit is how long a cached kind may go unwatched in a healthy member.
	staleLimit time.Duration
	// member is what the running member reports, or the one that is to become it; nil if there is none.
	member *report
}

// assess makes a status out of a view. previous supplies the times of what has not changed.
func assess(v view, previous Status, now time.Time) Status {
	s := Status{Name: v.registration.Name, Registration: v.registration, RegisteredAt: v.registered, Conditions: previous.Conditions}
	s.State, s.Reason, s.Message = judge(v, now)
	if v.refusal != nil {
		s.Rival = v.refusal.rival
	}
	s.Since = previous.Since
	if s.State != previous.State || s.Since.IsZero() {
		s.Since = now
	}
	if v.member != nil {
		s.Server, s.Version, s.UID = v.member.server, v.member.identity.version, v.member.identity.uid
		s.Namespaces, s.LastProbe, s.LastAnswer = v.member.namespaces, v.member.lastProbe, v.member.lastAnswer
		for _, kind := range v.member.kinds {
			s.Kinds = append(s.Kinds, kind.KindStatus)
		}
	}
	s.Conditions = conditions(v, previous.Conditions, now)
	return s
}

// judge finds the state, its reason and its message.
func judge(v view, now time.Time) (State, string, string) {
	r := v.member
	switch {
	case r == nil && v.refusal == nil:
		return StateConnecting, ReasonConnecting, "the registration is being looked at"
	case r == nil:
		return v.refusal.state, v.refusal.reason, v.refusal.message
	case !r.probed:
		return StateConnecting, ReasonConnecting, "waiting for the first probe of the API server"
	case !r.reachable:
		return r.problem.state, r.problem.reason, r.problem.message
	case !r.admitted && v.refusal != nil:
		return v.refusal.state, v.refusal.reason, v.refusal.message
	case !r.admitted && v.comparing:
		return StateConnecting, ReasonComparing, "another registration claims the same cluster: the hub compares the two"
	case !r.settled():
		return StateConnecting, ReasonWarming, "the caches are being filled"
	}
	missing := missingKinds(r)
	switch {
	case missing != "" && len(r.denied) > 0:
		return StateDegraded, ReasonKindsMissing, "not cached: " + missing + "; not permitted: " + strings.Join(r.denied, "; ")
	case missing != "":
		return StateDegraded, ReasonKindsMissing, "not cached: " + missing
	case len(r.denied) > 0:
		return StateDegraded, ReasonNotPermitted, "not permitted: " + strings.Join(r.denied, "; ")
	}
	if stale := unwatched(r, now, v.staleLimit); stale != "" {
		return StateDegraded, ReasonNotWatched, fmt.Sprintf("cached and not watched for more than %s: %s", v.staleLimit, stale)
	}
	return StateReady, ReasonReady, "everything needed is cached and permitted"
}

// missingKinds lists the needed kinds that are not cached, with the reasons.
func missingKinds(r *report) string {
	var missing []string
	for _, kind := range r.kinds {
		if !kind.Engaged && !kind.companion && (!kind.optional || kind.Reason == reasonForbidden) || kind.excessive() {
			missing = append(missing, fmt.Sprintf("%s (%s)", kind.Kind, kind.Reason))
		}
	}
	return strings.Join(missing, ", ")
}

// conditions returns the conditions, with the times of those that have not changed.
func conditions(v view, previous []metav1.Condition, now time.Time) []metav1.Condition {
	result := make([]metav1.Condition, len(previous), 6)
	copy(result, previous)
	all := []metav1.Condition{accepted(v), reachable(v.member), warm(v.member), current(v.member, now), permitted(v.member)}
	if v.layout != nil {
		all = append(all, separate(*v.layout))
	}
	for _, c := range all {
		c.LastTransitionTime = metav1.NewTime(now)
		meta.SetStatusCondition(&result, c)
	}
	return result
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

func accepted(v view) metav1.Condition {
	switch {
	case v.refusal != nil && v.member != nil && v.member.admitted:
		return condition(ConditionAccepted, metav1.ConditionFalse, v.refusal.reason,
			"the hub does not use the current Secret and keeps the previous registration: "+v.refusal.message)
	case v.refusal != nil:
		return condition(ConditionAccepted, metav1.ConditionFalse, v.refusal.reason, v.refusal.message)
	case v.proving:
		return condition(ConditionAccepted, metav1.ConditionUnknown, ReasonProving, "the hub tests the changed Secret, and uses the previous one until then")
	}
	return condition(ConditionAccepted, metav1.ConditionTrue, "Accepted", "the kubeconfig has no field or value that is not allowed")
}

const (
	slowAnswer  = time.Second            // from which on the latency is shown
	latencyStep = 500 * time.Millisecond // to which it is rounded, so that a condition changes seldom
)

func reachable(r *report) metav1.Condition {
	switch {
	case r == nil || !r.probed:
		return condition(ConditionReachable, metav1.ConditionUnknown, ReasonUnknown, "not probed yet")
	case !r.reachable:
		return condition(ConditionReachable, metav1.ConditionFalse, r.problem.reason, r.problem.message)
	}
	message := "the API server answers the probes"
	if slow := r.latency.Round(latencyStep); slow >= slowAnswer {
		message += fmt.Sprintf(", slowly: in about %s", slow)
	}
	return condition(ConditionReachable, metav1.ConditionTrue, "Reachable", message)
}

func warm(r *report) metav1.Condition {
	if r == nil || !r.settled() {
		return condition(ConditionWarm, metav1.ConditionUnknown, ReasonWarming, "the caches are not filled yet")
	}
	if missing := missingKinds(r); missing != "" {
		return condition(ConditionWarm, metav1.ConditionFalse, ReasonKindsMissing, "not cached: "+missing)
	}
	return condition(ConditionWarm, metav1.ConditionTrue, "Warm", "every needed kind is cached")
}

func current(r *report, now time.Time) metav1.Condition {
	if r == nil || !r.warm() {
		return condition(ConditionCurrent, metav1.ConditionUnknown, ReasonWarming, "nothing is cached yet")
	}
	if stale := unwatched(r, now, staleAfter); stale != "" {
		return condition(ConditionCurrent, metav1.ConditionFalse, ReasonNotWatched, "cached and not watched now: "+stale)
	}
	return condition(ConditionCurrent, metav1.ConditionTrue, "Watched", "every cached kind is watched")
}

// unwatched lists the cached kinds that have not been watched for at least so long, and since when.
func unwatched(r *report, now time.Time, since time.Duration) string {
	var stale []string
	for _, kind := range r.kinds {
		if !kind.closed.IsZero() && now.Sub(kind.closed) >= since {
			stale = append(stale, fmt.Sprintf("%s (since %s)", kind.Kind, kind.closed.UTC().Format(time.RFC3339)))
		}
	}
	return strings.Join(stale, ", ")
}

func permitted(r *report) metav1.Condition {
	switch {
	case r != nil && len(r.denied) > 0:
		return condition(ConditionPermitted, metav1.ConditionFalse, ReasonNotPermitted, "not permitted: "+strings.Join(r.denied, "; "))
	case r == nil || !r.checked:
		return condition(ConditionPermitted, metav1.ConditionUnknown, ReasonUnknown, "the member has not said what it permits")
	}
	return condition(ConditionPermitted, metav1.ConditionTrue, "Permitted", "everything needed is permitted")
}
