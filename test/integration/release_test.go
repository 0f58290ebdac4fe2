package integration

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// The release strategy in numbers: from 7 on spot to 3 of 10 replicas.
const (
	releaseReplicas = 10
	releaseBefore   = 70
	releaseAfter    = 30
	releaseMoves    = 4
)

// TestReleases moves replicas that have no replica to spare: the replacement is made before the replica goes.
func TestReleases(t *testing.T) {
	fleets.beside(t)
	f := startFleet(t, "one")
	h := startHub(t, f, "release", fleet.Settings{"spot.strategy": "release"})
	m := f.Members[0]
	t.Run("side by side", func(t *testing.T) {
		for name, budget := range map[string]*policyv1.PodDisruptionBudgetSpec{
			"without a budget":                   nil,
			"with a budget that counts":          {MinAvailable: new(intstr.FromInt32(releaseReplicas))},
			"with a budget in percent":           {MinAvailable: new(intstr.FromString("100%"))},
			"with a budget that lets none go":    {MaxUnavailable: new(intstr.FromInt32(0))},
			"with a budget of no percent at all": {MaxUnavailable: new(intstr.FromString("0%"))},
		} {
			t.Run("no replica is missing "+name, func(t *testing.T) {
				specs.beside(t)
				releaseSpec(place(t, h, m, fleet.Enabled()), budget)
			})
		}
		for name, spec := range map[string]func(*placing){
			"released pods wait as long as their budget says":          releaseRefusedSpec,
			"pods that a Service selects by their hash are evicted":    hashServiceSpec,
			"what was released is taken away with its workload":        releasedStraysSpec,
			"a workload that is disabled meanwhile keeps no spare pod": releaseDisabledSpec,
			"nor does one whose label is taken off":                    releaseUnlabelledSpec,
		} {
			t.Run(name, func(t *testing.T) {
				specs.beside(t)
				spec(place(t, h, m, fleet.Enabled()))
			})
		}
	})
	t.Run("a hub that is gone at any step is taken over from", func(t *testing.T) { releaseRestartSpec(t, h, f) })
}

func releaseSpec(p *placing, budget *policyv1.PodDisruptionBudgetSpec) {
	w := p.create(fleet.Deployment(p.namespace, "web", releaseReplicas, fleet.Policy(releaseBefore, 1)))
	p.exactly(w, releaseReplicas, releaseBefore, 1)
	if budget != nil {
		p.budget(*budget, releaseReplicas)
	}
	history := p.follow(w)
	p.Expect(w.Annotate(p.ctx, fleet.Policy(releaseAfter, 1))).To(Succeed())
	p.mixed(w, releaseReplicas, releaseAfter, 1)
	p.onlyMovedBy(history, releaseReplicas, releaseMoves, 0)
	p.Expect(p.released(w)).To(BeEmpty())
}

func releaseRefusedSpec(p *placing) {
	w := p.create(fleet.Deployment(p.namespace, "web", releaseReplicas, fleet.Policy(releaseBefore, 1)))
	p.exactly(w, releaseReplicas, releaseBefore, 1)
	budget := p.budget(policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(releaseReplicas + 2))}, releaseReplicas)
	history := p.follow(w)
	p.Expect(w.Annotate(p.ctx, fleet.Policy(releaseAfter, 1))).To(Succeed())
	p.Eventually(func() []string { return p.released(w) }).ShouldNot(BeEmpty())
	for _, pod := range p.pods(w) {
		if _, released := pod.Annotations[fleet.Keys.Released()]; released { // it ends without the hub as well
			p.Expect(pod.Spec.ActiveDeadlineSeconds).To(HaveValue(And(BeNumerically(">=", 6*time.Hour.Seconds()), BeNumerically("<", 7*time.Hour.Seconds()))))
		}
	}
	p.reconciledAgain(deploymentController, w, 2)
	p.Expect(p.evictions()).To(BeEmpty())
	p.Expect(p.released(w)).NotTo(BeEmpty())

	patch := client.MergeFrom(budget.DeepCopy())
	budget.Spec.MinAvailable = new(intstr.FromInt32(releaseReplicas))
	p.Expect(p.member.Client().Patch(p.ctx, budget, patch)).To(Succeed())
	p.mixed(w, releaseReplicas, releaseAfter, 1)
	p.onlyMovedBy(history, releaseReplicas, releaseMoves, 0)
}

func hashServiceSpec(p *placing) {
	w := p.create(fleet.Deployment(p.namespace, "web", releaseReplicas, fleet.Policy(releaseBefore, 1)))
	p.exactly(w, releaseReplicas, releaseBefore, 1)
	hash := p.pods(w)[0].Labels["pod-template-hash"]
	p.Expect(p.member.Client().Create(p.ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "web"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"pod-template-hash": hash}, Ports: []corev1.ServicePort{{Port: 80}}},
	})).To(Succeed())
	other, err := p.member.NewNamespace(p.ctx, "other", nil) // the answer for this one may be older than its Service
	p.Expect(err).NotTo(HaveOccurred())
	p.t.Cleanup(func() { _ = p.member.DeleteNamespace(context.Background(), other) })
	p.Eventually(func() bool {
		p.Expect(p.hub.Reconcile(p.ctx, w)).To(Succeed())
		return len(p.audited(fleet.ByHub, kube.ByVerb("list"), kube.OnResource("services"))) > 1
	}).Should(BeTrue())
	p.Expect(w.Annotate(p.ctx, fleet.Policy(releaseAfter, 1))).To(Succeed())
	p.mixed(w, releaseReplicas, releaseAfter, 1)
	p.moved(releaseMoves)
	for _, patch := range p.audited(fleet.ByHub, kube.ByVerb("patch"), kube.OnResource("pods")) {
		p.Expect(patch.Code).To(BeNumerically("<", 400))
	}
	p.Expect(p.released(w)).To(BeEmpty())
}

// heldReleases makes a workload of which pods were released that a budget does not let go.
func (p *placing) heldReleases() *fleet.Workload {
	p.t.Helper()
	w := p.create(fleet.Deployment(p.namespace, "web", releaseReplicas, fleet.Policy(releaseBefore, 1)))
	p.exactly(w, releaseReplicas, releaseBefore, 1)
	budget := p.budget(policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(releaseReplicas + 2))}, releaseReplicas)
	p.Expect(w.Annotate(p.ctx, fleet.Policy(releaseAfter, 1))).To(Succeed())
	p.Eventually(func() []string { return p.released(w) }).ShouldNot(BeEmpty())
	p.t.Cleanup(func() { _ = p.member.Client().Delete(context.Background(), budget) })
	return w
}

func releasedStraysSpec(p *placing) {
	w := p.heldReleases()
	p.Expect(w.Delete(p.ctx)).To(Succeed())
	p.Expect(p.member.Client().DeleteAllOf(p.ctx, &policyv1.PodDisruptionBudget{}, client.InNamespace(p.namespace))).To(Succeed())
	p.Eventually(func() []corev1.Pod { return p.pods(w) }).Should(BeEmpty())
}

func releaseDisabledSpec(p *placing) {
	w := p.heldReleases()
	p.Expect(w.Label(p.ctx, map[string]string{fleet.Keys.Enabled(): "false"})).To(Succeed())
	p.Expect(p.member.Client().DeleteAllOf(p.ctx, &policyv1.PodDisruptionBudget{}, client.InNamespace(p.namespace))).To(Succeed())
	p.Eventually(func() []string { return p.released(w) }).Should(BeEmpty())
	p.Expect(p.ready(w, releaseReplicas).Ready).To(Equal(releaseReplicas))
}

func releaseUnlabelledSpec(p *placing) {
	w := p.heldReleases()
	unlabel := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+fleet.Keys.Enabled()+`":null}}}`))
	p.Expect(p.member.Client().Patch(p.ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "web"}}, unlabel)).To(Succeed())
	p.Expect(p.member.Client().DeleteAllOf(p.ctx, &policyv1.PodDisruptionBudget{}, client.InNamespace(p.namespace))).To(Succeed())
	p.Eventually(func() []string { return p.released(w) }).WithTimeout(2 * time.Minute).Should(BeEmpty())
	p.Expect(p.ready(w, releaseReplicas).Ready).To(Equal(releaseReplicas))
}

// releaseRestartSpec ends the hub after each release and each of its consequences: another one goes on.
func releaseRestartSpec(outer *testing.T, h *insideHub, f *fleet.Fleet) {
	for name, reached := range map[string]func(p *placing, w *fleet.Workload) bool{
		"released":             func(p *placing, w *fleet.Workload) bool { return len(p.released(w)) > 0 },
		"the replacement made": func(p *placing, w *fleet.Workload) bool { return len(p.pods(w)) > releaseReplicas },
		"the first evicted":    func(p *placing, _ *fleet.Workload) bool { return len(p.evictions()) > 0 },
	} {
		outer.Run(name, func(t *testing.T) {
			p := place(t, h, f.Members[0], fleet.Enabled())
			w := p.create(fleet.Deployment(p.namespace, "web", releaseReplicas, fleet.Policy(releaseBefore, 1)))
			p.exactly(w, releaseReplicas, releaseBefore, 1)
			p.budget(policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromString("100%"))}, releaseReplicas)
			history := p.follow(w)
			p.Expect(w.Annotate(p.ctx, fleet.Policy(releaseAfter, 1))).To(Succeed())
			p.Eventually(func() bool { return reached(p, w) }).WithPolling(0).Should(BeTrue())
			h.stop(t)
			h = startHub(outer, f, "release-"+strings.ReplaceAll(name, " ", "-"), fleet.Settings{"spot.strategy": "release"})
			p.hub = h
			p.mixed(w, releaseReplicas, releaseAfter, 1)
			// A replacement that is made while no hub answers is let through, and may have to move itself.
			unplaced := 0
			for _, moment := range p.moments(history) {
				unplaced = max(unplaced, moment.Unplaced)
			}
			moved := len(p.evictions())
			p.Expect(moved).To(And(BeNumerically(">=", releaseMoves), BeNumerically("<=", releaseMoves+unplaced)))
			p.onlyMovedBy(history, releaseReplicas, moved, 0)
			p.Expect(p.released(w)).To(BeEmpty())
		})
	}
}

// released are the names of the workload's pods that have left their ReplicaSet.
func (p *placing) released(w *fleet.Workload) []string {
	p.t.Helper()
	var names []string
	for _, pod := range p.pods(w) {
		if strings.HasPrefix(pod.Labels["pod-template-hash"], "released-") && pod.DeletionTimestamp == nil {
			names = append(names, pod.Name)
		}
	}
	return names
}
