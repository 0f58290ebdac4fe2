package integration

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// TestModesAndAnswers switches off what the hub may do, shuts windows, and asks the hub why it does what it does.
func TestModesAndAnswers(t *testing.T) {
	fleets.beside(t)
	f := startFleet(t, "one")
	h := startHub(t, f, "modes", fleet.Settings{
		"spot.tolerations": []map[string]any{{"key": spotTaint, "operator": "Exists"}},
		"namespaceSelector": map[string]any{"matchExpressions": []map[string]any{
			{"key": teamLabel, "operator": "NotIn", "values": []string{"other"}},
			{"key": corev1.LabelMetadataName, "operator": "NotIn", "values": []string{"kube-system", excludedNamespace}},
		}},
	})
	t.Run("side by side", func(t *testing.T) {
		for name, spec := range map[string]func(*placing){
			"in a read-only namespace plans are shown and nothing is written":  readOnlyNamespaceSpec,
			"a read-only workload is not touched until it is not read-only":    readOnlyWorkloadSpec,
			"a paused workload is not moved, and its new replicas are placed":  pausedSpec,
			"replicas move when the window is open, in the zone that it names": windowSpec,
			"the hub explains what it wants, waits for and has moved":          explainSpec,
			"what-if answers from the same state and writes nothing":           whatIfSpec,
			"a floor that no budget protects is reported until a budget does":  unprotectedSpec,
			"tainted spot nodes are tolerated, and what a template has stays":  tolerationSpec,
			"namespaces that the configuration leaves out are not touched":     namespaceSelectorSpec,
			"a template that no spot node satisfies is reported, and placed":   noSpotNodeFitsSpec,
			"a template that only spot nodes satisfy is told, and not moved":   noOnDemandNodeFitsSpec,
			"a template that no node satisfies is reported, and left alone":    noNodeFitsSpec,
		} {
			t.Run(name, func(t *testing.T) {
				specs.beside(t)
				spec(placeFor(t, h, f.Members[0], fleet.Enabled(), 4*patience)) // a minute passes before a floor counts as unprotected
			})
		}
	})
	t.Run("a read-only member is only looked at", func(t *testing.T) { readOnlyMemberSpec(t, h, f) })
	t.Run("in a cordoned member nothing is moved, and new replicas are placed", func(t *testing.T) { cordonedMemberSpec(t, h, f) })
	t.Run("a paused hub writes nothing in a member that joins later, also after a restart", func(t *testing.T) { pausedHubSpec(t, h, f) })
}

// What the hub of these specs is configured with: spotTaint is tolerated, and namespaces of the team "other" are left out.
const (
	spotTaint = "example.com/spot"
	teamLabel = "example.com/team"
	// excludedNamespace is left out by its name, and so are its ReplicaSets from what is cached.
	excludedNamespace = "left-out"
)

func tolerationSpec(p *placing) {
	const replicas, percent = 4, 50
	p.addNode(kube.Spot, corev1.Taint{Key: spotTaint, Effect: corev1.TaintEffectNoSchedule})
	p.addNode(kube.OnDemand)
	d := p.picky("web", replicas, percent, true)
	d.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: d.Spec.Selector,
	}}
	affinity := d.Spec.Template.Spec.Affinity.DeepCopy()
	w := p.create(d)
	p.mixed(w, replicas, percent, 0)
	for _, pod := range p.pods(w) {
		p.Expect(pod.Spec.TopologySpreadConstraints).To(HaveLen(1))
		p.Expect(pod.Spec.Affinity).To(Equal(affinity))
		tolerated := ContainElement(HaveField("Key", spotTaint))
		if pod.Spec.NodeSelector[kube.CapacityLabel] != kube.Spot {
			tolerated = Not(tolerated)
		}
		p.Expect(pod.Spec.Tolerations).To(And(ContainElement(HaveField("Key", diskLabel)), tolerated))
	}
}

func namespaceSelectorSpec(p *placing) {
	labels := fleet.Enabled()
	labels[teamLabel] = "other"
	others := place(p.t, p.hub, p.member, labels)
	left := others.create(fleet.Deployment(others.namespace, "web", 4, fleet.Policy(50, 1)))
	others.ready(left, 4)
	witness := p.create(fleet.Deployment(p.namespace, "web", 4, fleet.Policy(50, 1)))
	p.exactly(witness, 4, 50, 1)
	p.Expect(others.slots(left)).To(HaveEach(""))
	p.Expect(others.writes()).To(BeEmpty())
}

// annotate sets annotations of the spec's namespace.
func (p *placing) annotate(annotations map[string]string) {
	p.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}}
	before := namespace.DeepCopy()
	namespace.Annotations = annotations
	p.Expect(p.member.Client().Patch(p.ctx, namespace, client.MergeFrom(before))).To(Succeed())
}

// shown reads what the hub says of a workload.
func (p *placing) shown(w *fleet.Workload) func(Gomega) *plimsollv1.Workload {
	return func(g Gomega) *plimsollv1.Workload {
		known, err := p.hub.Workload(p.ctx, w)
		g.Expect(err).NotTo(HaveOccurred())
		return known
	}
}

// waitsFor matches a workload that waits for something.
func waitsFor(kind plimsollv1.WaitKind) OmegaMatcher {
	return WithTransform(func(w *plimsollv1.Workload) []plimsollv1.WaitKind {
		var kinds []plimsollv1.WaitKind
		for _, wait := range w.GetWaits() {
			kinds = append(kinds, wait.GetKind())
		}
		return kinds
	}, ContainElement(kind))
}

func readOnlyNamespaceSpec(p *placing) {
	const replicas = 6
	w := p.create(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(50, 1)))
	p.exactly(w, replicas, 50, 1)
	p.annotate(map[string]string{fleet.Keys.ReadOnly(): "true"})
	p.Eventually(p.shown(w)).Should(WithTransform(readOnlyBy, Equal("namespace")))
	before := len(p.writes())

	p.Expect(w.Annotate(p.ctx, fleet.Policy(0, 1))).To(Succeed())
	p.Eventually(p.state(w)).Should(Equal(plimsollv1.WorkloadState_WORKLOAD_STATE_READ_ONLY))
	p.Expect(w.Scale(p.ctx, replicas+2)).To(Succeed())
	p.ready(w, replicas+2)
	p.Expect(p.hub.Reconcile(p.ctx, w)).To(Succeed())
	p.Expect(p.evictions()).To(BeEmpty())
	p.Expect(p.writes()).To(HaveLen(before))

	p.annotate(map[string]string{fleet.Keys.ReadOnly(): "false"})
	p.mixed(w, replicas+2, 0, 1)
}

func readOnlyBy(w *plimsollv1.Workload) string { return w.GetPlacement().GetReadOnlyBy() }

func readOnlyWorkloadSpec(p *placing) {
	const replicas = 4
	deployment := fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(100, 0))
	deployment.Annotations[fleet.Keys.ReadOnly()] = "true"
	w := p.create(deployment)
	p.ready(w, replicas)
	p.Eventually(p.shown(w)).Should(WithTransform(readOnlyBy, Equal("workload")))
	for _, pod := range p.pods(w) {
		p.Expect(pod.Spec.NodeSelector).To(BeEmpty())
		p.Expect(pod.Labels).NotTo(HaveKey(fleet.Keys.Slot()))
	}
	p.Expect(p.writes()).To(BeEmpty())
	p.Expect(w.Annotate(p.ctx, map[string]string{fleet.Keys.ReadOnly(): "false"})).To(Succeed())
	p.mixed(w, replicas, 100, 0)
}

func pausedSpec(p *placing) {
	const replicas = 8
	w := p.create(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(50, 1)))
	p.exactly(w, replicas, 50, 1)
	p.Expect(w.Annotate(p.ctx, map[string]string{fleet.Keys.Paused(): "true", fleet.Keys.SpotPercentage(): "0"})).To(Succeed())
	p.Eventually(p.shown(w)).Should(waitsFor(plimsollv1.WaitKind_WAIT_KIND_PAUSED))
	p.Expect(w.Scale(p.ctx, replicas+2)).To(Succeed())
	p.decided(w, fleet.Mix{Spot: 4, OnDemand: 6, Ready: 10})
	p.Expect(p.hub.Reconcile(p.ctx, w)).To(Succeed())
	p.Expect(p.evictions()).To(BeEmpty())

	p.Expect(w.Annotate(p.ctx, map[string]string{fleet.Keys.Paused(): "false"})).To(Succeed())
	p.mixed(w, replicas+2, 0, 1)
	p.moved(4)
}

func readOnlyMemberSpec(t *testing.T, h *insideHub, f *fleet.Fleet) {
	t.Helper()
	p := place(t, h, f.Members[0], fleet.Enabled())
	const replicas = 4
	w := p.create(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(50, 1)))
	p.exactly(w, replicas, 50, 1)
	mark := func(value string) { p.annotateRegistration(f, "plimsoll.dev/read-only", value) }
	mark("true")
	p.Eventually(p.shown(w)).Should(WithTransform(readOnlyBy, Equal("member")))
	before := len(p.writes())
	p.Expect(w.Annotate(p.ctx, fleet.Policy(100, 0))).To(Succeed())
	p.Eventually(p.state(w)).Should(Equal(plimsollv1.WorkloadState_WORKLOAD_STATE_READ_ONLY))
	p.Expect(p.evictions()).To(BeEmpty())
	p.Expect(p.writes()).To(HaveLen(before))
	mark("false")
	p.mixed(w, replicas, 100, 0)
}

// annotateRegistration sets an annotation of the member's registration.
func (p *placing) annotateRegistration(f *fleet.Fleet, annotation, value string) {
	p.t.Helper()
	secret := fleet.Registration(p.member.Name, nil)
	before := secret.DeepCopy()
	secret.Annotations = map[string]string{annotation: value}
	p.Expect(f.Hub.Client().Patch(p.ctx, secret, client.MergeFrom(before))).To(Succeed())
}

func cordonedMemberSpec(t *testing.T, h *insideHub, f *fleet.Fleet) {
	t.Helper()
	p := place(t, h, f.Members[0], fleet.Enabled())
	const replicas = 8
	w := p.create(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(50, 1)))
	p.exactly(w, replicas, 50, 1)
	p.annotateRegistration(f, clusters.CordonedAnnotation, "true")
	p.Eventually(func(g Gomega) []string {
		member, err := p.hub.API.Clusters.GetCluster(p.ctx, &plimsollv1.GetClusterRequest{Cluster: p.member.Name})
		g.Expect(err).NotTo(HaveOccurred())
		var conditions []string
		for _, is := range member.GetCluster().GetConditions() {
			conditions = append(conditions, is.GetType())
		}
		return conditions
	}).Should(ContainElement("Cordoned"))

	p.Expect(w.Annotate(p.ctx, map[string]string{fleet.Keys.SpotPercentage(): "0"})).To(Succeed())
	p.Eventually(p.shown(w)).Should(waitsFor(plimsollv1.WaitKind_WAIT_KIND_PAUSED))
	p.Expect(w.Scale(p.ctx, replicas+2)).To(Succeed())
	p.decided(w, fleet.Mix{Spot: 4, OnDemand: 6, Ready: 10})
	p.Expect(p.hub.Reconcile(p.ctx, w)).To(Succeed())
	p.Expect(p.evictions()).To(BeEmpty())

	p.annotateRegistration(f, clusters.CordonedAnnotation, "false")
	p.mixed(w, replicas+2, 0, 1)
	p.moved(4)
}

func pausedHubSpec(t *testing.T, h *insideHub, f *fleet.Fleet) {
	t.Helper()
	ctx := t.Context()
	m := f.Members[0]
	pause := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "pause", Namespace: fleet.Registrations, Labels: map[string]string{clusters.AllMembersLabel: "true"},
			Annotations: map[string]string{"plimsoll.dev/read-only": "true"}},
		Type: clusters.AllMembersType,
	}
	g := NewWithT(t)
	g.Expect(f.Unregister(ctx, m)).To(Succeed())
	g.Expect(f.Hub.Client().Create(ctx, pause)).To(Succeed())
	g.Expect(f.Register(ctx, m)).To(Succeed())

	const replicas = 4
	stays := func(h *insideHub, p *placing, w *fleet.Workload) {
		p.ready(w, replicas)
		p.Eventually(p.shown(w)).Should(WithTransform(readOnlyBy, Equal("hub")))
		p.Expect(h.Reconcile(ctx, w)).To(Succeed())
		for _, pod := range p.pods(w) {
			p.Expect(pod.Spec.NodeSelector).To(BeEmpty())
		}
		p.Expect(p.writes()).To(BeEmpty())
		p.Eventually(func(g Gomega) []string {
			member, err := h.API.Clusters.GetCluster(ctx, &plimsollv1.GetClusterRequest{Cluster: m.Name})
			g.Expect(err).NotTo(HaveOccurred())
			var reasons []string
			for _, is := range member.GetCluster().GetConditions() {
				reasons = append(reasons, is.GetType()+"/"+is.GetReason())
			}
			return reasons
		}).Should(ContainElement("Paused/AllClusters"))
	}
	p := place(t, h, m, fleet.Enabled())
	w := p.create(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(100, 0)))
	stays(h, p, w)

	h.stop(t)
	p.hub = startHub(t, f, "modes-again")
	stays(p.hub, p, w)

	p.Expect(f.Hub.Client().Delete(ctx, pause)).To(Succeed())
	p.mixed(w, replicas, 100, 0)
}
