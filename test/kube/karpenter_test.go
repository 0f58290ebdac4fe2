package kube_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// provisioned is how long Karpenter may take to bring nodes, or to take them away, on a machine that is busy.
const provisioned = 3 * time.Minute

// nodeStart is what the nodes in these tests take to be ready.
const nodeStart = 5 * time.Second

// withKarpenter is a cluster without any node in which Karpenter makes nodes that three pods of withRequests fit on.
func withKarpenter(t *testing.T) *kube.Cluster {
	t.Helper()
	c := kube.New(t, kube.Options{Name: "karpenter"})
	g := NewWithT(t)
	g.Expect(c.StartKarpenter(t.Context(), kube.KarpenterOptions{})).To(Succeed())
	g.Expect(c.SetNodePool(t.Context(), pool0())).To(Succeed())
	return c
}

func pool0() kube.NodePool {
	return kube.NodePool{Name: "general", NodeStart: nodeStart, ConsolidateAfter: time.Second, Budgets: kube.Unlimited}
}

// onCapacity has pods request one CPU on nodes of a capacity type.
func onCapacity(capacity string) func(*corev1.PodSpec) {
	return func(pod *corev1.PodSpec) {
		pod.NodeSelector = map[string]string{kube.CapacityLabel: capacity}
		pod.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	}
}

// claims are the NodeClaims that are not leaving.
func claims(t *testing.T, c *kube.Cluster) []kube.NodeClaim {
	t.Helper()
	all, err := c.NodeClaims(t.Context())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var staying []kube.NodeClaim
	for _, claim := range all {
		if !claim.Leaving {
			staying = append(staying, claim)
		}
	}
	return staying
}

// scale asks for another number of replicas.
func scale(t *testing.T, c *kube.Cluster, d *appsv1.Deployment, replicas int32) {
	t.Helper()
	g := NewWithT(t)
	g.Eventually(func() error {
		exists(t, c, d)
		d.Spec.Replicas = ptr.To(replicas)
		return c.Client().Update(t.Context(), d)
	}, patience).Should(Succeed())
}

func TestKarpenterMakesNodesThatTakeTheirTimeAndReplacesThemAndTakesThemAway(t *testing.T) {
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(provisioned)
	c := withKarpenter(t)
	g.Expect(c.Pids()).To(HaveLen(6))
	d := deployment(t, c, "default", 4, onCapacity(kube.Spot))
	g.Eventually(func() []kube.NodeClaim { return claims(t, c) }).Should(HaveEach(HaveField("Initialized", true)))
	first := claims(t, c)
	g.Expect(first).To(HaveLen(2))
	g.Expect(first).To(HaveEach(And(HaveField("Capacity", kube.Spot), HaveField("Pool", "general"))))
	boundToReadyNodes(t, c, "default", nodeStart)

	drifted := pool0()
	drifted.Labels = map[string]string{"example.com/image": "next"}
	g.Expect(c.SetNodePool(t.Context(), drifted)).To(Succeed())
	g.Eventually(func() []string { return names(claims(t, c)) }).Should(And(HaveLen(2), Not(ContainElements(names(first)))))
	ready(t, c, d, 4)

	g.Expect(c.Kill(kube.Karpenter)).To(Succeed())
	g.Expect(c.Pids()).NotTo(HaveKey(kube.Karpenter))
	scale(t, c, d, 0)
	g.Expect(c.Revive(t.Context(), kube.Karpenter)).To(Succeed())
	g.Eventually(func() []kube.NodeClaim { return claims(t, c) }).Should(BeEmpty())
	g.Expect(c.StartKarpenter(t.Context(), kube.KarpenterOptions{})).To(MatchError(ContainSubstring("was started before")))
}

func names(claims []kube.NodeClaim) []string {
	list := make([]string, len(claims))
	for i, claim := range claims {
		list[i] = claim.Name
	}
	return list
}

// boundToReadyNodes expects that the nodes of a namespace's pods took their time, and the pods waited for it.
func boundToReadyNodes(t *testing.T, c *kube.Cluster, ns string, start time.Duration) {
	t.Helper()
	g := NewWithT(t)
	for _, pod := range list(t, c, &corev1.PodList{}, ns).Items {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionTrue {
				ready := readyAt(t, c, pod.Spec.NodeName, start)
				g.Expect(condition.LastTransitionTime.Time).NotTo(BeTemporally("<", ready), "bound before its node was ready")
			}
		}
	}
}

// readyAt is when a node has become ready, which must not be before its time.
func readyAt(t *testing.T, c *kube.Cluster, name string, start time.Duration) time.Time {
	t.Helper()
	g := NewWithT(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	g.Expect(exists(t, c, node)).To(BeTrue())
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			g.Expect(condition.Status).To(Equal(corev1.ConditionTrue))
			g.Expect(condition.LastTransitionTime.Sub(node.CreationTimestamp.Time)).To(BeNumerically(">=", start))
			return condition.LastTransitionTime.Time
		}
	}
	t.Fatalf("node %s says nothing of being ready", name)
	return time.Time{}
}

func TestAClusterThatCannotHaveKarpenterSaysSo(t *testing.T) {
	c := kube.New(t, kube.Options{Name: "none", Minimal: true})
	NewWithT(t).Expect(c.StartKarpenter(t.Context(), kube.KarpenterOptions{})).To(MatchError(ContainSubstring("the cluster is minimal")))
}
