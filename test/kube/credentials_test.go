package kube_test

import (
	"testing"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// clientOf is a client with the credentials of a kubeconfig, and nothing from elsewhere.
func clientOf(t *testing.T, kubeconfig []byte) client.Client {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return clientFor(t, config)
}

func clientFor(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	made, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return made
}

func serviceAccount(t *testing.T, c *kube.Cluster, ns, name string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	NewWithT(t).Expect(c.Client().Create(t.Context(), account)).To(Succeed())
	return "system:serviceaccount:" + ns + ":" + name
}

func TestTheAdminsKubeconfigHoldsAllItNeeds(t *testing.T) {
	g := NewWithT(t)
	c, _ := fleet(t)
	parsed, err := clientcmd.Load(c.Kubeconfig())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(parsed.CurrentContext).To(Equal("alpha"))
	g.Expect(parsed.Clusters["alpha"].CertificateAuthorityData).To(Equal(c.CAData()))
	g.Expect(read(t.Context(), clientOf(t, c.Kubeconfig()))).To(Succeed())
}

func TestAUserMayDoWhatItWasGrantedAndNothingElse(t *testing.T) {
	c, _ := fleet(t)
	ns := namespace(t, c)
	for kind, test := range map[string]struct {
		user   string
		groups []string
		grant  rbacv1.Subject
	}{
		"a service account": {serviceAccount(t, c, ns, "robot"), nil, rbacv1.Subject{Kind: "ServiceAccount", Namespace: ns, Name: "robot"}},
		"a person":          {"anna", []string{"team-a"}, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "team-a"}},
	} {
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			kubeconfig, err := c.KubeconfigFor(t.Context(), test.user, test.groups...)
			g.Expect(err).NotTo(HaveOccurred())
			user := clientOf(t, kubeconfig)
			forbidden := user.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(ns))
			g.Expect(apierrors.IsForbidden(forbidden)).To(BeTrue(), "%v", forbidden)

			binding := &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, GenerateName: "may-view-"},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
				Subjects:   []rbacv1.Subject{test.grant},
			}
			g.Expect(c.Client().Create(t.Context(), binding)).To(Succeed())
			g.Eventually(func() error {
				return user.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(ns))
			}, patience).Should(Succeed())
			g.Expect(apierrors.IsForbidden(user.List(t.Context(), &corev1.SecretList{}, client.InNamespace(ns)))).To(BeTrue())
		})
	}
}

func TestAKubeconfigForNobodyIsRefused(t *testing.T) {
	g := NewWithT(t)
	c, _ := fleet(t)
	for user, problem := range map[string]string{
		"":                              "without a name",
		"system:serviceaccount:default": "<namespace>:<name>",
		"system:serviceaccount:default:nobody-there": "nobody-there",
	} {
		_, err := c.KubeconfigFor(t.Context(), user)
		g.Expect(err).To(MatchError(ContainSubstring(problem)), user)
	}
}

func TestATokenForAnotherAudiencePassesAReviewForItAndNotTheAPIServer(t *testing.T) {
	g := NewWithT(t)
	c, _ := fleet(t)
	ns := namespace(t, c)
	user := serviceAccount(t, c, ns, "caller")
	token, err := c.Token(t.Context(), ns, "caller", "plimsoll")
	g.Expect(err).NotTo(HaveOccurred())

	review := func(audiences ...string) authenticationv1.TokenReviewStatus {
		t.Helper()
		asked := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences}}
		g.Expect(c.Client().Create(t.Context(), asked)).To(Succeed())
		return asked.Status
	}
	passed := review("plimsoll")
	g.Expect(passed.Authenticated).To(BeTrue(), passed.Error)
	g.Expect(passed.User.Username).To(Equal(user))
	g.Expect(passed.Audiences).To(ConsistOf("plimsoll"))
	g.Expect(review("somebody-else").Authenticated).To(BeFalse())
	g.Expect(review().Authenticated).To(BeFalse(), "no audience means the API server's own")

	config := rest.AnonymousClientConfig(c.Config())
	config.BearerToken = token
	refused := read(t.Context(), clientFor(t, config))
	g.Expect(apierrors.IsUnauthorized(refused)).To(BeTrue(), "%v", refused)
}
