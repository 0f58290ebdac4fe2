package integration

import (
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// A kind of the configuration whose CRD comes late is cached because the CRD came: whatever else is tried again here is so after
// an hour. The account may read the kind and its definition, and no other definition.
func TestAKindOfWorkloadsThatComesLateJoinsWithItsDefinition(t *testing.T) {
	fleets.beside(t)
	c := kube.New(t, kube.Options{Name: "definitions", Minimal: true})
	known := runtime.NewScheme()
	g := NewWithT(t)
	g.Expect(clientgoscheme.AddToScheme(known)).To(Succeed())
	g.Expect(apiextensionsv1.AddToScheme(known)).To(Succeed())
	s := newMemberSite(t, c, func(o *clusters.Options) {
		o.Scheme, o.RetryMin, o.RetryMax = known, time.Hour, time.Hour
		o.Kinds = cachedForRollouts(g, known)
	})
	token := mayReadRollouts(s)
	s.register("a", s.edited(s.kubeconfig(s.proxy(s.namespace+"-a")), func(_ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) {
		*user = clientcmdapi.AuthInfo{Token: token}
	}))
	cached := func(name string) func() bool {
		return func() bool {
			status, _ := s.provider.Status("a")
			return slices.ContainsFunc(status.Kinds, func(kind clusters.KindStatus) bool { return kind.Kind == name && kind.Engaged })
		}
	}
	s.g.Eventually(cached("apiextensions.k8s.io/v1 CustomResourceDefinition")).Should(BeTrue())
	s.g.Eventually(s.state("a")).Should(Equal("Ready/Ready"), "it lacks nothing")
	name := rollouts.GroupVersion().String() + " " + rollouts.Kind
	s.g.Expect(cached(name)()).To(BeFalse())

	s.g.Expect(install(s.ctx, &fleet.Member{Cluster: c}, rollouts, "rollouts")).To(Succeed())
	definition := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "rollouts.argoproj.io"}}
	definition.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	changes := 0
	s.g.Eventually(func(g Gomega) { // the API server may serve the kind later than the hub asks because it came: any change of it counts
		changes++
		annotate := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"changes":"%d"}}}`, changes))
		g.Expect(s.client.Patch(s.ctx, definition, annotate)).To(Succeed())
		g.Expect(cached(name)()).To(BeTrue())
	}).WithPolling(2 * time.Second).Should(Succeed())
}

// cachedForRollouts are the kinds that spot placement has members cache when the configuration names Rollouts.
func cachedForRollouts(g *WithT, known *runtime.Scheme) (kinds []clusters.Kind) {
	kind, err := spot.NewWorkloadKind(rollouts.GroupVersion().String(), rollouts.Kind, "", "")
	g.Expect(err).NotTo(HaveOccurred())
	keys, err := policy.NewKeys("plimsoll.dev")
	g.Expect(err).NotTo(HaveOccurred())
	labels, err := capacity.NewLabels()
	g.Expect(err).NotTo(HaveOccurred())
	engine, err := spot.NewEngine(spot.Options{
		Keys: keys, Capacity: labels, Settings: plan.Settings{MaxMoves: policy.MoveLimit{Percent: 10}}, Kinds: []spot.WorkloadKind{kind},
	})
	g.Expect(err).NotTo(HaveOccurred())
	rt, err := reconcile.NewRuntime(reconcile.Options{Scheme: known})
	g.Expect(err).NotTo(HaveOccurred())
	controllers, err := engine.Controllers(rt, spot.Schedule{})
	g.Expect(err).NotTo(HaveOccurred())
	var declared [][]clusters.Kind
	for _, controller := range controllers {
		declared = append(declared, engine.Cached(controller))
	}
	kinds, err = clusters.MergeKinds(declared...)
	g.Expect(err).NotTo(HaveOccurred())
	return kinds
}

// mayReadRollouts makes an account that may read what one may that `plimsoll register --workload-resources rollouts.argoproj.io`
// made, and returns a token of it.
func mayReadRollouts(s *memberSite) (token string) {
	read := func(resources []string, groups ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: groups, Resources: resources, Verbs: []string{"get", "list", "watch"}}
	}
	definition := read([]string{"customresourcedefinitions"}, "apiextensions.k8s.io")
	definition.ResourceNames = []string{"rollouts.argoproj.io"}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "late-kinds"}, Rules: []rbacv1.PolicyRule{
		read([]string{"*"}, "", "apps", "policy"), read([]string{"rollouts"}, rollouts.Group), definition,
		{NonResourceURLs: []string{"/readyz", "/version"}, Verbs: []string{"get"}},
	}}
	s.g.Expect(s.client.Create(s.ctx, role)).To(Succeed())
	s.g.Expect(s.client.Create(s.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.namespace, Name: "hub"}},
	})).To(Succeed())
	s.g.Expect(s.client.Create(s.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "hub"}})).To(Succeed())
	token, err := s.cluster.Token(s.ctx, s.namespace, "hub")
	s.g.Expect(err).NotTo(HaveOccurred())
	return token
}
