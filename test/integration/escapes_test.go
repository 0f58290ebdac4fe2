package integration

import (
	"maps"
	"testing"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// TestTheHubsTokenOpensNothingInAMemberButItsOwnWork tries what somebody with the hub's token might, with the rights that a
// registration and WebApps give it, and again with all rights that RBAC has: then the policies alone stand in the way. The hub's own
// work that is like it is done both times.
func TestTheHubsTokenOpensNothingInAMemberButItsOwnWork(t *testing.T) {
	fleets.beside(t)
	f := startBareMember(t)
	m := f.Members[0]
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(patience)
	g.Expect(f.Register(t.Context(), m)).To(Succeed())
	g.Expect(m.InstallWebApps(t.Context())).To(Succeed())
	startHub(t, f, "escapes")
	g.Eventually(func() (bool, error) { return m.AsksHub(t.Context()) }).Should(BeTrue())
	g.Expect(m.PrepareEscapes(t.Context())).To(Succeed())
	kubeconfig, err := m.DirectKubeconfig(t.Context())
	g.Expect(err).NotTo(HaveOccurred())

	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: fleet.Namespace, Name: clusters.IdentityLease}}
	nonce := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+clusters.NonceAnnotation+`":"0123456789abcdef0123456789abcdef"}}}`))
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	asHub, err := client.New(config, client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(asHub.Patch(t.Context(), lease, nonce)).To(Succeed(), "its own work: it shows what cluster this is")

	refused := func(escapes []fleet.Escape) func(g Gomega) {
		return func(g Gomega) { // policies and bindings take a moment until an API server knows them
			became, err := fleet.TryEscapes(t.Context(), kubeconfig, escapes)
			g.Expect(err).NotTo(HaveOccurred())
			maps.DeleteFunc(became, func(_ string, err error) bool { return fleet.Refused(err) })
			g.Expect(became).To(BeEmpty())
		}
	}
	done := func(g Gomega) {
		became, err := fleet.TryEscapes(t.Context(), kubeconfig, fleet.OwnWork())
		g.Expect(err).NotTo(HaveOccurred())
		for name, err := range became {
			g.Expect(err).NotTo(HaveOccurred(), name)
		}
	}
	g.Expect(len(fleet.Escapes())).To(BeNumerically(">=", 12))
	g.Eventually(refused(fleet.Escapes())).Should(Succeed())
	done(g)

	g.Expect(m.Client().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "a-mistake"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: fleet.HubUser}},
	})).To(Succeed())
	var policed, rest []fleet.Escape
	for _, escape := range fleet.Escapes() {
		if escape.ByRBAC {
			rest = append(rest, escape)
		} else {
			policed = append(policed, escape)
		}
	}
	g.Eventually(func(g Gomega) { // the mistake is known by now
		became, err := fleet.TryEscapes(t.Context(), kubeconfig, rest)
		g.Expect(err).NotTo(HaveOccurred())
		for name, err := range became {
			g.Expect(fleet.Refused(err)).To(BeFalse(), "%s is said to be refused by RBAC only: %v", name, err)
		}
	}).Should(Succeed())
	refused(policed)(g)
	done(g)
}
