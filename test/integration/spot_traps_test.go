package integration

import (
	"slices"
	"strconv"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// deploymentController is the name of the controller that places Deployments.
const deploymentController = "deployment-spot"

// notEnabledSpec is trap 24: controller and webhook must agree about what is off.
func notEnabledSpec(p *placing) {
	const replicas = 4
	off := place(p.t, p.hub, p.member, nil)
	unlabelled := fleet.Deployment(p.namespace, "no-label", replicas, fleet.Policy(50, 1))
	unlabelled.Labels = nil
	shouted := fleet.Deployment(p.namespace, "shouted-label", replicas, fleet.Policy(50, 1))
	shouted.Labels = map[string]string{fleet.Keys.Enabled(): "TRUE"}
	workloads := []*fleet.Workload{
		p.create(unlabelled),
		p.create(shouted),
		p.create(fleet.Deployment(p.namespace, "no-policy", replicas, nil)),
		off.create(fleet.Deployment(off.namespace, "namespace-off", replicas, fleet.Policy(50, 1))),
	}
	for _, w := range workloads {
		p.ready(w, replicas)
	}
	// One that is enabled, beside them: when it is done, the others' turn has come and gone.
	witness := p.create(fleet.Deployment(p.namespace, "witness", replicas, fleet.Policy(50, 1)))
	p.exactly(witness, replicas, 50, 1)
	p.reconciledAgain(deploymentController, witness, 2)

	for _, w := range workloads {
		for _, pod := range p.pods(w) {
			p.Expect(pod.Spec.NodeSelector).To(BeEmpty(), "pod %s of %s", pod.Name, w)
			p.Expect(pod.Annotations).NotTo(HaveKey(policy.DeletionCost), "pod %s of %s", pod.Name, w)
		}
	}
	p.Expect(p.evictions()).To(BeEmpty())
	p.Expect(off.evictions()).To(BeEmpty())
	p.Expect(p.writes()).To(BeEmpty())
	p.Expect(off.writes()).To(BeEmpty())
}

// expressionsSpec is trap 25: pods belong to a workload by their controller references, and never by labels.
func expressionsSpec(p *placing) {
	const replicas = 6
	everything := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: fleet.AppLabel, Operator: metav1.LabelSelectorOpExists},
	}}
	cheap := fleet.Deployment(p.namespace, "cheap", replicas, fleet.Policy(100, 0))
	safe := fleet.Deployment(p.namespace, "safe", replicas, fleet.Policy(0, 0))
	cheap.Spec.Selector, safe.Spec.Selector = everything.DeepCopy(), everything.DeepCopy()
	first, second := p.create(cheap), p.create(safe)
	p.exactly(first, replicas, 100, 0)
	p.exactly(second, replicas, 0, 0)
	p.reconciledAgain(deploymentController, first, 2)
	p.Expect(p.evictions()).To(BeEmpty())
	p.Expect(p.slots(first)).To(ConsistOf(firstSlots(replicas)))
	p.Expect(p.slots(second)).To(ConsistOf(firstSlots(replicas)))
}

func ownValuesSpec(p *placing) {
	const replicas, percent, floor = 4, 50, 1
	deployment := fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(percent, floor))
	deployment.Spec.Template.Annotations = map[string]string{policy.DeletionCost: "7"}
	deployment.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelOSStable: "linux"}
	w := p.create(deployment)
	p.exactly(w, replicas, percent, floor)
	p.reconciledAgain(deploymentController, w, 1)
	for _, pod := range p.pods(w) {
		p.Expect(pod.Annotations).To(HaveKeyWithValue(policy.DeletionCost, "7"))
		p.Expect(pod.Spec.NodeSelector).To(HaveKeyWithValue(corev1.LabelOSStable, "linux"))
		p.Expect(pod.Spec.NodeSelector).To(HaveKey(kube.CapacityLabel))
	}
	p.Expect(p.slots(w)).To(ConsistOf(firstSlots(replicas)))
}

// quotaSpec is trap 20: pods that are refused after us must not use up slots.
func quotaSpec(p *placing) {
	const replicas, allowed, percent, floor = 10, 5, 60, 2
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "pods"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(allowed, resource.DecimalSI)}},
	}
	p.Expect(p.member.Client().Create(p.ctx, quota)).To(Succeed())
	p.Eventually(func() (corev1.ResourceList, error) {
		err := p.member.Client().Get(p.ctx, client.ObjectKeyFromObject(quota), quota)
		return quota.Status.Hard, err
	}).ShouldNot(BeEmpty())
	w := p.create(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(percent, floor)))
	p.Eventually(func() int {
		return len(p.audited(kube.OnResource("pods"), kube.ByVerb("create"), kube.Not(kube.Succeeded)))
	}).Should(BeNumerically(">=", 8))
	p.Eventually(func() ([]corev1.Pod, error) { return w.Pods(p.ctx) }).Should(HaveLen(allowed))

	patch := client.MergeFrom(quota.DeepCopy())
	quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(2*replicas, resource.DecimalSI)}
	p.Expect(p.member.Client().Patch(p.ctx, quota, patch)).To(Succeed())
	p.mixed(w, replicas, percent, floor)
	for _, text := range p.slots(w) {
		slot, err := strconv.Atoi(text)
		p.Expect(err).NotTo(HaveOccurred())
		p.Expect(slot).To(BeNumerically("<", replicas))
	}
}

// stillnessSpec is invariant 8: who finds nothing to do writes nothing. The budget is there because the hub warns of a floor without one,
// once and a minute later, and the Events of what has happened are awaited, for they are written later too.
func stillnessSpec(p *placing) {
	const replicas, percent, floor = 6, 50, 2
	p.Expect(p.member.Client().Create(p.ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "all"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(replicas)), Selector: &metav1.LabelSelector{}},
	})).To(Succeed())
	deployment := p.create(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(percent, floor)))
	set := p.create(fleet.StatefulSet(p.namespace, "db", replicas, fleet.Policy(percent, floor)))
	p.exactly(deployment, replicas, percent, floor)
	p.exactly(set, replicas, percent, floor)
	p.Eventually(func() ([]string, error) { return p.subjects("Converged") }).Should(ContainElements(deployment.Name, set.Name))
	before := p.versions()
	p.remark()
	p.reconciledAgain(deploymentController, deployment, 4)
	p.reconciledAgain("statefulset-spot", set, 4)
	p.Expect(p.audited(fleet.ByHub, kube.Writes)).To(BeEmpty())
	p.Expect(p.versions()).To(Equal(before))
}

// subjects names what Events with a reason are about.
func (p *placing) subjects(reason string) ([]string, error) {
	var list corev1.EventList
	err := p.member.Client().List(p.ctx, &list, client.InNamespace(p.namespace))
	var names []string
	for i := range list.Items {
		if list.Items[i].Reason == reason {
			names = append(names, list.Items[i].InvolvedObject.Name)
		}
	}
	return names, err
}

// versions are the resourceVersions of everything in the namespace that the hub looks at.
func (p *placing) versions() map[string]string {
	p.t.Helper()
	versions := map[string]string{}
	for _, list := range []client.ObjectList{&corev1.PodList{}, &appsv1.DeploymentList{}, &appsv1.ReplicaSetList{}, &appsv1.StatefulSetList{}} {
		p.Expect(p.member.Client().List(p.ctx, list, client.InNamespace(p.namespace))).To(Succeed())
		for _, object := range objectsOf(list) {
			versions[string(object.GetUID())] = object.GetName() + " " + object.GetResourceVersion()
		}
	}
	return versions
}

func objectsOf(list client.ObjectList) []client.Object {
	var objects []client.Object
	switch l := list.(type) {
	case *corev1.PodList:
		for i := range l.Items {
			objects = append(objects, &l.Items[i])
		}
	case *appsv1.DeploymentList:
		for i := range l.Items {
			objects = append(objects, &l.Items[i])
		}
	case *appsv1.ReplicaSetList:
		for i := range l.Items {
			objects = append(objects, &l.Items[i])
		}
	case *appsv1.StatefulSetList:
		for i := range l.Items {
			objects = append(objects, &l.Items[i])
		}
	}
	return objects
}

// dryRunSpec makes the pods of a ReplicaSet itself, in its controller's name: a dry run shows a slot and takes none.
func dryRunSpec(p *placing) {
	const replicas, percent, floor = 4, 50, 1
	w := p.create(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(percent, floor)))
	p.exactly(w, replicas, percent, floor)
	model := p.pods(w)[0]
	for range 5 {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: p.namespace, GenerateName: model.GenerateName, OwnerReferences: model.OwnerReferences,
				Labels: map[string]string{fleet.AppLabel: "web", appsv1.DefaultDeploymentUniqueLabelKey: model.Labels[appsv1.DefaultDeploymentUniqueLabelKey]},
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "images.example.com/app:1"}}},
		}
		p.Expect(p.member.Client().Create(p.ctx, pod, client.DryRunAll)).To(Succeed())
		p.Expect(pod.Labels).To(HaveKey(fleet.Keys.Slot()))
	}
	p.Expect(w.Scale(p.ctx, 2*replicas)).To(Succeed())
	p.exactly(w, 2*replicas, percent, floor)
	slots := p.slots(w)
	slices.Sort(slots)
	p.Expect(slots).To(Equal(firstSlots(2 * replicas)))
}
