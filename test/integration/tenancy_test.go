package integration

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// tenants is a cluster that is registered several times, for several teams, with the CLI.
type tenants struct {
	*cliSite
	*WithT

	t     *testing.T
	fleet *fleet.Fleet
	hub   *insideHub
}

// startTenants starts a cluster with these namespaces, all enabled, and a hub; nobody is registered yet.
func startTenants(t *testing.T, namespaces ...string) *tenants {
	t.Helper()
	f, err := fleet.Start(t.Context(), fleet.Options{Members: []string{"shared"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Stop(); err != nil {
			t.Error(err)
		}
	})
	site := &cliSite{
		hub: f.Hub, member: f.Members[0].Cluster, binary: filepath.Join(t.TempDir(), "plimsoll"), kubeconfig: filepath.Join(t.TempDir(), "config"),
	}
	if err := fleet.BuildCLI(t.Context(), "../..", site.binary); err != nil {
		t.Fatal(err)
	}
	site.write(t, site.kubeconfig, site.hub.Kubeconfig(), site.member.Kubeconfig())
	s := &tenants{cliSite: site, WithT: NewWithT(t), t: t, fleet: f}
	s.SetDefaultEventuallyTimeout(patience)
	for _, name := range namespaces {
		s.Expect(f.Members[0].Client().Create(t.Context(), &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: fleet.Enabled()},
		})).To(Succeed())
	}
	members := f.Members
	f.Members = nil // the hub is not to wait for the cluster as a whole
	s.hub = startHub(t, f, "tenancy")
	f.Members = members
	return s
}

// register makes a tenant and waits until it is ready and its webhook is there.
func (s *tenants) register(name, namespaces string) *fleet.Member {
	s.t.Helper()
	s.ok(s.t, "register", name, "--tenant-namespaces", namespaces, "--context", "shared", "--hub-context", "hub")
	s.Eventually(s.state(name)).Should(Equal("CLUSTER_STATE_READY Ready: everything needed is cached and permitted"))
	s.Eventually(func(g Gomega) {
		var configuration admissionregistrationv1.MutatingWebhookConfiguration
		g.Expect(s.member.Client().Get(s.t.Context(), client.ObjectKey{Name: clusters.TenantName("plimsoll", name)}, &configuration)).To(Succeed())
		g.Expect(configuration.Webhooks).NotTo(BeEmpty())
	}).Should(Succeed())
	return &fleet.Member{Name: name, Cluster: s.member, Proxy: s.fleet.Members[0].Proxy}
}

func (s *tenants) state(name string) func() (string, error) {
	return func() (string, error) {
		cluster, err := s.hub.Cluster(s.t.Context(), name)
		return fmt.Sprintf("%s %s: %s", cluster.GetState(), cluster.GetReason(), cluster.GetMessage()), err
	}
}

// in is a spec in a namespace of a tenant.
func (s *tenants) in(tenant *fleet.Member, namespace string) *placing {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*patience)
	s.t.Cleanup(cancel)
	mark, err := s.member.Audit().Mark()
	s.Expect(err).NotTo(HaveOccurred())
	return &placing{WithT: s.WithT, t: s.t, ctx: ctx, hub: s.hub, member: tenant, namespace: namespace, mark: mark}
}

// shown are the workloads that the hub shows of a tenant, as namespace/name.
func (s *tenants) shown(tenant string) []string {
	s.t.Helper()
	list, err := s.hub.Workloads.ListWorkloads(s.t.Context(), &plimsollv1.ListWorkloadsRequest{Cluster: tenant})
	s.Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, w := range list.GetWorkloads() {
		names = append(names, w.GetNamespace()+"/"+w.GetName())
	}
	return names
}

// keepsTo expects a tenant to have asked the cluster for nothing outside of its namespaces but the nodes and single objects
// by their names, whatever the answer was.
func (s *tenants) keepsTo(tenant string, namespaces ...string) {
	s.t.Helper()
	user := "system:serviceaccount:plimsoll-system:plimsoll-hub-" + tenant
	events, err := s.member.Audit().Events(kube.ByUser(user))
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(events).NotTo(BeEmpty())
	for _, e := range events {
		switch {
		case e.Resource == "" || e.APIGroup == "authorization.k8s.io" || slices.Contains(namespaces, e.Namespace):
		case e.Resource == "namespaces":
			s.Expect(append(namespaces, "kube-system")).To(ContainElement(e.Name), "%+v", e)
		case e.Resource == "mutatingwebhookconfigurations":
			s.Expect(e.Name).To(Equal("plimsoll-"+tenant), "%+v", e)
		default:
			s.Expect(e.Resource).To(Equal("nodes"), "%+v", e)
		}
	}
}

// TestTenantsOfOneCluster registers one cluster for several teams and goes through what they share and what not, in order.
func TestTenantsOfOneCluster(t *testing.T) {
	fleets.beside(t)
	s := startTenants(t, "shop", "cart", "pay", "nobodys")
	a, b := s.register("team-a", "shop,cart"), s.register("team-b", "pay")
	const percent, floor = 60, 1
	shop, pay := s.in(a, "shop"), s.in(b, "pay")

	inShop := shop.create(fleet.Deployment("shop", "web", 10, fleet.Policy(percent, floor)))
	inPay := pay.create(fleet.Deployment("pay", "web", 5, fleet.Policy(percent, floor)))
	inNobodys := s.in(a, "nobodys").create(fleet.Deployment("nobodys", "web", 3, fleet.Policy(percent, floor)))
	shop.exactly(inShop, 10, percent, floor)
	pay.exactly(inPay, 5, percent, floor)
	shop.ready(inNobodys, 3)
	shop.Expect(shop.slots(inNobodys)).To(HaveEach(""), "no tenant has the namespace")
	s.Expect(s.shown("team-a")).To(Equal([]string{"shop/web"}))
	s.Expect(s.shown("team-b")).To(Equal([]string{"pay/web"}))

	s.Expect(inPay.Annotate(pay.ctx, fleet.Policy(20, floor))).To(Succeed())
	pay.mixed(inPay, 5, 20, floor)
	s.Expect(pay.audited(kube.Evictions, kube.ByUser("system:serviceaccount:plimsoll-system:plimsoll-hub-team-b"))).NotTo(BeEmpty())
	s.Expect(shop.evictions()).To(BeEmpty())
	s.keepsTo("team-a", "shop", "cart")
	s.keepsTo("team-b", "pay")
	s.keepsItsWebhookTo("team-a")

	// A namespace has one tenant: the CLI says so before anything is made, and the hub where the Secret came another way.
	taken := s.plimsoll(t, "register", "team-c", "--tenant-namespaces", "cart", "--context", "shared", "--hub-context", "hub")
	s.Expect(taken.code).NotTo(BeZero())
	s.Expect(taken.err).To(ContainSubstring("namespace cart of that cluster is registered as team-a already"))
	other := fleet.Registration("team-d", s.registered(t, "team-b").Data[clusters.KubeconfigKey])
	other.Annotations = map[string]string{clusters.NamespacesAnnotation: "cart,nobodys"}
	s.Expect(s.cliSite.hub.Client().Create(t.Context(), other)).To(Succeed())
	s.Eventually(s.state("team-d")).Should(ContainSubstring("OverlappingNamespaces: namespace cart of the same cluster is registered by an older Secret"))
	s.Expect(s.cliSite.hub.Client().Delete(t.Context(), other)).To(Succeed())
	widened := s.plimsoll(t, "register", "team-a", "--context", "shared", "--hub-context", "hub")
	s.Expect(widened.err).To(ContainSubstring("team-a is registered for the namespaces shop,cart only"))

	// What a tenant gives up, another can have, and its rights go with it.
	s.ok(t, "register", "team-a", "--tenant-namespaces", "shop", "--context", "shared", "--hub-context", "hub")
	c := s.register("team-c", "cart")
	cart := s.in(c, "cart")
	inCart := cart.create(fleet.Deployment("cart", "web", 4, fleet.Policy(percent, floor)))
	cart.exactly(inCart, 4, percent, floor)
	s.Expect(s.roles()).To(ConsistOf("shop/plimsoll-member-team-a", "cart/plimsoll-member-team-c", "pay/plimsoll-member-team-b",
		ownToken("team-a"), ownToken("team-b"), ownToken("team-c"), ownIdentity("team-a"), ownIdentity("team-b"), ownIdentity("team-c")))
	s.Expect(inShop.Scale(shop.ctx, 12)).To(Succeed())
	shop.exactly(inShop, 12, percent, floor)

	s.ok(t, "unregister", "team-c", "--context", "shared", "--hub-context", "hub")
	s.Expect(s.roles()).To(ConsistOf("shop/plimsoll-member-team-a", "pay/plimsoll-member-team-b", ownToken("team-a"), ownToken("team-b"),
		ownIdentity("team-a"), ownIdentity("team-b")))
	s.Eventually(func() bool { _, err := s.hub.Cluster(t.Context(), "team-c"); return err != nil }).Should(BeTrue())
	s.Expect(s.state("team-a")()).To(ContainSubstring("everything needed"))
}

// keepsItsWebhookTo expects that whoever has the token of a tenant cannot have the hub called about pods of other namespaces.
func (s *tenants) keepsItsWebhookTo(tenant string) {
	s.t.Helper()
	asHub, err := client.New(s.asHub(s.t, tenant), client.Options{})
	s.Expect(err).NotTo(HaveOccurred())
	var configuration admissionregistrationv1.MutatingWebhookConfiguration
	s.Expect(asHub.Get(s.t.Context(), client.ObjectKey{Name: clusters.TenantName("plimsoll", tenant)}, &configuration)).To(Succeed())
	s.Expect(asHub.Update(s.t.Context(), &configuration, client.DryRunAll)).To(Succeed(), "what the hub has written itself")
	selector := configuration.Webhooks[0].NamespaceSelector
	selector.MatchExpressions = slices.DeleteFunc(selector.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool {
		return e.Key == corev1.LabelMetadataName && e.Operator == metav1.LabelSelectorOpIn
	})
	s.Expect(asHub.Update(s.t.Context(), &configuration, client.DryRunAll)).To(MatchError(ContainSubstring("may only be asked about the namespaces")))
}

// ownToken is the role by which the hub renews its own token.
func ownToken(team string) string { return "plimsoll-system/plimsoll-member-" + team + "-token" }

// ownIdentity is the role by which the hub shows what cluster the tenant's registration leads to.
func ownIdentity(team string) string { return "plimsoll-system/plimsoll-member-" + team + "-identity" }

// roles are those that register made in namespaces.
func (s *tenants) roles() []string {
	s.t.Helper()
	var list rbacv1.RoleList
	s.Expect(s.member.Client().List(s.t.Context(), &list, client.MatchingLabels{"app.kubernetes.io/managed-by": "plimsoll-cli"})).To(Succeed())
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Namespace+"/"+list.Items[i].Name)
	}
	return names
}
