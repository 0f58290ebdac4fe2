package integration

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// providerNodes are the nodes of a provider: what its spot and its on-demand nodes carry.
type providerNodes struct{ spot, onDemand kube.NodeSpec }

var providerNodesOf = map[string]providerNodes{
	"eks": {
		spot:     kube.NodeSpec{Labels: map[string]string{"eks.amazonaws.com/nodegroup": "a", "eks.amazonaws.com/capacityType": "SPOT"}},
		onDemand: kube.NodeSpec{Labels: map[string]string{"eks.amazonaws.com/nodegroup": "b", "eks.amazonaws.com/capacityType": "ON_DEMAND"}},
	},
	"gke": {
		spot: kube.NodeSpec{Labels: map[string]string{"cloud.google.com/gke-nodepool": "a", "cloud.google.com/gke-spot": "true",
			"cloud.google.com/gke-provisioning": "spot"}},
		onDemand: kube.NodeSpec{Labels: map[string]string{"cloud.google.com/gke-nodepool": "b", "cloud.google.com/gke-provisioning": "standard"}},
	},
	"aks": {
		spot: kube.NodeSpec{Labels: map[string]string{"kubernetes.azure.com/agentpool": "a", "kubernetes.azure.com/scalesetpriority": "spot"},
			Taints: []corev1.Taint{{Key: "kubernetes.azure.com/scalesetpriority", Value: "spot", Effect: corev1.TaintEffectNoSchedule}}},
		onDemand: kube.NodeSpec{Labels: map[string]string{"kubernetes.azure.com/agentpool": "b"}},
	},
}

// TestMembersOfThreeProvidersArePlacedByOneHub has one configuration, which is the default, and nodes that are labelled as
// each provider labels them. The scheduler is the real one.
func TestMembersOfThreeProvidersArePlacedByOneHub(t *testing.T) {
	fleets.beside(t)
	f := startFleet(t, "eks", "gke", "aks")
	for _, m := range f.Members {
		exchangeNodes(t, m, providerNodesOf[m.Name])
	}
	h := startHub(t, f, "providers")
	for _, m := range f.Members {
		t.Run(m.Name, func(t *testing.T) {
			specs.beside(t)
			providerSpec(place(t, h, m, fleet.Enabled()))
		})
	}
	t.Run("a registration that names no provider is reported", func(t *testing.T) {
		specs.beside(t)
		steerBySpec(t, h, f.Members[0])
	})
}

// exchangeNodes gives a member the nodes of a provider in place of those that it was started with.
func exchangeNodes(t *testing.T, m *fleet.Member, nodes providerNodes) {
	t.Helper()
	for capacity, spec := range map[string]kube.NodeSpec{kube.Spot: nodes.spot, kube.OnDemand: nodes.onDemand} {
		if _, err := m.TakeAway(t.Context(), capacity); err != nil {
			t.Fatal(err)
		}
		if err := m.AddProviderNodes(t.Context(), 2, capacity, spec); err != nil {
			t.Fatal(err)
		}
	}
}

// providerSpec has new pods at their places at the first attempt, also where a template has alternatives of its own, and moves
// them when the policy changes.
func providerSpec(p *placing) {
	const replicas, floor = 20, 2
	w := p.create(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(70, floor)))
	picky := p.create(withAlternatives(fleet.Deployment(p.namespace, "picky", replicas, fleet.Policy(50, floor))))
	p.exactly(w, replicas, 70, floor)
	p.exactly(picky, replicas, 50, floor)

	p.Expect(w.Annotate(p.ctx, fleet.Policy(30, floor))).To(Succeed())
	p.mixed(w, replicas, 30, floor)
	p.Expect(p.shown(w)(p.WithT).GetExplanation()).To(ContainElement(And(ContainSubstring("required node affinity"), ContainSubstring("NotIn"))))
}

// withAlternatives gives a template a required node affinity of its own, one of whose terms every node of the testbed meets.
func withAlternatives(d *appsv1.Deployment) *appsv1.Deployment {
	term := func(arch string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{arch}},
		}}
	}
	d.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term("s390x"), term("amd64")}},
	}}
	return d
}

func steerBySpec(t *testing.T, h *insideHub, m *fleet.Member) {
	t.Helper()
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(patience)
	const annotation = "plimsoll.dev/steer-by"
	var secret corev1.Secret
	g.Expect(h.fleet.Hub.Client().Get(t.Context(), client.ObjectKey{Namespace: fleet.Registrations, Name: m.Name}, &secret)).To(Succeed())
	secret.Annotations = map[string]string{annotation: "openstack"}
	g.Expect(h.fleet.Hub.Client().Update(t.Context(), &secret)).To(Succeed())
	g.Eventually(func(g Gomega) {
		cluster, err := h.Cluster(t.Context(), m.Name)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(cluster.GetConditions()).To(ContainElement(And(
			WithTransform((*plimsollv1.Condition).GetType, Equal("Steering")), WithTransform((*plimsollv1.Condition).GetStatus, Equal("False")),
			WithTransform((*plimsollv1.Condition).GetMessage, And(ContainSubstring(annotation), ContainSubstring("openstack"), ContainSubstring("want karpenter, eks, gke, aks"))),
		)))
	}).Should(Succeed())
}
