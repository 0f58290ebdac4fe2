package integration

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/webhook"
)

// TestNothingWaitsForAMemberThatWasDetachedByForce goes from a member that hangs for good to its unexpected return.
func TestNothingWaitsForAMemberThatWasDetachedByForce(t *testing.T) {
	fleets.beside(t)
	f := startFleet(t, "gone")
	h := startHub(t, f, "hub-0")
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(patience)
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	t.Cleanup(cancel)
	member := f.Members[0]
	key := &plimsollv1.ObjectKey{Cluster: member.Name, Controller: webhook.ControllerName, Name: "plimsoll"}
	state := func() *plimsollv1.ObjectState {
		answer, err := h.Objects.GetObjectState(ctx, &plimsollv1.GetObjectStateRequest{Cluster: key.GetCluster(), Controller: key.GetController(), Name: key.GetName()})
		if err != nil {
			return nil
		}
		return answer.GetObject()
	}
	outcome := func() plimsollv1.ReconcileOutcome { return state().GetLastOutcome() }
	// The controller comes back by itself, to see whether the member's API server reaches the webhook.
	ended := []plimsollv1.ReconcileOutcome{plimsollv1.ReconcileOutcome_RECONCILE_OUTCOME_DONE, plimsollv1.ReconcileOutcome_RECONCILE_OUTCOME_REQUEUE}
	g.Eventually(outcome).Should(BeElementOf(ended))

	g.Expect(member.Cluster.HangAPIServer()).To(Succeed())
	t.Cleanup(func() { _ = member.Cluster.ResumeAPIServer() })
	g.Eventually(func() plimsollv1.ReconcileState {
		_, _ = h.Objects.RequeueObject(ctx, &plimsollv1.RequeueObjectRequest{Cluster: key.GetCluster(), Controller: key.GetController(), Name: key.GetName()})
		return state().GetState()
	}).Should(Equal(plimsollv1.ReconcileState_RECONCILE_STATE_HELD))
	ordered, err := h.Objects.RequeueObject(ctx, &plimsollv1.RequeueObjectRequest{Cluster: key.GetCluster(), Controller: key.GetController(), Name: key.GetName(), Force: true})
	g.Expect(err).NotTo(HaveOccurred())
	operation := func() plimsollv1.OperationState {
		answer, err := h.Objects.GetOperation(ctx, &plimsollv1.GetOperationRequest{Operation: ordered.GetOperation().GetId()})
		g.Expect(err).NotTo(HaveOccurred())
		return answer.GetOperation().GetState()
	}
	g.Expect(operation()).To(Equal(plimsollv1.OperationState_OPERATION_STATE_PENDING))

	annotate := func(patch string) {
		secret := &corev1.Secret{}
		secret.Namespace, secret.Name = fleet.Registrations, member.Name
		g.Expect(f.Hub.Client().Patch(ctx, secret, client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
	}
	annotate(`{"metadata":{"annotations":{"` + clusters.DetachedAnnotation + `":"it will not come back"}}}`)
	g.Eventually(operation).Should(Equal(plimsollv1.OperationState_OPERATION_STATE_SUPERSEDED))
	g.Expect(outcome()).To(Equal(plimsollv1.ReconcileOutcome_RECONCILE_OUTCOME_NOT_OURS))
	g.Expect(state().GetReason()).To(ContainSubstring("it will not come back"))
	g.Eventually(func() ([]string, error) { return conditions(ctx, h, member.Name) }).Should(ContainElement("Detached=True"))
	g.Eventually(func() ([]string, error) { return secretEvents(ctx, f, member.Name) }).Should(ContainElement("Detached"))

	g.Expect(member.Cluster.ResumeAPIServer()).To(Succeed())
	annotate(`{"metadata":{"annotations":{"` + clusters.DetachedAnnotation + `":null}}}`)
	g.Eventually(outcome).Should(BeElementOf(ended))
	g.Eventually(func() ([]string, error) { return secretEvents(ctx, f, member.Name) }).Should(ContainElement("Attached"))
	g.Eventually(func() ([]string, error) { return conditions(ctx, h, member.Name) }).ShouldNot(ContainElement("Detached=True"))
}

// conditions are a member's as the API shows them, as "Type=Status".
func conditions(ctx context.Context, h *insideHub, member string) ([]string, error) {
	cluster, err := h.Cluster(ctx, member)
	var shown []string
	for _, c := range cluster.GetConditions() {
		shown = append(shown, c.GetType()+"="+c.GetStatus())
	}
	return shown, err
}

// secretEvents are the reasons of the Events about a member's registration.
func secretEvents(ctx context.Context, f *fleet.Fleet, member string) ([]string, error) {
	var list eventsv1.EventList
	err := f.Hub.Client().List(ctx, &list, client.InNamespace(fleet.Registrations))
	var reasons []string
	for _, e := range list.Items {
		if e.Regarding.Kind == "Secret" && e.Regarding.Name == member {
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons, err
}
