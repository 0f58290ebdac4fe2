package integration

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

func TestTheFrameworkOnARealAPIServer(t *testing.T) {
	fleets.beside(t)
	c := kube.New(t, kube.Options{Name: "framework", Minimal: true})
	if err := c.Client().Create(t.Context(), gadgetDefinition()); err != nil {
		t.Fatal(err)
	}
	t.Run("what is as it should be stands still", func(t *testing.T) { stillSpec(t, c) })
	t.Run("a request is echoed, and a pause pauses", func(t *testing.T) { steeringSpec(t, c) })
	t.Run("two controllers' finalizers and a third keep out of each other's way", func(t *testing.T) { finalizerSpec(t, c) })
	t.Run("what was changed by hand is set right, and what is an autoscaler's stays", func(t *testing.T) { driftSpec(t, c) })
	t.Run("a field that is left to an autoscaler keeps its value", func(t *testing.T) { leaveSpec(t, c) })
	t.Run("what the server refuses is stalled with its reason until the cause goes", func(t *testing.T) { stalledSpec(t, c) })
}

const readyGadget = "True/Succeeded: "

func stillSpec(t *testing.T, c *kube.Cluster) {
	s := newGadgetSite(t, c, buildWorkshop)
	s.make("one", func(g *gadget) { g.Spec.Image, g.Spec.NodePort = "image:1", 30111 })
	s.g.Eventually(s.condition("one", reconcile.ConditionReady)).Should(Equal(readyGadget))
	s.run("workshop", "one") // sees everything in the cache, or finds out that it is there
	before := []string{readAs(s, "one", &gadget{}).ResourceVersion, readAs(s, "one", &appsv1.Deployment{}).ResourceVersion, readAs(s, "one", &corev1.Service{}).ResourceVersion}
	mark, err := c.Audit().Mark()
	s.g.Expect(err).NotTo(HaveOccurred())
	for range 5 {
		s.g.Expect(s.run("workshop", "one").LastOutcome).To(Equal(reconcile.OutcomeDone))
	}
	written, err := c.Audit().Since(mark, kube.Writes, kube.InNamespace(s.namespace))
	s.g.Expect(err).NotTo(HaveOccurred())
	s.g.Expect(written).To(BeEmpty(), "nothing is even asked for")
	s.g.Expect([]string{readAs(s, "one", &gadget{}).ResourceVersion, readAs(s, "one", &appsv1.Deployment{}).ResourceVersion,
		readAs(s, "one", &corev1.Service{}).ResourceVersion}).To(Equal(before))
	g := readAs(s, "one", &gadget{})
	s.g.Expect(g.Status.Conditions).To(HaveLen(1))
	s.g.Expect(g.Status.ObservedGeneration).To(Equal(g.Generation))
}

func steeringSpec(t *testing.T, c *kube.Cluster) {
	s := newGadgetSite(t, c, buildWorkshop)
	s.make("one", func(g *gadget) { g.Spec.Image = "image:1" })
	s.g.Eventually(s.condition("one", reconcile.ConditionReady)).Should(Equal(readyGadget))
	annotate := func(key, value string) {
		editAs(s, "one", &gadget{}, func(g *gadget) {
			if g.Annotations == nil {
				g.Annotations = map[string]string{}
			}
			g.Annotations[key] = value
		})
	}
	annotate(reconcile.AnnotationRequestedAt, "2026-01-01T00:00:00Z")
	s.g.Eventually(func() string { return readAs(s, "one", &gadget{}).Status.LastHandledRequest }).Should(Equal("2026-01-01T00:00:00Z"))

	annotate(reconcile.AnnotationPaused, "true")
	s.g.Eventually(s.condition("one", reconcile.ConditionPaused)).Should(HavePrefix("True/"))
	editAs(s, "one", &gadget{}, func(g *gadget) { g.Spec.Image = "image:2" })
	s.g.Expect(s.run("workshop", "one").LastOutcome).To(Equal(reconcile.OutcomePaused), "an order does not end a pause")
	s.g.Expect(readAs(s, "one", &appsv1.Deployment{}).Spec.Template.Spec.Containers[0].Image).To(Equal("image:1"))
	s.g.Expect(readAs(s, "one", &gadget{}).Status.Image).To(Equal("image:1"))
	editAs(s, "one", &gadget{}, func(g *gadget) { delete(g.Annotations, reconcile.AnnotationPaused) })
	s.g.Eventually(func() string { return readAs(s, "one", &appsv1.Deployment{}).Spec.Template.Spec.Containers[0].Image }).Should(Equal("image:2"))
	s.g.Eventually(s.condition("one", reconcile.ConditionPaused)).Should(BeEmpty())
}

// keeper is a Finalizer that remembers what it holds.
type keeper struct {
	name string
	mu   sync.Mutex
	held map[types.NamespacedName]bool
}

func (k *keeper) Reconcile(_ context.Context, req reconcile.Request[*gadget]) (reconcile.Result, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held[client.ObjectKeyFromObject(req.Object)] = true
	req.Conditions.True("Held"+k.name, "Held", "")
	return reconcile.Done(), nil
}

func (k *keeper) Finalize(_ context.Context, req reconcile.Request[*gadget]) (reconcile.FinalizeResult, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.held, client.ObjectKeyFromObject(req.Object))
	return reconcile.CleanedUp(), nil
}

// holds counts what it holds in a namespace.
func (k *keeper) holds(namespace string) (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key := range k.held {
		if key.Namespace == namespace {
			n++
		}
	}
	return n
}

func finalizerSpec(t *testing.T, c *kube.Cluster) {
	first, second := &keeper{name: "First", held: map[types.NamespacedName]bool{}}, &keeper{name: "Second", held: map[types.NamespacedName]bool{}}
	s := newGadgetSite(t, c, func(s *reconcileSite) {
		s.mustRegister(reconcile.For[*gadget](s.runtime, "first", first).Register())
		s.mustRegister(reconcile.For[*gadget](s.runtime, "second", second).Register())
	})
	const count = 20
	for i := range count {
		s.make(fmt.Sprint("g", i), func(g *gadget) { g.Finalizers = []string{"test.plimsoll.dev/third"} })
	}
	want := []string{"plimsoll.dev/first", "plimsoll.dev/second", "test.plimsoll.dev/third"}
	for i := range count {
		s.g.Eventually(func() []string {
			return slices.Sorted(slices.Values(readAs(s, fmt.Sprint("g", i), &gadget{}).Finalizers))
		}).Should(Equal(want))
	}
	s.g.Eventually(func() int { return first.holds(s.namespace) + second.holds(s.namespace) }).Should(Equal(2 * count))
	for i := range count {
		s.g.Expect(s.client.Delete(s.ctx, readAs(s, fmt.Sprint("g", i), &gadget{}))).To(Succeed())
	}
	for i := range count {
		s.g.Eventually(func() []string { return readAs(s, fmt.Sprint("g", i), &gadget{}).Finalizers }).Should(Equal(want[2:]))
	}
	s.g.Expect(first.holds(s.namespace) + second.holds(s.namespace)).To(BeZero())
	for i := range count {
		editAs(s, fmt.Sprint("g", i), &gadget{}, func(g *gadget) { g.Finalizers = nil })
		s.g.Eventually(func() error {
			return s.client.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: fmt.Sprint("g", i)}, &gadget{})
		}).Should(Satisfy(apierrors.IsNotFound))
	}
	s.g.Eventually(s.state("first", "a", "g0")).Should(BeEmpty(), "the ledger has forgotten it")
}

// autoscale sets the replicas of a Deployment as an autoscaler does.
func (s *gadgetSite) autoscale(name string, replicas int32) {
	s.t.Helper()
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	d := readAs(s, name, &appsv1.Deployment{})
	s.g.Expect(s.client.SubResource("scale").Update(s.ctx, d, client.WithSubResourceBody(scale), client.FieldOwner("autoscaler"))).To(Succeed())
}

func driftSpec(t *testing.T, c *kube.Cluster) {
	s := newGadgetSite(t, c, buildWorkshop)
	s.make("one", func(g *gadget) { g.Spec.Image, g.Spec.Label = "image:1", "on" })
	image := func() string { return readAs(s, "one", &appsv1.Deployment{}).Spec.Template.Spec.Containers[0].Image }
	replicas := func() int32 { return *readAs(s, "one", &appsv1.Deployment{}).Spec.Replicas }
	s.g.Eventually(s.condition("one", reconcile.ConditionReady)).Should(Equal(readyGadget))
	s.autoscale("one", 5)
	editAs(s, "one", &appsv1.Deployment{}, func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Image = "by:hand"
		d.Labels["theirs"] = "1"
	})
	s.g.Eventually(image).Should(Equal("image:1"))
	d := readAs(s, "one", &appsv1.Deployment{})
	s.g.Expect(*d.Spec.Replicas).To(BeEquivalentTo(5))
	s.g.Expect(d.Labels).To(HaveKeyWithValue("theirs", "1"))

	editAs(s, "one", &gadget{}, func(g *gadget) { g.Spec.Image, g.Spec.Label = "image:2", "" })
	s.g.Eventually(image).Should(Equal("image:2"))
	d = readAs(s, "one", &appsv1.Deployment{})
	s.g.Expect(d.Labels).NotTo(HaveKey("label"), "a field that is not applied any more is removed")
	s.g.Expect(replicas()).To(BeEquivalentTo(5))

	uid := d.UID
	s.g.Expect(s.client.Delete(s.ctx, d)).To(Succeed())
	s.g.Eventually(func() types.UID {
		again := &appsv1.Deployment{}
		if s.client.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: "one"}, again) != nil {
			return uid
		}
		return again.UID
	}).ShouldNot(Equal(uid), "it was deleted by hand")
}

func leaveSpec(t *testing.T, c *kube.Cluster) {
	s := newGadgetSite(t, c, buildWorkshop)
	three := int32(3)
	s.make("one", func(g *gadget) { g.Spec.Image, g.Spec.Replicas = "image:1", &three })
	replicas := func() int32 { return *readAs(s, "one", &appsv1.Deployment{}).Spec.Replicas }
	s.g.Eventually(s.condition("one", reconcile.ConditionReady)).Should(Equal(readyGadget))
	s.autoscale("one", 4)
	s.g.Eventually(replicas).Should(BeEquivalentTo(3), "as long as it is ours")

	editAs(s, "one", &gadget{}, func(g *gadget) { g.Spec.LeaveReplicas, g.Spec.Image = true, "image:2" })
	s.g.Eventually(func() string { return readAs(s, "one", &appsv1.Deployment{}).Spec.Template.Spec.Containers[0].Image }).Should(Equal("image:2"))
	s.g.Expect(replicas()).To(BeEquivalentTo(3))
	s.autoscale("one", 7)
	editAs(s, "one", &gadget{}, func(g *gadget) { g.Spec.Image = "image:3" })
	s.g.Eventually(func() string { return readAs(s, "one", &appsv1.Deployment{}).Spec.Template.Spec.Containers[0].Image }).Should(Equal("image:3"))
	s.g.Expect(replicas()).To(BeEquivalentTo(7))

	editAs(s, "one", &gadget{}, func(g *gadget) { g.Spec.LeaveReplicas = false })
	s.g.Eventually(replicas).Should(BeEquivalentTo(3), "it is ours again")
}

func stalledSpec(t *testing.T, c *kube.Cluster) {
	s := newGadgetSite(t, c, buildWorkshop)
	taken := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "taken"}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: 30222}},
	}}
	s.g.Expect(s.client.Create(s.ctx, taken)).To(Succeed())
	s.make("one", func(g *gadget) { g.Spec.Image, g.Spec.NodePort = "image:1", 30222 })
	s.g.Eventually(s.condition("one", reconcile.ConditionStalled)).Should(And(HavePrefix("True/Invalid: "), ContainSubstring("already allocated")))
	s.g.Expect(s.condition("one", reconcile.ConditionReady)()).To(HavePrefix("False/Invalid: "))
	s.g.Eventually(func() reconcile.Outcome { return s.record("workshop", "a", "one").LastOutcome }).Should(Equal(reconcile.OutcomeTerminal))
	s.g.Expect(s.client.Delete(s.ctx, taken)).To(Succeed())
	// Both are read at once: the object is at rest where it is ready and nothing of it is stalled.
	s.g.Eventually(func() []string { return s.conditions("one", reconcile.ConditionReady, reconcile.ConditionStalled) }).Should(Equal([]string{readyGadget, ""}))
}
