package integration

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// shortTokens is a member whose registration has the shortest token that Kubernetes issues, and a hub that renews it as soon as
// a hundredth of its life is over: six seconds.
type shortTokens struct {
	*WithT

	t      *testing.T
	fleet  *fleet.Fleet
	member *fleet.Member
}

// startBareMember starts a fleet with a member that is an API server and nothing else, not registered.
func startBareMember(t *testing.T) *fleet.Fleet {
	t.Helper()
	f, err := fleet.Start(t.Context(), fleet.Options{Nodes: fleet.NoNodes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Stop(); err != nil {
			t.Error(err)
		}
	})
	if _, err := f.StartMember(t.Context(), kube.Options{Name: "one", Minimal: true}); err != nil {
		t.Fatal(err)
	}
	return f
}

const shortestLife = 10 * time.Minute

func startShortTokens(t *testing.T) *shortTokens {
	t.Helper()
	f := startBareMember(t)
	s := &shortTokens{WithT: NewWithT(t), t: t, fleet: f, member: f.Members[0]}
	s.SetDefaultEventuallyTimeout(patience)
	s.Expect(s.member.Prepare(t.Context())).To(Succeed())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(shortestLife / time.Second))}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: fleet.Namespace, Name: "plimsoll-hub"}}
	s.Expect(s.member.Client().SubResource("token").Create(t.Context(), account, request)).To(Succeed())
	registered, err := s.member.Kubeconfig(t.Context())
	s.Expect(err).NotTo(HaveOccurred())
	registered, err = kubeconfig.WithToken(registered, request.Status.Token)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(f.Hub.Client().Create(t.Context(), fleet.Registration(s.member.Name, registered))).To(Succeed())
	return s
}

// registration is the Secret as it is, and its token.
func (s *shortTokens) registration(g Gomega) (*corev1.Secret, kubeconfig.Token) {
	secret := &corev1.Secret{}
	g.Expect(s.fleet.Hub.Client().Get(s.t.Context(), client.ObjectKey{Namespace: fleet.Registrations, Name: s.member.Name}, secret)).To(Succeed())
	token, ok := kubeconfig.TokenOf(secret.Data[clusters.KubeconfigKey])
	g.Expect(ok).To(BeTrue(), "the registration has no token of a service account")
	return secret, token
}

// later waits for a token that expires later than another.
func (s *shortTokens) later(than kubeconfig.Token) (now kubeconfig.Token) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		_, now = s.registration(g)
		g.Expect(now.Expires).To(BeTemporally(">", than.Expires))
		g.Expect(now.Life()).To(Equal(than.Life()))
	}).Should(Succeed())
	return now
}

// shows waits until the condition of the member's token is as given, and the member is ready.
func (s *shortTokens) shows(h *insideHub, status, reason string) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		cluster, err := h.Cluster(s.t.Context(), s.member.Name)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(cluster.GetState()).To(Equal(plimsollv1.ClusterState_CLUSTER_STATE_READY))
		for _, c := range cluster.GetConditions() {
			if c.GetType() == "TokenExpiring" {
				g.Expect(c.GetStatus()+" "+c.GetReason()).To(Equal(status+" "+reason), c.GetMessage())
				return
			}
		}
		g.Expect(cluster.GetConditions()).To(BeNil(), "no condition TokenExpiring")
	}).Should(Succeed())
}

// TestTheHubRenewsTheTokenOfAMemberBeforeItExpires goes through the life of a token: renewed, renewed by the next replica, not
// renewed because the member refuses it, and left to somebody else.
func TestTheHubRenewsTheTokenOfAMemberBeforeItExpires(t *testing.T) {
	fleets.beside(t)
	s := startShortTokens(t)
	soon := fleet.Settings{"clusters.tokenRenewalPercent": 1}
	_, first := s.registration(s)
	h := startHub(t, s.fleet, "tokens-a", soon)
	second := s.later(first)
	s.shows(h, "False", "Valid")
	samples, err := h.Samples(t.Context())
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(samples["plimsoll_member_token_expiry_seconds"]).To(ConsistOf(HaveField("Labels", `member="one"`)))
	s.Expect(samples["plimsoll_member_token_life_seconds"]).To(ConsistOf(fleet.Sample{Labels: `member="one"`, Value: 600}))
	h.stop(t)

	h = startHub(t, s.fleet, "tokens-b", soon)
	s.later(second)

	role := &rbacv1.Role{}
	s.Expect(s.member.Client().Get(t.Context(), client.ObjectKey{Namespace: fleet.Namespace, Name: "plimsoll-hub"}, role)).To(Succeed())
	role.Rules = role.Rules[:1]
	s.Expect(s.member.Client().Update(t.Context(), role)).To(Succeed())
	s.shows(h, "True", "RenewalFailed") // and the member is ready with the token that it has

	s.Eventually(func(g Gomega) {
		secret, _ := s.registration(g)
		secret.Annotations = map[string]string{kubeconfig.TokenRenewalAnnotation: kubeconfig.RenewedElsewhere}
		secret.Data[clusters.KubeconfigKey], err = kubeconfig.WithToken(secret.Data[clusters.KubeconfigKey], tokenFor(s, g))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.fleet.Hub.Client().Update(t.Context(), secret)).To(Succeed())
	}).Should(Succeed())
	s.shows(h, "False", "RenewedElsewhere")
}

// tokenFor is another token of the account, as somebody else would request it.
func tokenFor(s *shortTokens, g Gomega) string {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(2 * shortestLife / time.Second))}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: fleet.Namespace, Name: "plimsoll-hub"}}
	g.Expect(s.member.Client().SubResource("token").Create(s.t.Context(), account, request)).To(Succeed())
	return request.Status.Token
}
