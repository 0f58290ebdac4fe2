package integration

import (
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

func explainSpec(p *placing) {
	const replicas = 6
	w := p.create(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(50, 1)))
	p.exactly(w, replicas, 50, 1)
	p.Expect(w.Annotate(p.ctx, fleet.Policy(0, 1))).To(Succeed())
	p.mixed(w, replicas, 0, 1)

	known := p.shown(w)(p.WithT)
	p.Expect(known.GetExplanation()).To(ContainElement(ContainSubstring("Of 6 replicas, 0 belong on spot and 6 on-demand")))
	p.Expect(known.GetPods()).To(HaveLen(replicas))
	p.Expect(known.GetLastMoves()).To(HaveLen(3))
	for _, move := range known.GetLastMoves() {
		p.Expect(move.GetFrom()).To(Equal(plimsollv1.CapacityType_CAPACITY_TYPE_SPOT))
		p.Expect(move.GetPurpose()).To(Equal(plimsollv1.MovePurpose_MOVE_PURPOSE_MIX))
		p.Expect(move.GetMovedAt()).NotTo(BeNil())
	}
	p.Eventually(p.events).Should(HaveKey("Moving"))
	p.Eventually(p.events).Should(HaveKey("Converged"))
}

// unprotectedSpec has a floor that others may drain: the API, the explanation and one Event say so once the floor's pods are a minute old,
// and no longer when a budget keeps the floor.
func unprotectedSpec(p *placing) {
	const replicas, percent, floor = 4, 50, 2
	w := p.create(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(percent, floor)))
	p.exactly(w, replicas, percent, floor)
	const said = "PodDisruptionBudget keeps 2 replicas healthy"
	p.Eventually(func(g Gomega) {
		known := p.shown(w)(g)
		g.Expect(known.GetPlacement().GetUnprotected()).To(BeTrue())
		g.Expect(known.GetExplanation()).To(ContainElement(ContainSubstring(said)))
	}).Should(Succeed())
	p.Eventually(p.events).Should(HaveKeyWithValue("Unprotected", 1))

	least := intstr.FromInt32(floor)
	p.Expect(p.member.Client().Create(p.ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{fleet.AppLabel: "web"}}},
	})).To(Succeed())
	p.Eventually(func(g Gomega) {
		known := p.shown(w)(g)
		g.Expect(known.GetPlacement().GetUnprotected()).To(BeFalse())
		g.Expect(known.GetExplanation()).NotTo(ContainElement(ContainSubstring(said)))
	}).Should(Succeed())
	p.Expect(p.events()).To(HaveKeyWithValue("Unprotected", 1))
	p.Expect(p.evictions()).To(BeEmpty())
}

// events counts the Events of the namespace by reason, repetitions included.
func (p *placing) events() (map[string]int, error) {
	var list corev1.EventList
	err := p.member.Client().List(p.ctx, &list, client.InNamespace(p.namespace))
	counts := map[string]int{}
	for i := range list.Items {
		counts[list.Items[i].Reason] += int(list.Items[i].Count)
	}
	return counts, err
}

func whatIfSpec(p *placing) {
	const replicas = 10
	w := p.create(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(70, 1)))
	p.exactly(w, replicas, 70, 1)
	writes := len(p.writes())

	answer, err := p.hub.Workloads.WhatIf(p.ctx, &plimsollv1.WhatIfRequest{
		Cluster: p.member.Name, Namespace: p.namespace, Kind: w.Kind, Name: w.Name, SpotPercentage: proto.Int32(30), MinOnDemand: proto.Int32(8),
	})
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(answer.GetNow().GetPlacement().GetSpotWanted()).To(BeEquivalentTo(7))
	p.Expect(answer.GetThen().GetPlacement().GetSpotWanted()).To(BeEquivalentTo(2))
	p.Expect(answer.GetMoves()).To(BeEquivalentTo(5))
	p.Expect(answer.GetFirstMoves()).To(HaveLen(1)) // a tenth of them at a time
	p.Expect(answer.GetFirstMoves()[0].GetMovedAt()).To(BeNil())

	p.Expect(p.hub.Reconcile(p.ctx, w)).To(Succeed())
	p.Expect(p.shown(w)(p.WithT).GetPlacement().GetSpotPercentage()).To(BeEquivalentTo(70))
	p.Expect(p.evictions()).To(BeEmpty())
	p.Expect(p.writes()).To(HaveLen(writes))
}
