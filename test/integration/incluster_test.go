package integration

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
	"github.com/plimsoll-dev/plimsoll/hub"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// inClusterAccount is as whom the hub works in its own cluster.
const inClusterAccount = "plimsoll-in-cluster"

// TestTheRegistrationOfTheHubsOwnClusterOpensNoneOfTheHubsKeys registers a cluster with the chart's rights as a member of its own hub: who
// reads registrations has that token, and with it no more than with that of another member.
func TestTheRegistrationOfTheHubsOwnClusterOpensNoneOfTheHubsKeys(t *testing.T) {
	fleets.beside(t)
	s := newHubSite(t)
	installHubsRights(t, s.hub)
	before := traces(t, s.hub)

	s.ok(t, s.toRegisterInCluster()...)
	s.opensNoKeys(t)
	t.Run("also when two contexts are of one cluster", func(t *testing.T) {
		s.ok(t, "unregister", "in-cluster", "--context", "hub", "--hub-context", "hub")
		s.ok(t, "register", "in-cluster", "--context", "hub", "--hub-context", "hub")
		s.opensNoKeys(t)
	})
	t.Run("and runs nothing beside the keys", s.runsNothingBesideTheKeys)
	t.Run("another hub gets no token of the hub's account", s.refusesTheHubsAccount)
	t.Run("a former registration moves to the new account", s.movesToItsOwnAccount)

	s.ok(t, "webapps", "uninstall", "--context", "hub")
	s.ok(t, "unregister", "in-cluster", "--context", "hub", "--hub-context", "hub")
	NewWithT(t).Eventually(func() []string { return traces(t, s.hub) }, memberPatience).Should(Equal(before), "what is the hub's own stays, and nothing else")
}

// toRegisterInCluster is the line that registers the hub's own cluster; nothing here resolves its usual address.
func (s *cliSite) toRegisterInCluster() []string {
	return []string{"register", "--in-cluster", "--context", "hub", "--server", s.hub.Config().Host}
}

// opensNoKeys tries the token in the registration.
func (s *cliSite) opensNoKeys(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	is, ok := kubeconfig.TokenOf(s.registered(t, "in-cluster").Data["kubeconfig"])
	g.Expect(ok).To(BeTrue())
	g.Expect(is.Account).To(Equal(inClusterAccount))
	holder, err := client.New(s.asHub(t, "in-cluster"), client.Options{Scheme: scheme.Scheme})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(holder.Get(t.Context(), client.ObjectKey{Namespace: fleet.Namespace, Name: hub.CASecret}, &corev1.Secret{})).To(Satisfy(apierrors.IsForbidden))
	for _, namespace := range []string{fleet.Namespace, fleet.Registrations} {
		g.Expect(holder.List(t.Context(), &corev1.SecretList{}, client.InNamespace(namespace))).To(Satisfy(apierrors.IsForbidden), namespace)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: fleet.Namespace, Name: "plimsoll-hub"}}
	g.Expect(holder.SubResource("token").Create(t.Context(), account, &authenticationv1.TokenRequest{})).To(Satisfy(apierrors.IsForbidden))
	account.Name = inClusterAccount
	g.Expect(holder.SubResource("token").Create(t.Context(), account, &authenticationv1.TokenRequest{})).To(Succeed(), "it renews its own token")
	g.Expect(holder.List(t.Context(), &corev1.NodeList{})).To(Succeed(), "it does a member's work")
}

// runsNothingBesideTheKeys has the token create parts of WebApps: pods could have any Secret of their namespace in their environment.
func (s *cliSite) runsNothingBesideTheKeys(t *testing.T) {
	g := NewWithT(t)
	for _, namespace := range []string{"*", fleet.Namespace, fleet.Registrations} {
		if got := s.plimsoll(t, "webapps", "install", "--context", "hub", "--secrets", namespace); got.code == 0 || !strings.Contains(got.err, "the hub's own cluster") {
			t.Errorf("Secrets of %s: %+v", namespace, got)
		}
	}
	s.ok(t, "webapps", "install", "--context", "hub", "--secrets", "default")
	holder, err := client.New(s.asHub(t, "in-cluster"), client.Options{Scheme: scheme.Scheme})
	g.Expect(err).NotTo(HaveOccurred())
	deployment := func(namespace string) error {
		labels := map[string]string{"apps.plimsoll.dev/webapp": "shop"}
		return holder.Create(t.Context(), &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop", OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps.plimsoll.dev/v1", Kind: "WebApp", Name: "shop", UID: "u", Controller: new(true),
			}}},
			Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{ServiceAccountName: "shop", Containers: []corev1.Container{{Name: "web", Image: "web"}}},
			}},
		}, client.DryRunAll)
	}
	g.Eventually(func() error { return deployment("default") }, memberPatience).Should(Succeed(), "its own work")
	for _, namespace := range []string{fleet.Namespace, fleet.Registrations} {
		g.Eventually(func() error { return deployment(namespace) }, memberPatience).Should(MatchError(ContainSubstring("nor in those of the hub")), namespace)
	}
}

// refusesTheHubsAccount registers the cluster as if it were a member of another hub.
func (s *cliSite) refusesTheHubsAccount(t *testing.T) {
	labels := map[string]string{"app": "hub"}
	running := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: fleet.Namespace, Name: "plimsoll-hub"},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{ServiceAccountName: inClusterAccount, Containers: []corev1.Container{{Name: "hub", Image: "hub"}}},
		}},
	}
	if err := s.hub.Client().Create(t.Context(), running); err != nil {
		t.Fatal(err)
	}
	got := s.plimsoll(t, s.toRegisterInCluster()...)
	if got.code == 0 || !strings.Contains(got.err, "deployment/plimsoll-system/plimsoll-hub runs as it") {
		t.Errorf("an account as which pods run: %+v", got)
	}
	if err := s.hub.Client().Delete(t.Context(), running); err != nil {
		t.Fatal(err)
	}
}

// movesToItsOwnAccount goes on from a registration as earlier versions made it: with a token and bindings of the hub's own account.
func (s *cliSite) movesToItsOwnAccount(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	typed, err := kubernetes.NewForConfig(s.hub.Config())
	g.Expect(err).NotTo(HaveOccurred())
	answer, err := typed.CoreV1().ServiceAccounts(fleet.Namespace).CreateToken(ctx, "plimsoll-hub", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	registration := s.registered(t, "in-cluster")
	registration.Data["kubeconfig"], err = kubeconfig.WithToken(registration.Data["kubeconfig"], answer.Status.Token)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.hub.Client().Update(ctx, registration)).To(Succeed())
	former := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: fleet.Namespace, Name: "plimsoll-hub"}}
	shared := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "plimsoll-member", Labels: map[string]string{"app.kubernetes.io/managed-by": "plimsoll-cli"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: inClusterAccount}, Subjects: former,
	}
	g.Expect(s.hub.Client().Create(ctx, shared)).To(Succeed())
	webApps, secrets := &rbacv1.ClusterRoleBinding{}, &rbacv1.RoleBinding{}
	g.Expect(s.hub.Client().Get(ctx, client.ObjectKey{Name: "plimsoll-webapps"}, webApps)).To(Succeed())
	g.Expect(s.hub.Client().Get(ctx, client.ObjectKey{Namespace: "default", Name: "plimsoll-webapps"}, secrets)).To(Succeed())
	webApps.Subjects, secrets.Subjects = former, former
	g.Expect(s.hub.Client().Update(ctx, webApps)).To(Succeed())
	g.Expect(s.hub.Client().Update(ctx, secrets)).To(Succeed())

	got := s.ok(t, s.toRegisterInCluster()...)
	g.Expect(got.err).To(ContainSubstring("had a token of the hub's own account, serviceaccount/plimsoll-system/plimsoll-hub"))
	g.Expect(got.out).To(ContainSubstring("clusterrolebinding/plimsoll-member"))
	s.opensNoKeys(t)
	g.Expect(s.hub.Client().Get(ctx, client.ObjectKeyFromObject(shared), shared)).To(Satisfy(apierrors.IsNotFound))
	g.Expect(s.hub.Client().Get(ctx, client.ObjectKey{Namespace: fleet.Namespace, Name: "plimsoll-hub"}, &corev1.ServiceAccount{})).To(Succeed(), "the hub's own")
	for _, right := range []authorizationv1.ResourceAttributes{
		{Verb: "create", Group: "apps", Resource: "deployments", Namespace: "shop"}, {Verb: "get", Resource: "secrets", Namespace: "default"},
	} {
		g.Eventually(func() (bool, error) { return may(ctx, s.asHub(t, "in-cluster"), right) }, memberPatience).Should(BeTrue(), "for WebApps: %s %s", right.Verb, right.Resource)
	}
	again := s.ok(t, s.toRegisterInCluster()...)
	g.Expect(again.err).NotTo(ContainSubstring("warning:"))
	g.Expect(again.out).NotTo(Or(ContainSubstring("deleted"), ContainSubstring("created"), ContainSubstring("updated")))
}
