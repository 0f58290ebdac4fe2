package integration

import (
	"net"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// webhookCondition is how the API shows the webhook of a member: status and reason, and the message.
func webhookCondition(t *testing.T, h *insideHub, m *fleet.Member) func() (string, error) {
	t.Helper()
	return func() (string, error) {
		cluster, err := h.Cluster(t.Context(), m.Name)
		if err != nil {
			return "", err
		}
		for _, condition := range cluster.GetConditions() {
			if condition.GetType() == "Webhook" {
				return condition.GetStatus() + " " + condition.GetReason() + ": " + condition.GetMessage(), nil
			}
		}
		return "", nil
	}
}

// sampled is the sum of a metric over the series of a member.
func sampled(t *testing.T, h *insideHub, m *fleet.Member, name string) func() (float64, error) {
	t.Helper()
	return func() (float64, error) {
		samples, err := h.Samples(t.Context())
		sum, found := 0.0, false
		for _, sample := range samples[name] {
			if sample.Has("member", m.Name) {
				sum, found = sum+sample.Value, true
			}
		}
		if !found {
			sum = -1
		}
		return sum, err
	}
}

// TestTheWebhooksHealthIsAsTheMemberSeesIt has the API server of a member reach the hub, then not, and then again.
func TestTheWebhooksHealthIsAsTheMemberSeesIt(t *testing.T) {
	fleets.beside(t)
	f := startFleet(t, "one")
	m := f.Members[0]
	h := startHub(t, f, "health")
	p := placeFor(t, h, m, fleet.Enabled(), 4*patience)
	reached, undecided := sampled(t, h, m, "plimsoll_webhook_reached"), sampled(t, h, m, "plimsoll_pods_undecided_total")

	p.Eventually(webhookCondition(t, h, m)).Should(HavePrefix("True Current"))
	p.Eventually(reached).Should(Equal(1.0))
	checks, err := m.Cluster.Audit().Since(0, fleet.ByHub, kube.OnResource("pods"), kube.ByVerb("create"), kube.InNamespace(fleet.Namespace))
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(checks).NotTo(BeEmpty())
	p.Expect(len(checks)).To(BeNumerically("<=", 4), "a check is rare")
	for _, check := range checks {
		p.Expect(kube.DryRun(check)).To(BeTrue(), check.URI)
		p.Expect(check.Code).To(BeNumerically("<", 300))
	}
	var pods corev1.PodList
	p.Expect(m.Client().List(p.ctx, &pods, client.InNamespace(fleet.Namespace))).To(Succeed())
	p.Expect(pods.Items).To(BeEmpty())

	decided := p.create(fleet.Deployment(p.namespace, "decided", 10, fleet.Policy(70, 1)))
	p.ready(decided, 10)
	p.settle(decided, 10)
	late := float64(p.undecided()) // on a machine that is too busy for the webhook's time-out
	p.Expect(undecided()).To(Or(Equal(late), Equal(-1.0)))

	f.Balancer.Cut(h.Webhook)
	slipped := p.create(fleet.Deployment(p.namespace, "slipped", 10, fleet.Policy(70, 1)))
	p.ready(slipped, 10)
	p.Eventually(undecided).Should(BeNumerically(">=", 10), "they are found without a decision")
	p.Eventually(webhookCondition(t, h, m)).Should(HavePrefix("False Unreachable: the member's API server gets no answer from " + f.Balancer.Address()))
	p.Eventually(reached).Should(Equal(0.0))
	// What replaces a pod that was moved slips past as well.
	counted, err := undecided()
	p.Expect(err).NotTo(HaveOccurred())
	created, err := m.Cluster.Audit().Since(0, kube.OnResource("pods"), kube.ByVerb("create"), kube.InNamespace(p.namespace))
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(counted).To(BeNumerically("<=", float64(len(created)-10)+late), "each is counted once")

	f.Balancer.Add(h.Webhook)
	p.Eventually(webhookCondition(t, h, m)).Should(HavePrefix("True Current"))
	p.Eventually(reached).Should(Equal(1.0))
}

func TestAMemberThatDoesNotReachTheHubFromTheStartIsNotTakenForWell(t *testing.T) {
	fleets.beside(t)
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(patience)
	f := startFleet(t, "far")
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	nobody := closed.Addr().String()
	g.Expect(closed.Close()).To(Succeed())

	h := startHub(t, f, "far", fleet.Settings{"webhook.url": "https://" + nobody})
	g.Eventually(webhookCondition(t, h, f.Members[0])).Should(HavePrefix("False Unreachable: the member's API server gets no answer from " + nobody))
	g.Eventually(sampled(t, h, f.Members[0], "plimsoll_webhook_reached")).Should(Equal(0.0))
}

func TestAHubWhoseWebhookOnlyItsOwnClusterFindsSaysSo(t *testing.T) {
	fleets.beside(t)
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(patience)
	f := startFleet(t, "service")
	const service = "plimsoll-webhook.plimsoll-system.svc:443"
	h := startHub(t, f, "service", fleet.Settings{"webhook.url": "https://" + service})
	g.Expect(h.log.count("webhook.url is the name of a Service")).To(Equal(1))
	g.Eventually(webhookCondition(t, h, f.Members[0])).Should(And(
		HavePrefix("False Unreachable: the member's API server gets no answer from "+service), ContainSubstring("only the hub's own cluster resolves")))
}
