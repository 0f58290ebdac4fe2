package kube_test

import (
	"context"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// group is a node group for one test, whose nodes have room for two pods of onGroup.
func group(t *testing.T, c *kube.Cluster, change func(*kube.NodeGroupSpec)) *kube.NodeGroup {
	t.Helper()
	spec := kube.NodeGroupSpec{
		Name: "spot-pool", Provider: kube.GKE, Capacity: kube.Spot, Max: 3, Node: kube.NodeSpec{CPU: "2", Start: 2 * time.Second},
		Registration: time.Second, IdleFor: time.Second, DeleteDelay: time.Second,
	}
	if change != nil {
		change(&spec)
	}
	g := kube.NewNodeGroup(t, c, spec)
	t.Cleanup(func() {
		g.Stop()
		if err := c.RemoveNodes(context.Background(), g.Nodes()...); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return g
}

// onGroup has pods request one CPU on spot nodes as GKE labels them.
func onGroup(pod *corev1.PodSpec) {
	pod.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "cloud.google.com/gke-spot", Operator: corev1.NodeSelectorOpIn, Values: []string{"true"}}},
		}}},
	}}
	pod.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
}

func TestANodeGroupGrowsForPodsThatFitAndSaysSoAndShrinksWhenItIsEmpty(t *testing.T) {
	g := NewWithT(t)
	c, _ := fleet(t)
	ns := namespace(t, c)
	pools := group(t, c, nil)
	g.Expect(pools.Nodes()).To(BeEmpty())
	d := deployment(t, c, ns, 3, onGroup)
	boundToReadyNodes(t, c, ns, 2*time.Second)
	grown := pools.Nodes()
	g.Expect(grown).To(HaveLen(2))
	var events []corev1.Event
	for _, event := range list(t, c, &corev1.EventList{}, ns).Items {
		if event.Reason == "TriggeredScaleUp" {
			events = append(events, event)
		}
	}
	g.Expect(events).NotTo(BeEmpty())
	g.Expect(events[0].Source.Component).To(Equal("cluster-autoscaler"))
	g.Expect(events[0].Message).To(MatchRegexp(`^pod triggered scale-up: \[\{spot-pool 0->[12] \(max: 3\)\}\]$`))

	scale(t, c, d, 8)
	g.Eventually(pools.Nodes, patience).Should(HaveLen(3))
	ready6(t, c, d)

	mark, err := c.Audit().Mark()
	g.Expect(err).NotTo(HaveOccurred())
	scale(t, c, d, 0)
	g.Eventually(pools.Nodes, patience).Should(BeEmpty())
	removed, err := c.Audit().Since(mark, kube.OnResource("nodes"), func(e kube.AuditEvent) bool { return slices.Contains(grown, e.Name) },
		kube.ByUserAgent(kube.AdminUserAgent), kube.ByVerb("update", "delete"))
	g.Expect(err).NotTo(HaveOccurred())
	verbs := map[string][]string{}
	for _, e := range removed {
		verbs[e.Name] = append(verbs[e.Name], e.Verb)
	}
	for _, name := range grown {
		g.Expect(verbs[name]).To(Equal([]string{"update", "delete"}), "tainted, and then deleted")
	}
}

// ready6 waits until as many replicas are ready as the whole group has room for.
func ready6(t *testing.T, c *kube.Cluster, d *appsv1.Deployment) {
	t.Helper()
	NewWithT(t).Eventually(func() int32 { exists(t, c, d); return d.Status.ReadyReplicas }, patience).Should(BeEquivalentTo(6))
}

func TestADryNodeGroupBringsNothingUntilThereIsSomeAgain(t *testing.T) {
	g := NewWithT(t)
	c, _ := fleet(t)
	ns := namespace(t, c)
	pools := group(t, c, func(spec *kube.NodeGroupSpec) { spec.Registration = 0 })
	pools.SetDry(true)
	waiting := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "waiting"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "sample"}}},
	}
	onGroup(&waiting.Spec)
	g.Expect(c.Client().Create(t.Context(), waiting)).To(Succeed())
	g.Eventually(func() []corev1.Event { return list(t, c, &corev1.EventList{}, ns).Items }, patience).
		Should(ContainElement(HaveField("Reason", "TriggeredScaleUp")))
	g.Expect(pools.Nodes()).To(BeEmpty())

	pools.SetDry(false)
	g.Eventually(func() corev1.PodPhase { exists(t, c, waiting); return waiting.Status.Phase }, patience).Should(Equal(corev1.PodRunning))
}

func TestANodeGroupSaysWhatTheCloudSaysAndLosesWhatTheCloudTakes(t *testing.T) {
	g := NewWithT(t)
	c, _ := fleet(t)
	pools := group(t, c, func(spec *kube.NodeGroupSpec) { spec.Min, spec.Provider = 2, kube.EKS })
	nodes := pools.Nodes()
	g.Expect(nodes).To(HaveLen(2))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodes[0]}}
	g.Expect(exists(t, c, node)).To(BeTrue())
	g.Expect(node.Labels).To(HaveKeyWithValue("eks.amazonaws.com/capacityType", "SPOT"))

	g.Expect(pools.Recommend(t.Context(), nodes[0])).To(Succeed())
	g.Expect(pools.Interrupt(t.Context(), time.Second, nodes[1])).To(Succeed())
	g.Expect(pools.Interrupt(t.Context(), time.Second, "none")).NotTo(Succeed())
	g.Eventually(pools.Nodes, patience).Should(Equal(nodes[:1]))
	g.Expect(exists(t, c, node)).To(BeTrue())
	g.Expect(node.Spec.Taints).To(ContainElement(HaveField("Key", kube.RebalanceTaint)))
}

func TestANodeGroupTakesNodesAwayThatAreInUseAndEvictsTheirPods(t *testing.T) {
	g := NewWithT(t)
	c, _ := fleet(t)
	ns := namespace(t, c)
	pools := group(t, c, func(spec *kube.NodeGroupSpec) { spec.IdleFor = time.Hour })
	d := deployment(t, c, ns, 4, onGroup)
	boundToReadyNodes(t, c, ns, 2*time.Second)
	grown := pools.Nodes()
	g.Expect(grown).To(HaveLen(2))
	mark, err := c.Audit().Mark()
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(pools.ScaleDown(t.Context(), grown[0])).To(Succeed())
	g.Expect(pools.ScaleDown(t.Context(), "none")).NotTo(Succeed())
	g.Eventually(pools.Nodes, patience).ShouldNot(ContainElement(grown[0]))
	g.Expect(exists(t, c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: grown[0]}})).To(BeFalse())
	g.Eventually(func() int32 { exists(t, c, d); return d.Status.ReadyReplicas }, patience).Should(BeEquivalentTo(4))
	evicted, err := c.Audit().Since(mark, kube.Evictions, kube.InNamespace(ns))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(evicted).To(HaveLen(2), "those that were on the node, and no others")
	g.Expect(pools.Nodes()).To(And(ContainElement(grown[1]), HaveLen(2)), "a node has come for them")
}

func TestEachProviderLabelsItsNodesSoThatTheirCapacityIsTold(t *testing.T) {
	g := NewWithT(t)
	for _, provider := range []kube.Provider{kube.KarpenterNodes, kube.EKS, kube.GKE, kube.AKS} {
		for _, capacity := range []string{kube.Spot, kube.OnDemand} {
			labels, err := provider.Labels("pool", capacity)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(kube.CapacityOf(labels)).To(Equal(capacity), "%s: %v", provider, labels)
		}
	}
	g.Expect(kube.CapacityOf(map[string]string{kube.CapacityLabel: "reserved"})).To(Equal(kube.OnDemand))
	g.Expect(kube.CapacityOf(nil)).To(BeEmpty())
	_, err := kube.Provider("nobody").Labels("pool", kube.Spot)
	g.Expect(err).To(MatchError(ContainSubstring(`provider "nobody"`)))
}
