package kube_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// read asks for something that is always there, and gives up soon.
func read(ctx context.Context, c client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return c.Get(ctx, client.ObjectKey{Name: "kube-system"}, &corev1.Namespace{})
}

func configMap(ns, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
}

func TestAHungAPIServerAnswersNothingUntilItGoesOn(t *testing.T) {
	g := NewWithT(t)
	whole, c := fleet(t)
	g.Expect(c.HangAPIServer()).To(Succeed())
	t.Cleanup(func() { _ = c.ResumeAPIServer() })
	g.Expect(read(t.Context(), c.Client())).To(MatchError(context.DeadlineExceeded))
	g.Expect(read(t.Context(), whole.Client())).To(Succeed(), "the other cluster has nothing to do with it")
	_, err := c.Audit().Events()
	g.Expect(err).NotTo(HaveOccurred(), "the audit log can be read meanwhile")

	g.Expect(c.ResumeAPIServer()).To(Succeed())
	g.Eventually(func() error { return read(t.Context(), c.Client()) }, patience).Should(Succeed())
}

func TestAStoppedAPIServerComesBackAtItsAddressWithItsData(t *testing.T) {
	g := NewWithT(t)
	_, c := fleet(t)
	kept := configMap("default", "kept")
	g.Expect(c.Client().Create(t.Context(), kept)).To(Succeed())
	t.Cleanup(func() { _ = c.Client().Delete(context.Background(), configMap("default", "kept")) })
	before := c.URL()

	g.Expect(c.StopAPIServer()).To(Succeed())
	g.Expect(c.Pids()).NotTo(HaveKey(kube.APIServer))
	g.Expect(read(t.Context(), c.Client())).To(MatchError(ContainSubstring("connection refused")))
	g.Expect(c.StopAPIServer()).To(Succeed(), "stopping again is no error")
	g.Expect(c.HangAPIServer()).To(MatchError(ContainSubstring("does not run")))

	g.Expect(c.StartAPIServer(t.Context())).To(Succeed())
	g.Expect(c.URL()).To(Equal(before))
	g.Expect(exists(t, c, kept)).To(BeTrue())
	g.Expect(c.StartAPIServer(t.Context())).To(MatchError(ContainSubstring("still runs")))
}

func TestAHungAPIServerCanBeKilledAndRevived(t *testing.T) {
	g := NewWithT(t)
	_, c := fleet(t)
	g.Expect(c.HangAPIServer()).To(Succeed())
	g.Expect(c.Kill(kube.APIServer)).To(Succeed())
	g.Expect(c.Revive(t.Context(), kube.APIServer)).To(Succeed())
	g.Expect(read(t.Context(), c.Client())).To(Succeed())
	_, err := c.Audit().Mark()
	g.Expect(err).NotTo(HaveOccurred())
}

func TestPodsWaitForASchedulerThatWasKilled(t *testing.T) {
	g := NewWithT(t)
	_, c := fleet(t)
	ns := namespace(t, c)
	nodes(t, c, 1, pool("scheduler", kube.Spot))
	g.Expect(c.Kill(kube.Scheduler)).To(Succeed())
	g.Expect(c.Pids()).NotTo(HaveKey(kube.Scheduler))

	waiting := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "waiting"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "sample"}}},
	}
	g.Expect(c.Client().Create(t.Context(), waiting)).To(Succeed())
	exists(t, c, waiting)
	g.Expect(waiting.Spec.NodeName).To(BeEmpty())

	g.Expect(c.Revive(t.Context(), kube.Scheduler)).To(Succeed())
	g.Eventually(func() corev1.PodPhase { exists(t, c, waiting); return waiting.Status.Phase }, patience).Should(Equal(corev1.PodRunning))
	g.Expect(c.Kill("kubelet")).To(MatchError(ContainSubstring(`has no component "kubelet"`)))
}
