package integration

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// onAKS is what everybody configures who has spot nodes there: AKS taints them.
var onAKS = fleet.Settings{"spot.tolerations": []map[string]any{{
	"key": "kubernetes.azure.com/scalesetpriority", "operator": "Equal", "value": "spot", "effect": "NoSchedule",
}}}

// TestNodeGroups has one hub with members of three providers, each with a spot and an on-demand node group that an autoscaler
// scales, and nobody's nodes with Karpenter's label.
func TestNodeGroups(t *testing.T) {
	fleets.beside(t)
	providers := []kube.Provider{kube.GKE, kube.EKS, kube.AKS}
	f := startFleetWith(t, fleet.Options{Members: []string{"gke", "eks", "aks"}, Nodes: fleet.NoNodes})
	onDemand := map[kube.Provider]*kube.NodeGroup{}
	for i, provider := range providers {
		onDemand[provider] = startGroup(t, f.Members[i], provider, kube.OnDemand, 1)
	}
	h := startHub(t, f, "node-groups", fleet.Scaled(pace), onAKS)
	for i, provider := range providers {
		t.Run(string(provider), func(t *testing.T) {
			specs.beside(t)
			nodeGroupSpec(t, h, f.Members[i], provider)
			switch provider {
			case kube.EKS:
				t.Run("a rebalance recommendation for all nodes of the floor costs none of it", func(t *testing.T) {
					adviceSpec(t, h, f.Members[i], onDemand[provider])
				})
				t.Run("the replicas of nodes that the cloud takes back are replaced before it does, and the floor stands", func(t *testing.T) {
					interruptSpec(t, h, f.Members[i], onDemand[provider])
				})
			case kube.GKE:
				t.Run("an autoscaler that takes all nodes of the floor away costs none of it, under a disruption budget", func(t *testing.T) {
					scaleDownSpec(t, h, f.Members[i], onDemand[provider])
				})
			}
		})
	}
}

// nodeGroupSpec has a spot group with a node, and then one without.
func nodeGroupSpec(t *testing.T, h *insideHub, m *fleet.Member, provider kube.Provider) {
	const replicas, percent, floor = 10, 70, 1
	for _, spec := range []struct {
		name  string
		least int
	}{{"the replicas of a workload are scheduled on both types", 1}, {"also when the spot group is at zero", 0}} {
		t.Run(spec.name, func(t *testing.T) {
			spot := startGroup(t, m, provider, kube.Spot, spec.least)
			p := placeFor(t, h, m, fleet.Enabled(), 2*patience)
			w := p.create(requesting(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(percent, floor))))
			p.mixed(w, replicas, percent, floor)
			p.Expect(len(spot.Nodes())).To(BeNumerically(">", spec.least), "the group has grown for its pods")
			p.Expect(p.triggered()).NotTo(BeEmpty())
		})
	}
}

// adviceSpec has AWS Node Termination Handler recommend to leave all nodes that the floor is on; others come when pods ask for them.
func adviceSpec(t *testing.T, h *insideHub, m *fleet.Member, onDemand *kube.NodeGroup) {
	const replicas, percent, floor = 6, 50, 3
	startGroup(t, m, kube.EKS, kube.Spot, 1)
	p := placeFor(t, h, m, fleet.Enabled(), 4*patience)
	w := p.create(requesting(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(percent, floor))))
	p.mixed(w, replicas, percent, floor)
	risky := onDemand.Nodes()
	p.keepsFloor(w, floor, func(ctx context.Context) {
		p.Expect(onDemand.Recommend(ctx, risky...)).To(Succeed())
		p.Eventually(func() []corev1.Pod { return p.pods(w) }).Should(HaveEach(WithTransform(
			func(pod corev1.Pod) string { return pod.Spec.NodeName }, And(Not(BeEmpty()), Not(BeElementOf(risky))))))
		p.mixed(w, replicas, percent, floor)
	})
}

// interruptSpec has the cloud take back a node of each group that replicas are on, two minutes after it said so, as it does. The nodes that take
// their place need a fraction of that.
func interruptSpec(t *testing.T, h *insideHub, m *fleet.Member, onDemand *kube.NodeGroup) {
	const replicas, percent, floor, notice = 8, 50, 4, 2 * time.Minute
	spot := startGroup(t, m, kube.EKS, kube.Spot, 1)
	p := placeFor(t, h, m, fleet.Enabled(), 4*patience)
	w := p.create(requesting(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(percent, floor))))
	p.mixed(w, replicas, percent, floor)
	groups := map[*kube.NodeGroup]string{onDemand: p.nodeIn(w, onDemand), spot: p.nodeIn(w, spot)}
	toll, err := w.Endure(p.ctx, floor, func(ctx context.Context) error {
		for group, node := range groups {
			p.Expect(group.Interrupt(ctx, notice, node)).To(Succeed())
		}
		for group, node := range groups {
			p.Eventually(func() int { return p.onNode(w, node) }).Should(BeZero())
			p.Expect(group.Nodes()).To(ContainElement(node), "its replicas left before the cloud took it")
		}
		for group, node := range groups {
			p.Eventually(group.Nodes).ShouldNot(ContainElement(node))
		}
		p.mixed(w, replicas, percent, floor)
		return nil
	})
	p.t.Logf("%+v", toll)
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(toll.Breaks).To(BeEmpty())
	p.Expect(toll.Lowest).To(BeNumerically(">=", floor), "whoever took one, another served")
}

// nodeIn is a node of the group that replicas are on.
func (p *placing) nodeIn(w *fleet.Workload, group *kube.NodeGroup) string {
	p.t.Helper()
	for _, node := range group.Nodes() {
		if p.onNode(w, node) > 0 {
			return node
		}
	}
	p.t.Fatalf("no replica of %s is on a node of the group", w)
	return ""
}

// scaleDownSpec has Cluster Autoscaler drain all nodes that the floor is on. The budget lets it evict a pod only where the hub has made
// another one ready before.
func scaleDownSpec(t *testing.T, h *insideHub, m *fleet.Member, onDemand *kube.NodeGroup) {
	const replicas, percent, floor = 6, 50, 3
	startGroup(t, m, kube.GKE, kube.Spot, 1)
	p := placeFor(t, h, m, fleet.Enabled(), 4*patience)
	w := p.create(requesting(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(percent, floor))))
	p.mixed(w, replicas, percent, floor)
	p.budget(policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromString("100%"))}, replicas)
	drained := onDemand.Nodes()
	history := p.follow(w)
	toll, err := w.Endure(p.ctx, floor, func(ctx context.Context) error {
		p.Expect(onDemand.ScaleDown(ctx, drained...)).To(Succeed())
		p.Eventually(onDemand.Nodes).ShouldNot(ContainElement(BeElementOf(drained)))
		p.mixed(w, replicas, percent, floor)
		return nil
	})
	p.t.Logf("%+v", toll)
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(toll.Breaks).To(BeEmpty())
	p.Expect(toll.Lowest).To(BeNumerically(">=", floor))
	p.alwaysReady(p.moments(history), replicas)
}

// startGroup starts a node group whose nodes take four pods with a request of one CPU, until the end of the test.
func startGroup(t *testing.T, m *fleet.Member, provider kube.Provider, capacity string, least int) *kube.NodeGroup {
	t.Helper()
	return runGroup(t, m, kube.NodeGroupSpec{
		Name: string(provider) + "-" + capacity, Provider: provider, Capacity: capacity, Min: least, Max: 4,
		Node:         kube.NodeSpec{CPU: "4", Start: fleet.NodeTime / pace / 2},
		Registration: fleet.NodeTime / pace / 2, IdleFor: 10 * time.Minute / pace,
	})
}

// runGroup starts a node group until the end of the test.
func runGroup(t *testing.T, m *fleet.Member, spec kube.NodeGroupSpec) *kube.NodeGroup {
	t.Helper()
	group := kube.NewNodeGroup(t, m.Cluster, spec)
	t.Cleanup(func() {
		group.Stop()
		removeNodes(t, m, group.Nodes())
	})
	return group
}

// removeNodes takes nodes away when a test has ended.
func removeNodes(t *testing.T, m *fleet.Member, names []string) {
	t.Helper()
	if err := m.Cluster.RemoveNodes(context.Background(), names...); err != nil {
		t.Errorf("clean up: %v", err)
	}
}

// triggered are the Events of scale-ups in the spec's namespace.
func (p *placing) triggered() []corev1.Event {
	p.t.Helper()
	var all corev1.EventList
	p.Expect(p.member.Client().List(p.ctx, &all)).To(Succeed())
	var found []corev1.Event
	for _, event := range all.Items {
		if event.Namespace == p.namespace && event.Reason == "TriggeredScaleUp" {
			found = append(found, event)
		}
	}
	return found
}
