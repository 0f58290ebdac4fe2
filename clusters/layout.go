package clusters

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KubeconfigType is the type of registration Secrets. A Secret's type never changes: with it, who may label Secrets that are
// there cannot make a registration of one.
const KubeconfigType corev1.SecretType = "plimsoll.dev/kubeconfig"

// ConditionSeparate reports whether a registration is kept apart from the hub's own keys, and of type [KubeconfigType].
const ConditionSeparate = "Separate"

// Reasons of condition Separate. With [ReasonSecretType] a registration is refused outside of the hub's namespace.
const (
	ReasonSeparate        = "Separate"        // nothing is to be done
	ReasonSharedNamespace = "SharedNamespace" // the registration is in the namespace of the hub's own keys
	ReasonSecretType      = "SecretType"      // the registration Secret has another type than plimsoll.dev/kubeconfig
	ReasonUnusedSecret    = "UnusedSecret"    // the hub's namespace has a registration of the same name, which is not used
)

// layout is where a registration is, and of what type.
type layout struct {
	namespace string
	kind      corev1.SecretType
	unused    bool // the hub's namespace has another one of the same name
}

// finding is what is wrong with a layout; its reason is "" when nothing is.
type finding struct {
	reason, message string
	refused         bool
}

// judge compares a layout with the namespace of the hub's keys, and the one where registrations should be. hub "": nobody knows.
func (l layout) judge(hub, registrations string) finding {
	typed := fmt.Sprintf("registrations have type %s, and this Secret has %q; the type of a Secret cannot be changed: create a new Secret", KubeconfigType, l.kind)
	move := "move it to a namespace of its own (docs/upgrade.md)"
	if registrations != hub {
		move = "move it to namespace " + registrations + " (docs/upgrade.md)"
	}
	switch {
	case hub == "":
		return finding{}
	case l.namespace == hub:
		return finding{reason: ReasonSharedNamespace,
			message: "whoever may read the registration's namespace may read the hub's own keys there: " + move}
	case l.kind != KubeconfigType:
		return finding{reason: ReasonSecretType, message: typed, refused: true}
	case l.unused:
		return finding{reason: ReasonUnusedSecret,
			message: "namespace " + hub + " has a registration of the same name, which is not used: delete it"}
	}
	return finding{}
}

// separate is the condition that shows a finding.
func separate(f finding) metav1.Condition {
	if f.reason == "" {
		return condition(ConditionSeparate, metav1.ConditionTrue, ReasonSeparate, "the registration is kept apart from the hub's own keys")
	}
	return condition(ConditionSeparate, metav1.ConditionFalse, f.reason, f.message)
}
