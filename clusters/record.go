package clusters

import (
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"github.com/plimsoll-dev/plimsoll/clusters/plain"
)

// eventJoined is the reason of the one Event about a registration that reports no problem; the others have a [Status.Reason].
const eventJoined = "Joined" // The member is `Ready`, for the first time or again.

// recorder reports what changed about a member: with Events on its Secret, in the log, and in metrics.
type recorder struct {
	events  events.EventRecorder // may be nil
	log     *slog.Logger
	metrics *metrics
}

// changed compares two statuses and records what is new, once.
func (r *recorder) changed(before, now Status) {
	r.metrics.setState(now.Name, now.State)
	if before.State != now.State || before.Reason != now.Reason {
		r.log.Info("member changed", "member", now.Name, "state", now.State, "reason", now.Reason, "message", now.Message, "rival", now.Rival)
	}
	troubled, isNew := trouble(now), trouble(now) != trouble(before)
	switch {
	case troubled != "" && isNew:
		r.event(now, corev1.EventTypeWarning, now.Reason, now.Message)
	case now.State == StateReady && before.State != StateReady:
		r.event(now, corev1.EventTypeNormal, eventJoined, "the member is ready")
	}
	if now.State == StateRefused && isNew {
		r.metrics.refused.WithLabelValues(now.Reason).Inc()
	}
	r.acceptance(before, now)
	r.separation(before, now)
}

// separation records a registration that is not kept apart from the hub's own keys. One that is refused for it says so already.
func (r *recorder) separation(before, now Status) {
	was, is := failing(before, ConditionSeparate), failing(now, ConditionSeparate)
	if is == nil || is.Reason == ReasonSecretType || was != nil && was.Reason == is.Reason {
		return
	}
	r.log.Warn("registration is not kept apart from the hub's own keys", "member", now.Name, "namespace", now.Registration.Namespace,
		"reason", is.Reason, "message", is.Message)
	r.event(now, corev1.EventTypeWarning, is.Reason, is.Message)
}

// acceptance records a changed Secret that is not taken while the member runs on.
func (r *recorder) acceptance(before, now Status) {
	was, is := rejection(before), rejection(now)
	if is == nil || now.State == StateRefused && now.Reason == is.Reason || was != nil && was.Reason == is.Reason {
		return
	}
	r.log.Warn("changed registration refused", "member", now.Name, "reason", is.Reason, "message", is.Message, "rival", now.Rival)
	r.event(now, corev1.EventTypeWarning, is.Reason, is.Message)
	r.metrics.refused.WithLabelValues(is.Reason).Inc()
}

// trouble identifies what is wrong with a member, "" if nothing is. What is missing in a Degraded one is a part of it.
func trouble(s Status) string {
	switch s.State {
	case StateRefused, StateUnreachable:
		return string(s.State) + "/" + s.Reason
	case StateDegraded:
		return string(s.State) + "/" + s.Message
	}
	return ""
}

// rejection is the condition Accepted if it is false.
func rejection(s Status) *metav1.Condition { return failing(s, ConditionAccepted) }

// failing is a condition if it is false.
func failing(s Status, condition string) *metav1.Condition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == condition && s.Conditions[i].Status == metav1.ConditionFalse {
			return &s.Conditions[i]
		}
	}
	return nil
}

// maxEventNote is the longest note that the Events API takes.
const maxEventNote = 1024

// event is about the Secret, and is given nothing of it but its identity.
func (r *recorder) event(s Status, kind, reason, message string) {
	if r.events == nil {
		return
	}
	if s.Rival != "" {
		message += ": Secret " + s.Rival
	}
	secret := &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Registration.Namespace, Name: s.Registration.Name,
			UID: types.UID(s.Registration.UID), ResourceVersion: s.Registration.ResourceVersion,
		},
	}
	r.events.Eventf(secret, nil, kind, reason, "Register", "%s", plain.Text(message, maxEventNote))
}
