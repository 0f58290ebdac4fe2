package integration

import (
	"context"
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

func policySpec(p *placing) {
	const replicas, before, after, floor = 20, 70, 30, 1
	w := p.create(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(before, floor)))
	p.exactly(w, replicas, before, floor)
	history := p.follow(w)

	p.Expect(w.Annotate(p.ctx, fleet.Policy(after, floor))).To(Succeed())
	p.mixed(w, replicas, after, floor)

	p.onlyMovedBy(history, replicas, 8, 2)
}

// onlyMovedBy expects so many evictions, all by the hub, with never more replicas missing than a batch has.
func (p *placing) onlyMovedBy(history *fleet.History, replicas, moves, batch int) {
	p.t.Helper()
	p.moved(moves)
	p.moved(moves, fleet.ByHub)
	p.Expect(p.audited(fleet.ByHub, kube.ByVerb("delete", "deletecollection"))).To(BeEmpty())
	for _, moment := range p.moments(history) {
		p.Expect(moment.Mix.Ready).To(BeNumerically(">=", replicas-batch), "after a change of pod %s: %s", moment.Pod, moment.Mix)
	}
}

func budgetSpec(p *placing) {
	const replicas, before, after, floor = 20, 70, 30, 1
	w := p.create(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(before, floor)))
	p.exactly(w, replicas, before, floor)
	all, share := intstr.FromInt32(replicas), intstr.FromString("5%")
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &all, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{fleet.AppLabel: "web"}}},
	}
	p.Expect(p.member.Client().Create(p.ctx, budget)).To(Succeed())
	p.Eventually(func() (int32, error) {
		err := p.member.Client().Get(p.ctx, client.ObjectKeyFromObject(budget), budget)
		return budget.Status.CurrentHealthy, err
	}).Should(BeEquivalentTo(replicas))
	history := p.follow(w)

	p.Expect(w.Annotate(p.ctx, fleet.Policy(after, floor))).To(Succeed())
	// Whether the hub knows the budget already, or hears of it by a refusal, it waits.
	p.Eventually(p.state(w)).Should(Equal(plimsollv1.WorkloadState_WORKLOAD_STATE_WAITING))
	p.Expect(p.evictions()).To(BeEmpty())

	// One of twenty may be missing now, which is less than a batch.
	patch := client.MergeFrom(budget.DeepCopy())
	budget.Spec.MinAvailable, budget.Spec.MaxUnavailable = nil, &share
	p.Expect(p.member.Client().Patch(p.ctx, budget, patch)).To(Succeed())
	p.mixed(w, replicas, after, floor)
	p.onlyMovedBy(history, replicas, 8, 1)
}

func ordinalSpec(p *placing) {
	const replicas, before, after, floor = 6, 50, 100, 1
	w := p.create(fleet.StatefulSet(p.namespace, "db", replicas, fleet.Policy(before, floor)))
	p.exactly(w, replicas, before, floor)
	uids := map[types.UID]bool{}
	for _, pod := range p.pods(w) {
		uids[pod.UID] = true
	}
	history := p.follow(w)

	p.Expect(w.Annotate(p.ctx, fleet.Policy(after, floor))).To(Succeed())
	p.mixed(w, replicas, after, floor)

	const moves = 2 // from 3 on spot to 5
	p.onlyMovedBy(history, replicas, moves, 1)
	kept := 0
	for _, pod := range p.pods(w) {
		if uids[pod.UID] {
			kept++
		}
	}
	p.Expect(kept).To(Equal(replicas - moves))
}

func invalidSpec(p *placing) {
	const percent, floor = 70, 1
	w := p.create(fleet.Deployment(p.namespace, "web", 10, fleet.Policy(percent, floor)))
	p.exactly(w, 10, percent, floor)

	p.Expect(w.Annotate(p.ctx, map[string]string{fleet.Keys.SpotPercentage(): "a third"})).To(Succeed())
	p.Eventually(p.warnings).Should(ContainElement(And(
		ContainSubstring(fleet.Keys.SpotPercentage()), ContainSubstring("a third"), ContainSubstring("0 to 100"),
	)))
	p.Eventually(p.state(w)).Should(Equal(plimsollv1.WorkloadState_WORKLOAD_STATE_INVALID))
	p.Expect(w.Scale(p.ctx, 14)).To(Succeed())
	p.decided(w, fleet.Mix{Spot: 7, OnDemand: 7, Ready: 14})
	p.Expect(p.hub.Reconcile(p.ctx, w)).To(Succeed())
	p.Expect(p.evictions()).To(BeEmpty())

	p.Expect(w.Annotate(p.ctx, fleet.Policy(percent, floor))).To(Succeed())
	p.mixed(w, 14, percent, floor)
	p.moved(2) // 7 were on spot, 9 belong there
}

// state reads what the hub says of a workload in one word.
func (p *placing) state(w *fleet.Workload) func() (plimsollv1.WorkloadState, error) {
	return func() (plimsollv1.WorkloadState, error) {
		known, err := p.hub.Workload(p.ctx, w)
		return known.GetState(), err
	}
}

// warnings are the messages of the Warning events in the namespace.
func (p *placing) warnings() ([]string, error) {
	var list corev1.EventList
	if err := p.member.Client().List(p.ctx, &list, client.InNamespace(p.namespace)); err != nil {
		return nil, err
	}
	var messages []string
	for _, event := range list.Items {
		if event.Type == corev1.EventTypeWarning && !strings.HasPrefix(event.InvolvedObject.Kind, "Pod") {
			messages = append(messages, event.Message)
		}
	}
	return messages, nil
}

func adoptionSpec(p *placing) {
	const replicas, percent, floor = 10, 70, 1
	p.label(nil) // as a namespace that nobody has enabled yet
	w := p.create(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(percent, floor)))
	before := p.ready(w, replicas)
	p.Expect(p.slots(w)).To(HaveEach(""))

	p.label(fleet.Enabled())
	p.mixed(w, replicas, percent, floor)
	p.Expect(p.slots(w)).To(ConsistOf(firstSlots(replicas)))
	spot, _ := fleet.Want(replicas, percent, floor)
	p.moved(max(spot-before.Spot, before.Spot-spot))
}

// label makes these the namespace's only labels of ours.
func (p *placing) label(labels map[string]string) {
	p.t.Helper()
	namespace := &corev1.Namespace{}
	p.Expect(p.member.Client().Get(p.ctx, client.ObjectKey{Name: p.namespace}, namespace)).To(Succeed())
	patch := client.MergeFrom(namespace.DeepCopy())
	for key := range fleet.Enabled() {
		delete(namespace.Labels, key)
	}
	for key, value := range labels {
		namespace.Labels[key] = value
	}
	p.Expect(p.member.Client().Patch(p.ctx, namespace, patch)).To(Succeed())
}

func namespacePolicySpec(p *placing) {
	const replicas, percent, floor = 8, 50, 5
	namespace := &corev1.Namespace{}
	p.Expect(p.member.Client().Get(p.ctx, client.ObjectKey{Name: p.namespace}, namespace)).To(Succeed())
	patch := client.MergeFrom(namespace.DeepCopy())
	namespace.Annotations = fleet.Policy(percent, 0)
	p.Expect(p.member.Client().Patch(p.ctx, namespace, patch)).To(Succeed())

	// The floor is the workload's own, the percentage the namespace's: each value counts on its own.
	w := p.create(fleet.Deployment(p.namespace, "web", replicas, map[string]string{fleet.Keys.MinOnDemand(): "5"}))
	p.mixed(w, replicas, percent, floor)
	spot, onDemand := fleet.Want(replicas, percent, floor)
	p.Expect(p.ready(w, replicas)).To(Equal(fleet.Mix{Spot: spot, OnDemand: onDemand, Ready: replicas}))
}

func othersEvictSpec(p *placing) {
	const replicas, percent, floor = 10, 70, 3
	w := p.create(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(percent, floor)))
	p.exactly(w, replicas, percent, floor)
	history := p.follow(w)
	for _, pod := range p.pods(w) {
		if capacity, err := p.member.CapacityOf(p.ctx, &pod); capacity == kube.OnDemand {
			p.Expect(err).NotTo(HaveOccurred())
			p.Expect(p.member.Client().SubResource("eviction").Create(p.ctx, &pod, &policyv1.Eviction{})).To(Succeed())
		}
	}
	p.mixed(w, replicas, percent, floor)
	for _, moment := range p.moments(history) {
		if moment.Mix.All() == replicas && moment.Mix.Leaving == 0 {
			p.Expect(moment.Mix.OnDemand).To(BeNumerically(">=", floor), "after a change of pod %s", moment.Pod)
		}
	}
	p.Expect(p.audited(kube.Evictions, fleet.ByHub)).To(BeEmpty())
}

// protectedSpec asks in the words of Karpenter and of Cluster Autoscaler, each for one half of the pods.
func protectedSpec(p *placing) {
	const replicas, before, after, floor = 10, 70, 30, 1
	asks := []string{plan.AnnotationDoNotDisrupt, plan.AnnotationSafeToEvict}
	w := p.create(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(before, floor)))
	p.exactly(w, replicas, before, floor)
	ask := func(values ...string) {
		for i, pod := range p.pods(w) {
			patch := client.MergeFrom(pod.DeepCopy())
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, asks[i%2], values[i%2])
			p.Expect(p.member.Client().Patch(p.ctx, &pod, patch)).To(Succeed())
		}
	}
	ask("true", "false")
	p.reconciledAgain(deploymentController, w, 2) // the hub's cache has them

	p.Expect(w.Annotate(p.ctx, fleet.Policy(after, floor))).To(Succeed())
	p.Eventually(p.reason(w)).Should(ContainSubstring("annotations forbid disruption"))
	p.reconciledAgain(deploymentController, w, 2)
	p.Expect(p.evictions()).To(BeEmpty())
	p.Expect(p.shown(w)(p.WithT).GetWaits()).To(ContainElement(HaveField("Kind", plimsollv1.WaitKind_WAIT_KIND_PROTECTED)))

	ask("false", "true")
	p.mixed(w, replicas, after, floor)
	p.moved(4)
}

// reconciledAgain waits until the hub has looked at a workload so many times more, each time of its own accord.
func (p *placing) reconciledAgain(controller string, w *fleet.Workload, times int) {
	p.t.Helper()
	seen := map[int64]bool{}
	err := fleet.Await(p.ctx, "resyncs of "+w.String(), func(ctx context.Context) (bool, error) {
		response, err := p.hub.Objects.GetObjectState(ctx, &plimsollv1.GetObjectStateRequest{
			Cluster: w.Member.Name, Controller: controller, Namespace: w.Namespace, Name: w.Name,
		})
		seen[response.GetObject().GetLastFinishedAt().AsTime().UnixNano()] = true
		return len(seen) > times, err
	})
	p.Expect(err).NotTo(HaveOccurred())
}
