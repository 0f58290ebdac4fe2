package kube_test

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// deployment makes one and waits until all of its replicas are ready.
func deployment(t *testing.T, c *kube.Cluster, ns string, replicas int32, shape func(*corev1.PodSpec)) *appsv1.Deployment {
	t.Helper()
	g := NewWithT(t)
	labels := map[string]string{"app": "sample"}
	pod := corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "sample"}}}
	if shape != nil {
		shape(&pod)
	}
	made := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sample"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(replicas),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		},
	}
	g.Expect(c.Client().Create(t.Context(), made)).To(Succeed())
	ready(t, c, made, replicas)
	return made
}

// ready waits until so many replicas are ready.
func ready(t *testing.T, c *kube.Cluster, d *appsv1.Deployment, replicas int32) {
	t.Helper()
	NewWithT(t).Eventually(func() (int32, error) {
		err := c.Client().Get(t.Context(), client.ObjectKeyFromObject(d), d)
		return d.Status.ReadyReplicas, err
	}, patience).Should(Equal(replicas))
}

// running is the pods of a namespace that are not on their way out, by node.
func running(t *testing.T, c *kube.Cluster, ns string) map[string]int {
	t.Helper()
	byNode := map[string]int{}
	for _, pod := range list(t, c, &corev1.PodList{}, ns).Items {
		if pod.DeletionTimestamp == nil {
			byNode[pod.Spec.NodeName]++
		}
	}
	return byNode
}

// onNodes has pods run on nodes with this label value only.
func onNodes(pool string) func(*corev1.PodSpec) {
	return func(pod *corev1.PodSpec) { pod.NodeSelector = map[string]string{"pool": pool} }
}

func pool(name, capacity string) kube.NodeSpec {
	return kube.NodeSpec{Capacity: capacity, Labels: map[string]string{"pool": name}}
}

func TestFiftyPodsRunOnSimulatedSpotAndOnDemandNodes(t *testing.T) {
	g := NewWithT(t)
	c, _ := fleet(t)
	ns := namespace(t, c)
	nodes(t, c, 2, pool("fifty", kube.Spot))
	nodes(t, c, 1, pool("fifty", kube.OnDemand))
	deployment(t, c, ns, 50, onNodes("fifty"))

	capacities := map[string]int{}
	for name, pods := range running(t, c, ns) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		g.Expect(exists(t, c, node)).To(BeTrue())
		capacities[node.Labels[kube.CapacityLabel]] += pods
	}
	g.Expect(capacities).To(And(HaveKey(kube.Spot), HaveKey(kube.OnDemand), HaveLen(2)))
	g.Expect(capacities[kube.Spot] + capacities[kube.OnDemand]).To(Equal(50))
}

func TestANodeHoldsNoMorePodsThanItsSpecSays(t *testing.T) {
	g := NewWithT(t)
	c, _ := fleet(t)
	ns := namespace(t, c)
	spec := pool("small", kube.Spot)
	spec.Pods = 3
	names := nodes(t, c, 2, spec)
	deployment(t, c, ns, 6, onNodes("small"))
	g.Expect(running(t, c, ns)).To(Equal(map[string]int{names[0]: 3, names[1]: 3}))
}

func TestADeletedPodGoesWithoutWaitingForItsGracePeriod(t *testing.T) {
	g := NewWithT(t)
	c, _ := fleet(t)
	ns := namespace(t, c)
	nodes(t, c, 1, pool("graceful", kube.Spot))
	deployment(t, c, ns, 1, func(pod *corev1.PodSpec) {
		onNodes("graceful")(pod)
		pod.TerminationGracePeriodSeconds = ptr.To[int64](3600)
	})
	pod := &list(t, c, &corev1.PodList{}, ns).Items[0]
	g.Expect(c.Client().Delete(t.Context(), pod)).To(Succeed())
	old := pod.UID
	g.Eventually(func() bool { return exists(t, c, pod) && pod.UID == old }, patience).Should(BeFalse())
}

func TestPodsTakeTheTimeToStartAndToStopThatTheOptionsSay(t *testing.T) {
	g := NewWithT(t)
	const start, stop = 600 * time.Millisecond, 400 * time.Millisecond
	c := kube.New(t, kube.Options{Name: "slow", PodStart: start, PodStop: stop})
	nodes(t, c, 1, pool("slow", kube.Spot))

	begun := time.Now()
	deployment(t, c, "default", 1, onNodes("slow"))
	g.Expect(time.Now()).To(BeTemporally(">=", begun.Add(start)))

	pod := &list(t, c, &corev1.PodList{}, "default").Items[0]
	begun = time.Now()
	g.Expect(c.Client().Delete(t.Context(), pod)).To(Succeed())
	g.Eventually(func() bool { return exists(t, c, pod) }, patience).Should(BeFalse())
	g.Expect(time.Now()).To(BeTemporally(">=", begun.Add(stop)))
}

func TestAPodMarkedNeverReadyStaysPending(t *testing.T) {
	g := NewWithT(t)
	c, _ := fleet(t)
	ns := namespace(t, c)
	nodes(t, c, 1, pool("never", kube.Spot))
	never := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "never", Annotations: map[string]string{kube.NeverReady: "true"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "sample"}}},
	}
	onNodes("never")(&never.Spec)
	g.Expect(c.Client().Create(t.Context(), never)).To(Succeed())
	// Pods that are bound after it are ready: it was passed over.
	g.Eventually(func() string { exists(t, c, never); return never.Spec.NodeName }, patience).ShouldNot(BeEmpty())
	deployment(t, c, ns, 2, onNodes("never"))
	exists(t, c, never)
	g.Expect(never.Status.Phase).To(Equal(corev1.PodPending))
}

// Kubernetes' node controller marks pods like that, and leaves it to the kubelet to say what is true.
func TestAPodThatAnotherMarkedAsNotReadyIsReadyAgain(t *testing.T) {
	g := NewWithT(t)
	c, _ := fleet(t)
	ns := namespace(t, c)
	nodes(t, c, 1, pool("marked", kube.Spot))
	d := deployment(t, c, ns, 1, onNodes("marked"))
	pod := &list(t, c, &corev1.PodList{}, ns).Items[0]
	marked := []byte(`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`)
	g.Expect(c.Client().Status().Patch(t.Context(), pod, client.RawPatch(types.StrategicMergePatchType, marked))).To(Succeed())
	ready(t, c, d, 1)
	g.Eventually(func() corev1.ConditionStatus {
		exists(t, c, pod)
		return pod.Status.Conditions[slices.IndexFunc(pod.Status.Conditions, func(is corev1.PodCondition) bool { return is.Type == corev1.PodReady })].Status
	}, patience).Should(Equal(corev1.ConditionTrue))
}

func TestANodeThatIsTakenAwayTakesItsPodsAndTheyComeBackElsewhere(t *testing.T) {
	g := NewWithT(t)
	c, _ := fleet(t)
	ns := namespace(t, c)
	lost := nodes(t, c, 1, pool("lost", kube.Spot))
	d := deployment(t, c, ns, 4, onNodes("lost"))
	g.Expect(running(t, c, ns)).To(Equal(map[string]int{lost[0]: 4}))

	kept := nodes(t, c, 1, pool("lost", kube.OnDemand))
	g.Expect(c.RemoveNodes(t.Context(), lost...)).To(Succeed())
	g.Eventually(func() map[string]int { return running(t, c, ns) }, patience).Should(Equal(map[string]int{kept[0]: 4}))
	ready(t, c, d, 4)
}

func TestATaintEmptiesANodeUntilItIsTakenAway(t *testing.T) {
	g := NewWithT(t)
	c, _ := fleet(t)
	ns := namespace(t, c)
	names := nodes(t, c, 2, pool("tainted", kube.Spot))
	d := deployment(t, c, ns, 6, onNodes("tainted"))
	taint := corev1.Taint{Key: "interrupted", Value: "soon", Effect: corev1.TaintEffectNoExecute}

	g.Expect(c.TaintNodes(t.Context(), taint, names[0])).To(Succeed())
	g.Eventually(func() map[string]int { return running(t, c, ns) }, patience).Should(Equal(map[string]int{names[1]: 6}))
	ready(t, c, d, 6)

	g.Expect(c.UntaintNodes(t.Context(), taint.Key, names[0])).To(Succeed())
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: names[0]}}
	g.Expect(exists(t, c, node)).To(BeTrue())
	g.Expect(node.Spec.Taints).To(BeEmpty())
}
