package integration

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/hub/pki"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/admission"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/test/kube"
	"github.com/plimsoll-dev/plimsoll/webhook"
	"github.com/plimsoll-dev/plimsoll/webhook/kinds"
)

// webhookSite is the webhook's server, and a member whose API server calls it.
type webhookSite struct {
	t         *testing.T
	g         *WithT
	cluster   *kube.Cluster
	installer *webhook.Installer
	patcher   *admission.Patcher
	steering  *capacity.Steering
	stop      func()

	mu           sync.Mutex
	registration clusters.Registration
	placed       map[string]bool // names of the pods that were asked about, and whether as a dry run
}

const webhookSlot = 3

func (s *webhookSite) Place(_ context.Context, member string, pod *spot.PodRequest) spot.Placement {
	s.mu.Lock()
	defer s.mu.Unlock()
	if member != "eu" {
		s.t.Errorf("asked about member %q", member)
	}
	s.placed[pod.Name] = pod.DryRun
	reservation := plan.Reservation{ID: "a-reservation", Slot: webhookSlot, Capacity: capacity.Spot}
	return spot.Placement{Outcome: spot.OutcomeSpot, Patch: s.patcher.AppendPatch(nil, &pod.Incoming, s.steering, reservation)}
}

func (s *webhookSite) Route(string) (bool, string) { return true, "" }

func (s *webhookSite) registered(member string) (clusters.Registration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.registration, member == "eu"
}

// asked reports whether the webhook was called for a pod, and whether as a dry run.
func (s *webhookSite) asked(pod string) (asked, dryRun bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dryRun, asked = s.placed[pod]
	return asked, dryRun
}

func newWebhookSite(t *testing.T) *webhookSite {
	return newWebhookSiteWith(t, kube.Options{Minimal: true}, nil)
}

// newWebhookSiteWith is one with another API server, which has to show a certificate of an authority unless that is nil.
func newWebhookSiteWith(t *testing.T, options kube.Options, clients *pki.ClientAuthority) *webhookSite {
	ctx, g := t.Context(), NewWithT(t)
	s := &webhookSite{t: t, g: g, cluster: kube.New(t, options), placed: map[string]bool{},
		registration: clusters.Registration{Name: "eu", UID: "3c0a"}}
	c := s.cluster.Client()
	labels, err := capacity.NewLabels()
	g.Expect(err).NotTo(HaveOccurred())
	keys, err := policy.NewKeys("")
	g.Expect(err).NotTo(HaveOccurred())
	s.patcher = admission.NewPatcher(keys, []corev1.Toleration{{Key: "spot", Operator: corev1.TolerationOpExists}})
	s.steering = labels.Configured()

	ca, err := pki.EnsureCA(ctx, c, metav1.NamespaceDefault, "plimsoll-ca")
	g.Expect(err).NotTo(HaveOccurred())
	again, err := pki.EnsureCA(ctx, c, metav1.NamespaceDefault, "plimsoll-ca")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again.Bundle()).To(Equal(ca.Bundle()))

	metrics, err := webhook.NewMetrics(prometheus.NewRegistry())
	g.Expect(err).NotTo(HaveOccurred())
	log := slog.New(slog.DiscardHandler)
	tokens := webhook.NewTokens(ca.TokenKey(), s.registered)
	serves := ca.ServerTLS(nil, loopback)
	var handler http.Handler = webhook.NewHandler(webhook.HandlerOptions{Tokens: tokens, Router: s, Placer: s, Metrics: metrics, Log: log})
	if clients != nil {
		serves, handler = clients.Asking(serves), webhook.WithCertificate(handler, metrics, kinds.ConvertPattern)
	}
	server, err := webhook.Listen("webhook", "127.0.0.1:0", serves, handler, metrics, log)
	g.Expect(err).NotTo(HaveOccurred())
	serving, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(serving) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		g.Expect(<-ended).To(Succeed())
	})
	t.Cleanup(s.stop)

	base, err := webhook.ParseBaseURL("https://" + server.Addr().String())
	g.Expect(err).NotTo(HaveOccurred())
	s.installer, err = webhook.NewInstaller(webhook.InstallerOptions{Tokens: tokens, Wanted: func() webhook.Wanted {
		return webhook.Wanted{BaseURL: base, Bundle: ca.Bundle(), EnabledLabel: keys.Enabled()}
	}})
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(c.Create(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: webhook.ConfigurationName}})).To(Succeed())
	enabled := map[string]string{keys.Enabled(): "true"}
	s.namespace("shop", enabled)
	s.namespace("plain", nil)
	s.namespace("shouting", map[string]string{keys.Enabled(): "TRUE"})
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}}
	g.Expect(c.Patch(ctx, system, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"labels":{%q:"true"}}}`, keys.Enabled())))).To(Succeed())
	s.serviceAccount(metav1.NamespaceSystem)
	return s
}

// Reads makes the site a webhook.Placer that looks at every label and annotation.
func (s *webhookSite) Reads([]byte) bool { return true }

func (s *webhookSite) namespace(name string, labels map[string]string) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	s.g.Expect(s.cluster.Client().Create(s.t.Context(), namespace)).To(Succeed())
	s.serviceAccount(name)
}

// serviceAccount does what no controller does in a minimal cluster.
func (s *webhookSite) serviceAccount(namespace string) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}}
	s.g.Expect(s.cluster.Client().Create(s.t.Context(), account)).To(Succeed())
}

func (s *webhookSite) configuration(g Gomega) *admissionregistrationv1.MutatingWebhookConfiguration {
	found := &admissionregistrationv1.MutatingWebhookConfiguration{}
	g.Expect(s.cluster.Client().Get(s.t.Context(), client.ObjectKey{Name: webhook.ConfigurationName}, found)).To(Succeed())
	return found
}

// reconcile has the installer look at the configuration as the API server returns it.
func (s *webhookSite) reconcile(g Gomega) {
	_, err := s.installer.Reconcile(s.t.Context(), reconcile.Request[*admissionregistrationv1.MutatingWebhookConfiguration]{
		Member: "eu", Object: s.configuration(g), Client: s.cluster.Client(), Live: s.cluster.Client(), Events: noWebhookEvents{},
	})
	g.Expect(err).NotTo(HaveOccurred())
}

type noWebhookEvents struct{}

func (noWebhookEvents) Normal(string, string, ...any)  {}
func (noWebhookEvents) Warning(string, string, ...any) {}

// pod makes a pod and returns it as the API server stored it.
func (s *webhookSite) pod(g Gomega, namespace, name string, owner *metav1.OwnerReference, opts ...client.CreateOption) *corev1.Pod {
	pod := s.unmade(namespace, name, owner)
	g.Expect(s.cluster.Client().Create(s.t.Context(), pod, opts...)).To(Succeed())
	return pod
}

// unmade is a pod that is not created yet.
func (s *webhookSite) unmade(namespace, name string, owner *metav1.OwnerReference) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	if owner != nil {
		pod.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return pod
}

func webhookOwner(apiVersion, kind string) *metav1.OwnerReference {
	return &metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: "checkout", UID: "0f5d", Controller: ptr.To(true)}
}

// awaitCalls makes pods until the API server calls us about them.
func (s *webhookSite) awaitCalls(prefix string) (pod *corev1.Pod) {
	tries := 0
	s.g.Eventually(func(g Gomega) {
		tries++
		pod = s.pod(g, "shop", fmt.Sprintf("%s-%d", prefix, tries), webhookOwner("apps/v1", "ReplicaSet"))
		asked, _ := s.asked(pod.Name)
		g.Expect(asked).To(BeTrue())
	}).WithTimeout(webhookFollowed).Should(Succeed())
	return pod
}

// webhookFollowed is how long an API server may take to follow its own configuration.
const webhookFollowed = 30 * time.Second

func TestAPIServersCallTheWebhookForTheRightPodsOnly(t *testing.T) {
	fleets.beside(t)
	s := newWebhookSite(t)
	s.reconcile(s.g)
	first := s.awaitCalls("first")

	t.Run("the patch is applied", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(first.Labels).To(HaveKeyWithValue("plimsoll.dev/slot", fmt.Sprint(webhookSlot)))
		g.Expect(first.Annotations).To(HaveKeyWithValue("plimsoll.dev/reservation", "a-reservation"))
		g.Expect(first.Annotations).To(HaveKeyWithValue("controller.kubernetes.io/pod-deletion-cost", fmt.Sprint(-webhookSlot)))
		g.Expect(first.Spec.NodeSelector).To(Equal(map[string]string{"karpenter.sh/capacity-type": "spot"}))
		g.Expect(first.Spec.Tolerations).To(ContainElement(corev1.Toleration{Key: "spot", Operator: corev1.TolerationOpExists}))
	})

	t.Run("a second reconcile writes nothing", func(t *testing.T) {
		g := NewWithT(t)
		before := s.configuration(g)
		s.reconcile(g)
		g.Expect(s.configuration(g).ResourceVersion).To(Equal(before.ResourceVersion))
		g.Expect(s.installer.Installation("eu").Reason).To(Equal(webhook.ReasonCurrent))
	})

	t.Run("a dry run is answered as one and leaves nothing", func(t *testing.T) {
		g := NewWithT(t)
		pod := s.pod(g, "shop", "dry", webhookOwner("apps/v1", "ReplicaSet"), client.DryRunAll)
		asked, dryRun := s.asked("dry")
		g.Expect(asked).To(BeTrue())
		g.Expect(dryRun).To(BeTrue())
		g.Expect(pod.Labels).To(HaveKey("plimsoll.dev/slot"))
		g.Expect(s.cluster.Client().Get(t.Context(), client.ObjectKeyFromObject(pod), &corev1.Pod{})).NotTo(Succeed())
	})

	notController := webhookOwner("apps/v1", "ReplicaSet")
	notController.Controller = nil
	for name, test := range map[string]struct {
		namespace string
		owner     *metav1.OwnerReference
		asked     bool
	}{
		"a pod of a statefulset":                 {"shop", webhookOwner("apps/v1", "StatefulSet"), true},
		"a pod of nobody":                        {"shop", nil, false},
		"a pod of a job":                         {"shop", webhookOwner("batch/v1", "Job"), false},
		"a pod of a daemonset":                   {"shop", webhookOwner("apps/v1", "DaemonSet"), false},
		"a pod of somebody elses replicaset":     {"shop", webhookOwner("apps.example.com/v1", "ReplicaSet"), false},
		"a pod that its owner does not control":  {"shop", notController, false},
		"a pod in a namespace without the label": {"plain", webhookOwner("apps/v1", "ReplicaSet"), false},
		"a pod in a namespace that says it loud": {"shouting", webhookOwner("apps/v1", "ReplicaSet"), false},
		"a pod in kube-system":                   {metav1.NamespaceSystem, webhookOwner("apps/v1", "ReplicaSet"), false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pod := s.pod(g, test.namespace, webhookPodName(name), test.owner)
			asked, _ := s.asked(pod.Name)
			g.Expect(asked).To(Equal(test.asked))
			if test.asked {
				g.Expect(pod.Labels).To(HaveKey("plimsoll.dev/slot"))
			} else {
				g.Expect(pod.Labels).NotTo(HaveKey("plimsoll.dev/slot"))
			}
		})
	}

	t.Run("a rotated token takes the place of the old one", func(t *testing.T) {
		s.mu.Lock()
		s.registration.Annotations = map[string]string{webhook.TokenGenerationAnnotation: "2"} // two on: the old one is refused
		s.mu.Unlock()
		g := NewWithT(t)
		asked, _ := s.asked(s.pod(g, "shop", "between", webhookOwner("apps/v1", "ReplicaSet")).Name)
		g.Expect(asked).To(BeFalse(), "the old token is refused, and the pod let through")
		s.reconcile(g)
		s.awaitCalls("rotated")
	})

	t.Run("without the hub pods are made all the same", func(t *testing.T) {
		s.stop()
		g := NewWithT(t)
		g.Expect(s.pod(g, "shop", "alone", webhookOwner("apps/v1", "ReplicaSet")).Labels).NotTo(HaveKey("plimsoll.dev/slot"))
	})
}

// webhookPodName makes a name of a sentence.
func webhookPodName(sentence string) string {
	name := []byte(sentence)
	for i, c := range name {
		if c < 'a' || c > 'z' {
			name[i] = '-'
		}
	}
	return string(name)
}
