package hub

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/clusters/plain"
)

// maxDetachReason bounds what is repeated of the reason that a person gave.
// Reasons of Events about registrations whose members are detached by force.
const (
	eventDetached = "Detached" // The annotation `plimsoll.dev/force-detached` was set: the hub writes nothing in the member, and no finalizer waits for it.
	eventAttached = "Attached" // The annotation was removed: the hub works in the member again.
)

const maxDetachReason = 256

// detach gives up a member by force, or takes it back, as the annotation on its registration Secret says. Each change is
// reported in an Event on the Secret and in the log, and the metric plimsoll_member_detached shows what is.
func (h *holds) detach(event clusters.Event) {
	member, registration := event.Status.Name, event.Status.Registration
	reason, asked := detachReason(registration)
	asked = asked && !event.Removed
	was, is := h.runtime.Detached(member)
	switch {
	case asked && (!is || was != reason):
		h.runtime.Detach(member, reason)
		h.log.Warn("member detached by force: nothing waits for it", "member", member, "reason", reason)
		h.record(registration, corev1.EventTypeWarning, eventDetached, "detached by force: the hub does nothing in the member, and nothing waits for it: "+reason)
	case !asked && is:
		h.runtime.Attach(member)
		h.log.Info("member is no longer detached by force", "member", member)
		if !event.Removed {
			h.record(registration, corev1.EventTypeNormal, eventAttached, "no longer detached by force: the hub works in the member again")
		}
	}
}

// detachReason reports whether a registration says that its member is given up, and why.
func detachReason(r clusters.Registration) (reason string, detached bool) {
	reason, detached = r.Annotations[clusters.DetachedAnnotation]
	return cmp.Or(plain.Text(reason, maxDetachReason), "no reason was given"), detached
}

// record records an Event about a registration Secret, of which it is given nothing but the identity.
func (h *holds) record(r clusters.Registration, kind, reason, message string) {
	if h.events == nil {
		return
	}
	secret := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name, UID: types.UID(r.UID), ResourceVersion: r.ResourceVersion},
	}
	h.events.Eventf(secret, nil, kind, reason, "Detach", "%s", message)
}
