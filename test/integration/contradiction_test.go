package integration

import (
	"context"
	"strings"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// diskLabel is on nodes that a spec adds, with the spec's namespace as its value.
const diskLabel = "example.com/disk"

// addNode adds one node that only the templates of this spec ask for, and that takes no other pods. It goes with the spec.
func (p *placing) addNode(capacity string, taints ...corev1.Taint) {
	p.t.Helper()
	names, err := p.member.Cluster.AddNodes(p.ctx, 1, kube.NodeSpec{
		Capacity: capacity, Labels: map[string]string{diskLabel: p.namespace},
		Taints: append(taints, corev1.Taint{Key: diskLabel, Value: p.namespace, Effect: corev1.TaintEffectNoSchedule}),
	})
	p.Expect(err).NotTo(HaveOccurred())
	p.t.Cleanup(func() {
		for _, name := range names {
			_ = p.member.Client().Delete(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	})
}

// picky is a Deployment whose template asks for the spec's own nodes, by its nodeSelector or by its affinity.
func (p *placing) picky(name string, replicas, percent int, byAffinity bool) *appsv1.Deployment {
	d := fleet.Deployment(p.namespace, name, replicas, fleet.Policy(percent, 0))
	d.Annotations[fleet.Keys.PendingTimeout()] = "1h" // it is not a drought that is seen here
	d.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: diskLabel, Value: p.namespace}}
	if !byAffinity {
		d.Spec.Template.Spec.NodeSelector = map[string]string{diskLabel: p.namespace}
		return d
	}
	d.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: diskLabel, Operator: corev1.NodeSelectorOpIn, Values: []string{p.namespace}}},
		}}},
	}}
	return d
}

// contradicts expects an Event on the workload, and the reason in the API.
func (p *placing) contradicts(w *fleet.Workload, wait plimsollv1.WaitKind, reason string) {
	p.t.Helper()
	p.Eventually(func(g Gomega) {
		var list corev1.EventList
		g.Expect(p.member.Client().List(p.ctx, &list, client.InNamespace(p.namespace))).To(Succeed())
		var messages []string
		for _, event := range list.Items {
			if event.Type == corev1.EventTypeWarning && event.Reason == "Contradiction" && event.InvolvedObject.Kind == w.Kind && event.InvolvedObject.Name == w.Name {
				messages = append(messages, strings.ToLower(event.Message[:1])+event.Message[1:])
			}
		}
		g.Expect(messages).To(ContainElement(ContainSubstring(reason)))
	}).Should(Succeed())
	p.Eventually(p.shown(w)).Should(And(waitsFor(wait), WithTransform(func(w *plimsollv1.Workload) string { return w.GetPlacement().GetReason() }, ContainSubstring(reason))))
}

// noSpotNodeFitsSpec has templates that on-demand nodes alone can satisfy: no pod of theirs waits for spot.
func noSpotNodeFitsSpec(p *placing) {
	const replicas, percent = 4, 50
	p.addNode(kube.OnDemand)
	const reason = "no spot node of the member matches the template's own nodeSelector or node affinity"
	selecting, requiring := p.create(p.picky("selecting", replicas, percent, false)), p.create(p.picky("requiring", replicas, percent, true))
	for _, w := range []*fleet.Workload{selecting, requiring} {
		p.Expect(p.ready(w, replicas)).To(Equal(fleet.Mix{OnDemand: replicas, Ready: replicas}))
		p.contradicts(w, plimsollv1.WaitKind_WAIT_KIND_DRY, reason)
		p.Expect(p.shown(w)(p.WithT).GetExplanation()).To(ContainElement(ContainSubstring(reason)))
	}

	p.addNode(kube.Spot)
	for _, w := range []*fleet.Workload{selecting, requiring} {
		p.mixed(w, replicas, percent, 0)
	}
}

// noOnDemandNodeFitsSpec has a template that spot nodes alone can satisfy. The replicas of its floor wait, for an autoscaler may
// bring their node, and no other replica is moved to join them.
func noOnDemandNodeFitsSpec(p *placing) {
	const replicas = 4
	p.addNode(kube.Spot)
	const reason = "no on-demand node of the member matches the template's own nodeSelector or node affinity"
	w := p.create(p.picky("web", replicas, 50, false))
	p.Eventually(func() (int, error) {
		pods, err := w.Pods(p.ctx)
		return len(pods), err
	}).Should(Equal(replicas))
	if unsure := p.unsure(); unsure > 0 {
		p.t.Skipf("the machine was too slow for the hub's decision on %d pods, which only a spot node can take and nobody moves", unsure)
	}
	p.Eventually(func() (fleet.Mix, error) { return w.Mix(p.ctx) }).Should(Equal(fleet.Mix{Spot: 2, OnDemand: 2, Ready: 2}))
	p.contradicts(w, plimsollv1.WaitKind_WAIT_KIND_TEMPLATE, reason)

	p.Expect(w.Annotate(p.ctx, fleet.Policy(0, 0))).To(Succeed())
	p.Eventually(p.reason(w)).Should(And(ContainSubstring("2 replicas stay on spot"), ContainSubstring(reason)))
	p.reconciledAgain(deploymentController, w, 2)
	p.Expect(p.evictions()).To(BeEmpty())
	p.Expect(w.Mix(p.ctx)).To(Equal(fleet.Mix{Spot: 2, OnDemand: 2, Ready: 2}))

	p.addNode(kube.OnDemand)
	p.mixed(w, replicas, 0, 0)
}

// noNodeFitsSpec has a template that no node can satisfy: what its replicas wait for is said, and nothing is moved.
func noNodeFitsSpec(p *placing) {
	const replicas = 2
	w := p.create(p.picky("web", replicas, 50, true))
	p.contradicts(w, plimsollv1.WaitKind_WAIT_KIND_TEMPLATE, "no node of the member matches the template's own nodeSelector or node affinity")
	p.Expect(p.evictions()).To(BeEmpty())

	p.addNode(kube.Spot)
	p.addNode(kube.OnDemand)
	p.mixed(w, replicas, 50, 0)
}
