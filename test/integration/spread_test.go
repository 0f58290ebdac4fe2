package integration

import (
	"context"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// TestTopologySpread has templates whose pods must be spread over zones, with a real scheduler.
func TestTopologySpread(t *testing.T) {
	fleets.beside(t)
	f := startFleet(t, "one")
	h := startHub(t, f, "spread", nil)
	t.Run("side by side", func(t *testing.T) {
		for name, spec := range map[string]func(*placing){
			"both capacity types together keep the skew":                spreadTogetherSpec,
			"a skew that a zone without spot nodes breaks is explained": spreadApartSpec,
			"no replica is moved whose replacement would wait for ever": spreadBlockedSpec,
		} {
			t.Run(name, func(t *testing.T) {
				specs.beside(t)
				spec(place(t, h, f.Members[0], fleet.Enabled()))
			})
		}
	})
}

// zoneKey is a topology key that only the nodes of one spec have.
func (p *placing) zoneKey() string { return "zone.example.com/" + p.namespace }

// addZone adds a node of each of these types in a zone; they go with the spec.
func (p *placing) addZone(zone string, capacities ...string) {
	p.t.Helper()
	for _, capacity := range capacities {
		names, err := p.member.Cluster.AddNodes(p.ctx, 1, kube.NodeSpec{
			Capacity: capacity, Labels: map[string]string{p.zoneKey(): zone},
			Taints: []corev1.Taint{{Key: diskLabel, Value: p.namespace, Effect: corev1.TaintEffectNoSchedule}},
		})
		p.Expect(err).NotTo(HaveOccurred())
		p.t.Cleanup(func() {
			for _, name := range names {
				_ = p.member.Client().Delete(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
			}
		})
	}
}

// spread is a Deployment whose pods must be spread over the zones with a skew of one.
func (p *placing) spread(name string, replicas, percent, floor int) *appsv1.Deployment {
	d := fleet.Deployment(p.namespace, name, replicas, fleet.Policy(percent, floor))
	d.Annotations[fleet.Keys.PendingTimeout()] = "1h" // no drought is part of this
	d.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: diskLabel, Value: p.namespace}}
	d.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: p.zoneKey(), WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: d.Spec.Selector,
	}}
	return d
}

// knowsZones waits until the hub places new pods by the zones' nodes: its cache hears of those a moment after they are there.
func (p *placing) knowsZones() {
	p.t.Helper()
	witness := p.create(p.spread("witness", 1, 100, 0))
	p.Eventually(func(g Gomega) {
		pods := p.pods(witness)
		g.Expect(pods).NotTo(BeEmpty())
		policy := pods[0].Spec.TopologySpreadConstraints[0].NodeAffinityPolicy
		if policy == nil && pods[0].DeletionTimestamp == nil {
			g.Expect(client.IgnoreNotFound(p.member.Client().Delete(p.ctx, &pods[0]))).To(Succeed())
		}
		g.Expect(policy).To(HaveValue(Equal(corev1.NodeInclusionPolicyIgnore)))
	}).Should(Succeed())
}

// zones counts the pods of a workload by zone, of both types.
func (p *placing) zones(w *fleet.Workload) map[string]int {
	p.t.Helper()
	var nodes corev1.NodeList
	p.Expect(p.member.Client().List(p.ctx, &nodes, client.HasLabels{p.zoneKey()})).To(Succeed())
	zone, counts := map[string]string{}, map[string]int{}
	for i := range nodes.Items {
		zone[nodes.Items[i].Name] = nodes.Items[i].Labels[p.zoneKey()]
		counts[nodes.Items[i].Labels[p.zoneKey()]] += 0
	}
	for _, pod := range p.pods(w) {
		if pod.DeletionTimestamp == nil {
			p.Expect(zone).To(HaveKey(pod.Spec.NodeName), "pod %s", pod.Name)
			counts[zone[pod.Spec.NodeName]]++
		}
	}
	return counts
}

// keepsSkew expects the mix of a policy, at rest, and zones of which none has more than one replica more than another.
func (p *placing) keepsSkew(w *fleet.Workload, replicas, percent, floor int, after string) {
	p.t.Helper()
	p.mixed(w, replicas, percent, floor)
	var counts []int
	for _, n := range p.zones(w) {
		counts = append(counts, n)
	}
	p.Expect(counts).To(HaveLen(3))
	p.Expect(slices.Max(counts)-slices.Min(counts)).To(BeNumerically("<=", 1), "zones after %s: %v", after, counts)
}

func spreadTogetherSpec(p *placing) {
	for _, zone := range []string{"a", "b", "c"} {
		p.addZone(zone, kube.Spot, kube.OnDemand)
	}
	p.knowsZones()
	w := p.create(p.spread("web", 10, 70, 2))
	p.keepsSkew(w, 10, 70, 2, "the start")
	p.Expect(w.Annotate(p.ctx, fleet.Policy(30, 2))).To(Succeed())
	p.keepsSkew(w, 10, 30, 2, "a change of the policy")
	p.Expect(w.Scale(p.ctx, 19)).To(Succeed())
	p.keepsSkew(w, 19, 30, 2, "a scale-up")
	p.Expect(w.Scale(p.ctx, 7)).To(Succeed())
	p.keepsSkew(w, 7, 30, 2, "a scale-down")
	p.Expect(w.Annotate(p.ctx, fleet.Policy(100, 2))).To(Succeed())
	p.keepsSkew(w, 7, 100, 2, "another change of the policy")
	p.Expect(p.shown(w)(p.WithT).GetExplanation()).NotTo(ContainElement(ContainSubstring("is not satisfied")))
}

func spreadApartSpec(p *placing) {
	p.addZone("a", kube.Spot, kube.OnDemand)
	p.addZone("b", kube.Spot, kube.OnDemand)
	p.addZone("c", kube.OnDemand)
	w := p.create(p.spread("web", 9, 67, 0)) // 6 on spot, which zones a and b share
	p.mixed(w, 9, 67, 0)
	p.Expect(p.zones(w)["c"]).To(Equal(1))

	const why = "each capacity type is spread on its own, because c has no spot node that the template allows"
	p.Eventually(p.warnings).Should(ContainElement(And(ContainSubstring(p.zoneKey()+" (maxSkew 1) is not satisfied"), ContainSubstring("c 1"), ContainSubstring(why))))
	p.Expect(p.shown(w)(p.WithT).GetExplanation()).To(ContainElement(ContainSubstring(why)))
	p.Expect(p.evictions()).To(BeEmpty())
}

// spreadBlockedSpec has a template that asks for all nodes to be counted, and a zone, the emptiest, that has no on-demand node.
func spreadBlockedSpec(p *placing) {
	p.addZone("a", kube.Spot, kube.OnDemand)
	p.addZone("b", kube.Spot, kube.OnDemand)
	d := p.spread("web", 4, 100, 0)
	d.Spec.Template.Spec.TopologySpreadConstraints[0].NodeAffinityPolicy = new(corev1.NodeInclusionPolicyIgnore)
	w := p.create(d)
	p.mixed(w, 4, 100, 0)
	p.addZone("c", kube.Spot)
	p.Expect(w.Annotate(p.ctx, fleet.Policy(50, 0))).To(Succeed())
	p.Eventually(p.reason(w)).Should(And(ContainSubstring(p.zoneKey()), ContainSubstring("leaves only c for a replacement")))
	p.reconciledAgain(deploymentController, w, 2)
	p.Expect(p.evictions()).To(BeEmpty())

	p.addZone("c", kube.OnDemand)
	p.mixed(w, 4, 50, 0)
}
