package hub

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/webhook"
)

// registrations is the provider as the webhook's tokens see it.
func registrations(provider *clusters.Provider) func(member string) (clusters.Registration, bool) {
	return func(member string) (clusters.Registration, bool) {
		status, ok := provider.Status(member)
		return status.Registration, ok
	}
}

// readOnlyAnnotation on a registration Secret puts the member into read-only mode. Like the Secret's labels it is not subject
// to spot.annotationPrefix.
const readOnlyAnnotation = policy.DefaultPrefix + "/read-only"

// readOnlyBy returns what puts a member into read-only mode: "the hub", when that holds for all members, or "the member"; empty: nothing
// does.
func readOnlyBy(provider *clusters.Provider) func(member string) string {
	return func(member string) string {
		status, _ := provider.Status(member)
		switch {
		case policy.SwitchedOn(status.Registration.Shared, readOnlyAnnotation):
			return "the hub"
		case policy.SwitchedOn(status.Registration.Annotations, readOnlyAnnotation):
			return "the member"
		}
		return ""
	}
}

// cordonedMember reports whether nothing is to be moved in a member, or brought there.
func cordonedMember(provider *clusters.Provider) func(member string) bool {
	return func(member string) bool {
		status, _ := provider.Status(member)
		return policy.SwitchedOn(status.Registration.Shared, clusters.CordonedAnnotation) ||
			policy.SwitchedOn(status.Registration.Annotations, clusters.CordonedAnnotation)
	}
}

// steerByAnnotation on a registration Secret names the node labels that pods of the member are steered by, in place of what its
// nodes show. Like [readOnlyAnnotation] it is not subject to spot.annotationPrefix.
const steerByAnnotation = policy.DefaultPrefix + "/steer-by"

// steerBy returns what the registration of a member names to steer by; empty: nothing.
func steerBy(provider *clusters.Provider) func(member string) string {
	return func(member string) string {
		status, _ := provider.Status(member)
		return status.Registration.Annotations[steerByAnnotation]
	}
}

// shownMembers are the members as the API shows them: with what is known about their webhook beside what is known about their
// connection. What the installer knows it knows by reconciling, so only the owner adds it.
type shownMembers struct {
	provider interface {
		Statuses() []clusters.Status
		Status(name string) (clusters.Status, bool)
		Synced() bool
	}
	installation func(member string) webhook.Installation
	kinds        func(member string) []kindState
	mine         func(member string) bool
	checkSteerBy func(value string) error
	token        func(member string, now time.Time) (metav1.Condition, bool)
	// namespace is where registrations are, and what holds for all members. A registration that is still in the hub's own namespace is not.
	namespace string
}

// kindState is how a kind of a module is in a member, and the condition that shows it.
type kindState struct {
	condition string
	is        webhook.Installation
}

const (
	// conditionWebhook reports whether new pods of a member are placed as they are made.
	conditionWebhook = "Webhook"
	// conditionDetached is there when a member was given up by force.
	conditionDetached = "Detached"
	// conditionCordoned and conditionPaused are there when a person marked the registration so.
	conditionCordoned = "Cordoned"
	conditionPaused   = "Paused"
	// conditionSteering is there when a registration names what pods of the member are steered by, and reports whether it counts.
	conditionSteering = "Steering"
)

// Statuses implements api.Members.
func (m shownMembers) Statuses() []clusters.Status {
	statuses := m.provider.Statuses()
	for i := range statuses {
		m.add(&statuses[i])
	}
	return statuses
}

// Status implements api.Members.
func (m shownMembers) Status(name string) (clusters.Status, bool) {
	status, ok := m.provider.Status(name)
	if ok {
		m.add(&status)
	}
	return status, ok
}

// Synced implements api.Members.
func (m shownMembers) Synced() bool { return m.provider.Synced() }

func (m shownMembers) add(status *clusters.Status) {
	if reason, detached := detachReason(status.Registration); detached {
		status.Conditions = append(slices.Clip(status.Conditions), metav1.Condition{
			Type: conditionDetached, Status: metav1.ConditionTrue, Reason: "ForceDetached", Message: reason,
		})
	}
	status.Conditions = append(slices.Clip(status.Conditions), m.chosen(&status.Registration)...)
	if value, set := status.Registration.Annotations[steerByAnnotation]; set {
		status.Conditions = append(slices.Clip(status.Conditions), steering(value, m.checkSteerBy(value)))
	}
	if m.token != nil {
		if condition, ok := m.token(status.Name, time.Now()); ok {
			status.Conditions = append(slices.Clip(status.Conditions), condition)
		}
	}
	if (status.State != clusters.StateReady && status.State != clusters.StateDegraded) || !m.mine(status.Name) {
		return
	}
	status.Conditions = append(slices.Clip(status.Conditions), installed(conditionWebhook, m.installation(status.Name))) // clipped: the snapshot is shared
	for _, kind := range m.kinds(status.Name) {
		status.Conditions = append(status.Conditions, installed(kind.condition, kind.is))
	}
}

// chosen are the conditions that a person brought about by annotations, of the registration or of what holds for all members.
func (m shownMembers) chosen(of *clusters.Registration) (all []metav1.Condition) {
	add := func(annotation, condition, everywhere, here string) {
		is := metav1.Condition{Type: condition, Status: metav1.ConditionTrue}
		switch {
		case policy.SwitchedOn(of.Shared, annotation):
			is.Reason, is.Message = "AllClusters", fmt.Sprintf("%s: annotation %s of a Secret with label %s in namespace %s.", everywhere, annotation, clusters.AllMembersLabel, m.namespace)
		case policy.SwitchedOn(of.Annotations, annotation):
			is.Reason, is.Message = "Registration", fmt.Sprintf("%s: annotation %s of the registration.", here, annotation)
		default:
			return
		}
		all = append(all, is)
	}
	add(clusters.CordonedAnnotation, conditionCordoned, "All clusters are cordoned: no pod is moved, and no replicas are added",
		"The cluster is cordoned: no pod is moved, and no replicas are added")
	add(readOnlyAnnotation, conditionPaused, "Placement is paused in all clusters", "Placement is paused in this cluster")
	return all
}

// steering is the condition of a registration that names what pods are steered by. problem: why that cannot be used.
func steering(value string, problem error) metav1.Condition {
	if problem != nil {
		return metav1.Condition{Type: conditionSteering, Status: metav1.ConditionFalse, Reason: "Invalid",
			Message: fmt.Sprintf("Annotation %s of the registration is ignored: %v.", steerByAnnotation, problem)}
	}
	return metav1.Condition{Type: conditionSteering, Status: metav1.ConditionTrue, Reason: "Registration",
		Message: fmt.Sprintf("Pods are steered by %s: annotation %s of the registration.", value, steerByAnnotation)}
}

func installed(condition string, is webhook.Installation) metav1.Condition {
	shown := metav1.Condition{Type: condition, Status: metav1.ConditionFalse, Reason: is.Reason, Message: is.Message}
	switch is.Reason {
	case webhook.ReasonCurrent:
		shown.Status = metav1.ConditionTrue
	case webhook.ReasonUnproven:
		shown.Status = metav1.ConditionUnknown
	}
	return shown
}

// ownEvents records Events about registrations in the hub cluster while no other replica is known to own the member, so that
// what all replicas see is not reported as often as there are replicas.
type ownEvents struct {
	events.EventRecorder
	routes routes
}

// Eventf implements events.EventRecorder. What it regards is a registration Secret, which has the name of its member.
func (e ownEvents) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	registration, err := meta.Accessor(regarding)
	if err != nil {
		return
	}
	if owner := e.routes.Owner(registration.GetName()); owner == "" || owner == e.routes.self {
		e.EventRecorder.Eventf(regarding, related, eventtype, reason, action, note, args...)
	}
}
