package clusters

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// State is the one-word answer to "can the hub work in this member?".
type State string

const (
	// StateConnecting: the registration was accepted, the member is being probed and its caches are warmed.
	StateConnecting State = "Connecting"
	// StateReady: healthy, every needed kind is cached and everything needed is permitted.
	StateReady State = "Ready"
	// StateDegraded: healthy, but a kind or a permission is missing, or a cached kind has not been watched for too long; what
	// is there works.
	StateDegraded State = "Degraded"
	// StateUnreachable: the API server cannot be reached, does not answer in time, or says that it is not ready.
	StateUnreachable State = "Unreachable"
	// StateRefused: a person has to change something: the hub refuses the Secret, or the member refuses the credentials.
	StateRefused State = "Refused"
)

var states = []State{StateConnecting, StateReady, StateDegraded, StateUnreachable, StateRefused}

// Status is a snapshot of one registration; a value that may be kept.
type Status struct {
	// Name of the member: the name of its registration Secret.
	Name  string
	State State
	// Reason is a CamelCase word, Message a sentence without any secret value.
	Reason, Message string
	// Rival is the registration because of which this one is refused, "" if there is none. Not everybody who may see a member
	// may see that one.
	Rival string
	// Conditions: Accepted (vetting), Reachable (probe), Warm (kinds), Current (watches), Permitted (access), and Separate (where
	// the Secret is) with Options.HubNamespace.
	Conditions []metav1.Condition
	// Server is the API server's host and port.
	Server string
	// Version is the Kubernetes version, "" while unknown.
	Version string
	// UID is that of the member's kube-system namespace, "" while unknown.
	UID string
	// Namespaces are those that the member is registered for, in order; nil: the whole cluster, or not known yet.
	Namespaces []string
	// Kinds says for each declared kind whether it is cached, in the order of declaration.
	Kinds []KindStatus
	// RegisteredAt is the creation of the Secret; LastProbe the end of the last probe, and LastAnswer of the last good one, zero
	// before the first; Since the time of the last change of State.
	RegisteredAt, LastProbe, LastAnswer, Since time.Time
	// Registration is the Secret behind the member.
	Registration Registration
}

// KindStatus reports whether one kind of a member is cached, and if not, why.
type KindStatus struct {
	Kind    string // for example "apps/v1 Deployment"
	Engaged bool
	Reason  string
}

// Registration identifies the registration Secret of a member; it carries no secret value.
type Registration struct {
	Namespace, Name, UID, ResourceVersion string
	Labels, Annotations                   map[string]string
	// Shared are annotations that hold for all members; see [AllMembersLabel].
	Shared map[string]string
}
