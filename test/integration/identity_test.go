package integration

import (
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// identitySite is a provider with two real clusters, each with the Lease by which registrations show what cluster they lead to.
type identitySite struct {
	*memberSite
	other *kube.Cluster // beside the hub's own
	uid   string        // of the hub's own
}

// TestIdentityIsShownThroughBothRegistrations has registrations say that they lead to one cluster, rightly and wrongly. A provider that
// starts has no memory, so each spec is also what happens after a restart.
func TestIdentityIsShownThroughBothRegistrations(t *testing.T) {
	fleets.beside(t)
	one, other := kube.New(t, kube.Options{Name: "one", Minimal: true}), kube.New(t, kube.Options{Name: "other", Minimal: true})
	g := NewWithT(t)
	for _, c := range []*kube.Cluster{one, other} {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: clusters.IdentityLease}}
		g.Expect(c.Client().Create(t.Context(), lease)).To(Succeed())
	}
	var system corev1.Namespace
	g.Expect(one.Client().Get(t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, &system)).To(Succeed())
	for name, spec := range map[string]func(*identitySite){
		"of two registrations of a cluster the older one counts":       duplicateSpec,
		"an older liar takes nothing from a younger member":            liarSpec,
		"a member that keeps silent is refused":                        silentSpec,
		"a member that comes to lie later takes nothing":               laterLiarSpec,
		"tenants share no namespace of a cluster, and a liar has none": tenantIdentitySpec,
		"who has no Lease is judged by age":                            unpreparedSpec,
	} {
		t.Run(name, func(t *testing.T) {
			standby := func(o *clusters.Options) { // identity is no matter of who owns a member
				o.Fence = clusters.FenceFunc(func(string) error { return clusters.ErrNotOwner })
			}
			spec(&identitySite{memberSite: newMemberSite(t, one, standby), other: other, uid: string(system.UID)})
		})
	}
}

// way is another way to a cluster, which passes for the one with this UID ("": its own).
func (s *identitySite) way(c *kube.Cluster, uid string) *kube.Proxy {
	s.t.Helper()
	proxy, err := kube.NewProxy(c, kube.ProxyOptions{Name: c.Name(), ClusterUID: uid})
	s.g.Expect(err).NotTo(HaveOccurred())
	s.t.Cleanup(proxy.Close)
	return proxy
}

// prepared registers a cluster that has the Lease; namespaces: as a tenant.
func (s *identitySite) prepared(name string, c *kube.Cluster, proxy *kube.Proxy, namespaces ...string) {
	s.t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: name, Labels: map[string]string{clusters.MemberLabel: "true"},
			Annotations: map[string]string{clusters.IdentityAnnotation: metav1.NamespaceDefault},
		},
		Data: map[string][]byte{clusters.KubeconfigKey: proxy.Kubeconfig(c.Kubeconfig())},
	}
	if len(namespaces) > 0 {
		secret.Annotations[clusters.NamespacesAnnotation] = strings.Join(namespaces, ",")
	}
	s.g.Expect(s.client.Create(s.ctx, secret)).To(Succeed())
}

// stay holds for a while that members are as they are.
func (s *identitySite) stay(want map[string]string) {
	s.t.Helper()
	for name, state := range want {
		s.g.Eventually(s.state(name)).Should(Equal(state), name)
	}
	s.g.Consistently(func() map[string]string {
		is := map[string]string{}
		for name := range want {
			is[name] = s.state(name)()
		}
		return is
	}, 2*time.Second).Should(Equal(want))
}

// The older of two Secrets of one second is the one whose name sorts first.

func duplicateSpec(s *identitySite) {
	s.prepared("a-older", s.cluster, s.way(s.cluster, ""))
	s.prepared("b-younger", s.cluster, s.way(s.cluster, ""))
	s.stay(map[string]string{"a-older": "Ready/Ready", "b-younger": "Refused/DuplicateCluster"})
	s.unregister("a-older")
	s.awaitReady("b-younger")
}

func liarSpec(s *identitySite) {
	s.prepared("a-liar", s.other, s.way(s.other, s.uid))
	s.prepared("b-healthy", s.cluster, s.way(s.cluster, ""))
	s.stay(map[string]string{"b-healthy": "Ready/Ready", "a-liar": "Ready/Ready"})
}

// leases are the requests of a proof.
func leases(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, "/leases/"+clusters.IdentityLease)
}

func silentSpec(s *identitySite) {
	liar := s.way(s.other, s.uid)
	liar.Hang(leases)
	s.prepared("a-liar", s.other, liar)
	s.prepared("b-healthy", s.cluster, s.way(s.cluster, ""))
	s.stay(map[string]string{"b-healthy": "Ready/Ready", "a-liar": "Refused/IdentityNotShown"})
	s.g.Expect(liar.Restore()).To(Succeed())
	s.awaitReady("a-liar") // it is tried again
}

func laterLiarSpec(s *identitySite) {
	s.prepared("b-healthy", s.cluster, s.way(s.cluster, ""))
	running := s.awaitReady("b-healthy")
	liar := s.way(s.other, s.uid)
	liar.Hang(leases)
	s.prepared("a-liar", s.other, liar)
	s.stay(map[string]string{"b-healthy": "Ready/Ready", "a-liar": "Refused/IdentityNotShown"})
	now, _ := s.provider.Member("b-healthy")
	s.g.Expect(now).To(BeIdenticalTo(running), "the healthy member runs on")
}

func tenantIdentitySpec(s *identitySite) {
	s.prepared("a-shop", s.cluster, s.way(s.cluster, ""), "default")
	s.prepared("b-again", s.cluster, s.way(s.cluster, ""), "default", "kube-public")
	s.prepared("c-liar", s.other, s.way(s.other, s.uid), "default")
	s.stay(map[string]string{"a-shop": "Ready/Ready", "b-again": "Refused/OverlappingNamespaces", "c-liar": "Ready/Ready"})
}

func unpreparedSpec(s *identitySite) {
	s.register("a-older", s.kubeconfig(s.way(s.cluster, "")))
	s.awaitReady("a-older")
	s.prepared("b-younger", s.cluster, s.way(s.cluster, ""))
	s.g.Eventually(s.state("b-younger")).Should(Equal("Refused/DuplicateCluster"))
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+clusters.IdentityAnnotation+`":"default"}}}`))
	s.g.Expect(s.client.Patch(s.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "a-older"}}, patch)).To(Succeed())
	s.stay(map[string]string{"a-older": "Ready/Ready", "b-younger": "Refused/DuplicateCluster"})
}
