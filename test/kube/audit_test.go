package kube_test

import (
	"testing"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// clientNamed is an admin's client that the audit log can distinguish from others.
func clientNamed(t *testing.T, c *kube.Cluster, userAgent string) client.WithWatch {
	t.Helper()
	config := c.Config()
	config.UserAgent = userAgent
	made, err := client.NewWithWatch(config, client.Options{Scheme: scheme.Scheme})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return made
}

// mark is the end of the audit log.
func mark(t *testing.T, c *kube.Cluster) kube.Mark {
	t.Helper()
	m, err := c.Audit().Mark()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return m
}

// since is what the audit log has after the mark.
func since(t *testing.T, c *kube.Cluster, m kube.Mark, filters ...kube.Filter) []kube.AuditEvent {
	t.Helper()
	events, err := c.Audit().Since(m, filters...)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return events
}

func TestTheAuditLogCountsEvictionsThatWereGrantedAndThoseThatWereNot(t *testing.T) {
	g := NewWithT(t)
	c, _ := fleet(t)
	ns := namespace(t, c)
	nodes(t, c, 1, pool("evictions", kube.Spot))
	deployment(t, c, ns, 2, onNodes("evictions"))
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "budget"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: ptr.To(intstr.FromInt32(0)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "sample"}},
		},
	}
	pod := list(t, c, &corev1.PodList{}, ns).Items[0]
	evictor, other := clientNamed(t, c, "evictor/1"), kube.ByUserAgent("evictor/2")
	evict := func(options ...client.SubResourceCreateOption) error {
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: pod.Name}}
		return evictor.SubResource("eviction").Create(t.Context(), &pod, eviction, options...)
	}
	start := mark(t, c)
	g.Expect(c.Client().Create(t.Context(), budget)).To(Succeed())
	g.Eventually(func() int64 { exists(t, c, budget); return budget.Status.ObservedGeneration }, patience).Should(BeEquivalentTo(1))
	g.Expect(apierrors.IsTooManyRequests(evict())).To(BeTrue())
	g.Expect(c.Client().Delete(t.Context(), budget)).To(Succeed())
	g.Eventually(func() error { return evict(client.DryRunAll) }, patience).Should(Succeed())
	g.Expect(evict()).To(Succeed())

	granted := since(t, c, start, kube.Evictions, kube.InNamespace(ns))
	g.Expect(granted).To(HaveLen(1))
	g.Expect(granted[0]).To(And(
		HaveField("Name", pod.Name), HaveField("User", "admin"), HaveField("UserAgent", "evictor/1"),
		HaveField("Code", 201), HaveField("Answered", BeTemporally(">=", granted[0].Received)),
	))
	attempts := since(t, c, start, kube.EvictionAttempts, kube.InNamespace(ns), kube.Not(kube.DryRun))
	g.Expect(kube.CountBy(attempts, func(e kube.AuditEvent) string { return e.Reason })).To(HaveKeyWithValue("TooManyRequests", 1))
	g.Expect(since(t, c, start, kube.EvictionAttempts, other)).To(BeEmpty())
	g.Expect(since(t, c, mark(t, c), kube.EvictionAttempts)).To(BeEmpty(), "nothing was evicted after this mark")
}

func TestTheAuditLogCountsWritesWithoutHeartbeatsAndQuestions(t *testing.T) {
	g := NewWithT(t)
	c, _ := fleet(t)
	ns := namespace(t, c)
	writer := clientNamed(t, c, "writer/1")
	mine := kube.ByUserAgent("writer/1")
	ctx := t.Context()
	start := mark(t, c)

	object := configMap(ns, "written")
	g.Expect(writer.Create(ctx, object)).To(Succeed())
	object.Data = map[string]string{"a": "b"}
	g.Expect(writer.Update(ctx, object)).To(Succeed())
	g.Expect(writer.Patch(ctx, object, client.RawPatch("application/merge-patch+json", mustJSON(map[string]any{"data": map[string]string{"a": "c"}})))).To(Succeed())
	g.Expect(writer.Delete(ctx, object)).To(Succeed())

	g.Expect(writer.Get(ctx, client.ObjectKeyFromObject(object), object)).NotTo(Succeed())
	g.Expect(writer.Create(ctx, configMap(ns, "dry"), client.DryRunAll)).To(Succeed())
	g.Expect(writer.Create(ctx, configMap("no-such-namespace", "refused"))).NotTo(Succeed())
	g.Expect(writer.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "lease"}})).To(Succeed())
	g.Expect(writer.Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: ns, Name: "event"},
		InvolvedObject: corev1.ObjectReference{Namespace: ns, Kind: "ConfigMap", Name: "written"},
	})).To(Succeed())

	verbs := func(events []kube.AuditEvent) map[string]int {
		return kube.CountBy(events, func(e kube.AuditEvent) string { return e.Verb + " " + e.Resource })
	}
	g.Expect(verbs(since(t, c, start, kube.Writes, mine, kube.Not(kube.OnResource("events"))))).To(Equal(map[string]int{
		"create configmaps": 1, "update configmaps": 1, "patch configmaps": 1, "delete configmaps": 1,
	}))
	g.Expect(verbs(since(t, c, start, mine, kube.Any(kube.OnResource("leases"), kube.OnResource("events"), kube.Not(kube.Succeeded))))).To(Equal(map[string]int{
		"create leases": 1, "create events": 1, "get configmaps": 1, "create configmaps": 1,
	}))
	g.Expect(since(t, c, start, mine, kube.All(kube.ByVerb("get"), kube.ByUser("admin"), kube.OnResource("configmaps")))).To(HaveLen(1))
}

func TestAListCountsAlsoWhenAWatchBeginsWithIt(t *testing.T) {
	g := NewWithT(t)
	c, _ := fleet(t)
	ns := namespace(t, c)
	lister := clientNamed(t, c, "lister/1")
	mine := kube.ByUserAgent("lister/1")
	start := mark(t, c)

	follow := func(options metav1.ListOptions) {
		t.Helper()
		stream, err := lister.Watch(t.Context(), &corev1.ConfigMapList{}, &client.ListOptions{Namespace: ns, Raw: &options})
		g.Expect(err).NotTo(HaveOccurred())
		stream.Stop()
	}
	follow(metav1.ListOptions{})
	g.Expect(since(t, c, start, mine, kube.Lists)).To(BeEmpty(), "a watch from now on lists nothing")
	g.Expect(since(t, c, start, mine, kube.ByVerb("watch"))).To(HaveLen(1), "a watch counts once, when it begins")

	g.Expect(lister.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(ns))).To(Succeed())
	g.Expect(since(t, c, start, mine, kube.Lists)).To(HaveLen(1))

	follow(metav1.ListOptions{
		SendInitialEvents: ptr.To(true), AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	g.Expect(since(t, c, start, mine, kube.Lists)).To(HaveLen(2))
}
