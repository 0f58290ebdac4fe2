package integration

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// memberCanary is in every kubeconfig that is refused; it must not be shown anywhere.
const memberCanary = "c4n4ry-s3cr3t"

func TestMembersOnARealAPIServer(t *testing.T) {
	fleets.beside(t)
	c := kube.New(t, kube.Options{Name: "members", Minimal: true})
	t.Run("bad input is reported, hurts nobody else, and is corrected without a restart", func(t *testing.T) { badInputSpec(t, c) })
	t.Run("a member leaves with its Secret's label, and a hung one with its Secret", func(t *testing.T) { leavingSpec(t, c) })
	t.Run("a changed Secret takes over when it proves itself", func(t *testing.T) { swapSpec(t, c) })
	t.Run("a kind joins when its CRD is created and goes when it is deleted", func(t *testing.T) { crdSpec(t, c) })
	t.Run("permissions that come later are noticed", func(t *testing.T) { permissionSpec(t, c) })
	t.Run("a member that falls silent comes back with its watches", func(t *testing.T) { silenceSpec(t, c) })
	t.Run("a multicluster manager engages members and is not stopped by bad ones", func(t *testing.T) { managerSpec(t, c) })
}

// badInput is one line of the list. It registers something bad and returns how to correct it; nil if it cannot be.
type badInput struct {
	name  string
	want  string
	spoil func(s *memberSite, name string) (mend func())
}

func badInputs() []badInput {
	kubeconfig := func(make func(s *memberSite, good []byte, proxy *kube.Proxy) []byte) func(*memberSite, string) func() {
		return func(s *memberSite, name string) func() {
			proxy := s.proxy(name)
			good := s.kubeconfig(proxy)
			s.register(name, make(s, good, proxy))
			return func() { s.register(name, good) }
		}
	}
	fault := func(do func(*kube.Proxy)) func(*memberSite, string) func() {
		return func(s *memberSite, name string) func() {
			proxy := s.proxy(name)
			do(proxy)
			s.register(name, s.kubeconfig(proxy))
			return func() { s.g.Expect(proxy.Restore()).To(Succeed()) }
		}
	}
	edit := func(change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) func(*memberSite, string) func() {
		return kubeconfig(func(s *memberSite, good []byte, _ *kube.Proxy) []byte { return s.edited(good, change) })
	}
	return []badInput{
		{"no-key", "Refused/NoKubeconfig", kubeconfig(func(*memberSite, []byte, *kube.Proxy) []byte { return nil })},
		{"broken-yaml", "Refused/InvalidKubeconfig", kubeconfig(func(*memberSite, []byte, *kube.Proxy) []byte {
			return []byte("users: [token: " + memberCanary)
		})},
		{"exec", "Refused/ExecNotAllowed", edit(func(_ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) {
			user.Exec = &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: memberCanary, InteractiveMode: "Never"}
		})},
		{"files", "Refused/FilePathNotAllowed", edit(func(_ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) {
			user.TokenFile = "/var/run/" + memberCanary
		})},
		{"outside", "Refused/ServerNotAllowed", edit(func(cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
			cluster.Server = "https://10.255.255.1:6443"
		})},
		{"wrong-ca", "Refused/CertificateNotTrusted", kubeconfig(func(s *memberSite, good []byte, _ *kube.Proxy) []byte {
			return s.edited(good, func(cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
				cluster.CertificateAuthorityData = s.cluster.CAData()
			})
		})},
		{"refuses", "Unreachable/ConnectionRefused", fault(func(p *kube.Proxy) { p.Refuse() })},
		{"hangs", "Unreachable/Timeout", fault(func(p *kube.Proxy) { p.Hang(nil) })},
		{"one-kind-hangs", "Degraded/KindsMissing", fault(func(p *kube.Proxy) { p.Hang(lists("configmaps")) })},
		{"expired", "Refused/Unauthorized", expiredToken},
		{"duplicate", "Refused/DuplicateCluster", duplicate},
		{"dotted.name", "Refused/InvalidName", func(s *memberSite, name string) func() {
			s.register(name, s.kubeconfig(s.proxy("dotted")))
			return nil
		}},
	}
}

// expiredToken registers a member with a token whose time is over.
func expiredToken(s *memberSite, name string) func() {
	proxy := s.proxy(name)
	s.g.Expect(s.client.Create(s.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "hub"}})).To(Succeed())
	s.bind("view-"+s.namespace, "hub", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}})
	tokenUntil := func(until time.Time) []byte {
		token, err := s.cluster.TokenUntil(s.ctx, s.namespace, "hub", until)
		s.g.Expect(err).NotTo(HaveOccurred())
		return s.edited(s.kubeconfig(proxy), func(_ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) { user.Token = token })
	}
	s.register(name, tokenUntil(time.Now().Add(-time.Minute)))
	return func() { s.register(name, tokenUntil(time.Now().Add(time.Hour))) }
}

// duplicate registers a cluster that is registered already; it is resolved when the older Secret goes. That one's name
// sorts first, for both Secrets may be created in the same second.
func duplicate(s *memberSite, name string) func() {
	proxy, older := s.proxy(name), "a-"+name
	s.register(older, s.kubeconfig(proxy))
	s.awaitReady(older)
	s.register(name, s.kubeconfig(proxy))
	return func() { s.unregister(older) }
}

// bind gives a service account of the site's namespace a cluster-wide right.
func (s *memberSite) bind(name, account string, rules ...rbacv1.PolicyRule) {
	s.g.Expect(s.client.Create(s.ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules})).To(Succeed())
	s.g.Expect(s.client.Create(s.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.namespace, Name: account}},
	})).To(Succeed())
}

func badInputSpec(t *testing.T, c *kube.Cluster) {
	s := newMemberSite(t, c)
	s.register("healthy", s.kubeconfig(s.proxy("healthy")))
	healthy := s.awaitReady("healthy")
	mends := map[string]func(){}
	for _, bad := range badInputs() { // all at once: none may hold up another
		mends[bad.name] = bad.spoil(s, bad.name)
	}
	for _, bad := range badInputs() {
		state, reason, _ := strings.Cut(bad.want, "/")
		s.g.Eventually(s.state(bad.name)).Should(Equal(bad.want), bad.name)
		s.g.Eventually(s.warnings(bad.name)).Should(ContainElement(reason), bad.name)
		s.g.Expect(s.metric("plimsoll_member_state{member="+bad.name+",state="+state+"}")()).To(Equal(1.0), bad.name)
		if state == "Refused" {
			s.g.Expect(s.metric("plimsoll_member_refused_total{reason="+reason+"}")()).To(BeNumerically(">=", 1), bad.name)
		}
	}
	s.g.Expect(s.aware.live("one-kind-hangs")()).To(BeTrue(), "the kinds that do not hang are there")
	s.g.Expect(s.aware.live("duplicate")()).To(BeFalse())
	s.g.Expect(s.shown()).NotTo(ContainSubstring(memberCanary))
	s.g.Expect(healthy.Ready()).To(BeTrue())
	s.g.Expect(s.aware.first("healthy").Err()).NotTo(HaveOccurred())
	s.sees(healthy)
	for _, bad := range badInputs() {
		if mend := mends[bad.name]; mend != nil {
			mend()
		}
	}
	for _, bad := range badInputs() {
		if mends[bad.name] != nil {
			s.sees(s.awaitReady(bad.name))
			s.g.Eventually(s.aware.live(bad.name)).Should(BeTrue(), bad.name)
		}
	}
	s.g.Expect(s.aware.first("healthy").Err()).NotTo(HaveOccurred())
}

func leavingSpec(t *testing.T, c *kube.Cluster) {
	s := newMemberSite(t, c)
	proxy := s.proxy("hung")
	s.register("hung", s.kubeconfig(proxy))
	s.register("labelled", s.kubeconfig(s.proxy("labelled")))
	s.awaitReady("hung")
	labelled := s.awaitReady("labelled")
	done, ok := labelled.Watch(&corev1.ConfigMap{})
	s.g.Expect(ok).To(BeTrue())
	proxy.Hang(nil)
	s.g.Eventually(s.state("hung")).Should(Equal("Unreachable/Timeout"))
	s.unregister("hung")
	s.g.Eventually(s.state("hung")).Should(BeEmpty())
	s.g.Expect(s.aware.first("hung").Err()).To(HaveOccurred())

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "labelled"}}
	unlabel := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+clusters.MemberLabel+`":null}}}`))
	s.g.Expect(s.client.Patch(s.ctx, secret, unlabel)).To(Succeed())
	s.g.Eventually(s.state("labelled")).Should(BeEmpty())
	s.g.Eventually(done).Should(BeClosed())
	s.g.Expect(s.aware.live("labelled")()).To(BeFalse())

	relabel := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+clusters.MulticlusterRuntimeLabel+`":"true"}}}`))
	s.g.Expect(s.client.Patch(s.ctx, secret, relabel)).To(Succeed())
	s.awaitReady("labelled")
}

func swapSpec(t *testing.T, c *kube.Cluster) {
	s := newMemberSite(t, c)
	proxy, next := s.proxy("swap"), s.proxy("swap")
	s.register("swap", s.kubeconfig(proxy))
	member := s.awaitReady("swap")

	s.register("swap", s.edited(s.kubeconfig(proxy), func(_ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) { user.Token = memberCanary }))
	s.g.Eventually(s.accepted("swap")).Should(Equal("False/Unauthorized"))
	s.g.Eventually(s.warnings("swap")).Should(ContainElement("Unauthorized"))
	s.g.Expect(s.state("swap")()).To(Equal("Ready/Ready"))
	s.g.Expect(s.aware.first("swap").Err()).NotTo(HaveOccurred())
	s.sees(member)

	s.register("swap", s.kubeconfig(next))
	s.g.Eventually(func() string { status, _ := s.provider.Status("swap"); return status.Server }).Should(Equal(strings.TrimPrefix(next.URL(), "https://")))
	s.g.Eventually(s.accepted("swap")).Should(Equal("True/Accepted"))
	s.g.Expect(s.aware.first("swap").Err()).To(HaveOccurred())
	s.g.Eventually(s.aware.live("swap")).Should(BeTrue())
	s.sees(s.awaitReady("swap"))
	s.g.Expect(s.shown()).NotTo(ContainSubstring(memberCanary))
}

func crdSpec(t *testing.T, c *kube.Cluster) {
	types := runtime.NewScheme()
	NewWithT(t).Expect(scheme.AddToScheme(types)).To(Succeed())
	NewWithT(t).Expect(apiextensionsv1.AddToScheme(types)).To(Succeed())
	types.AddKnownTypeWithName(widgets.WithKind("Widget"), &widget{})
	types.AddKnownTypeWithName(widgets.WithKind("WidgetList"), &widgetList{})
	metav1.AddToGroupVersion(types, widgets)
	s := newMemberSite(t, c, func(o *clusters.Options) {
		o.Scheme = types
		o.Kinds = append(o.Kinds, clusters.Kind{Object: &widget{}})
	})
	admin, err := client.New(c.Config(), client.Options{Scheme: types})
	s.g.Expect(err).NotTo(HaveOccurred())
	s.register("crd", s.kubeconfig(s.proxy("crd")))
	s.g.Eventually(s.state("crd")).Should(Equal("Degraded/KindsMissing"))
	status, _ := s.provider.Status("crd")
	s.g.Expect(status.Kinds[2]).To(Equal(clusters.KindStatus{Kind: "test.plimsoll.dev/v1 Widget", Reason: "NotFound"}))
	member, ok := s.provider.Member("crd")
	s.g.Expect(ok).To(BeTrue())

	s.g.Expect(admin.Create(s.ctx, widgetCRD())).To(Succeed())
	s.g.Expect(s.awaitReady("crd")).To(BeIdenticalTo(member))
	s.g.Expect(admin.Create(s.ctx, &widget{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "one"}})).To(Succeed())
	s.g.Eventually(func() error {
		return member.GetClient().Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: "one"}, &widget{})
	}).Should(Succeed())

	done, ok := member.Watch(&widget{})
	s.g.Expect(ok).To(BeTrue())
	others, _ := member.Watch(&corev1.ConfigMap{})
	s.g.Expect(admin.Delete(s.ctx, widgetCRD())).To(Succeed())
	s.g.Eventually(done).Should(BeClosed())
	s.g.Eventually(s.state("crd")).Should(Equal("Degraded/KindsMissing"))
	s.g.Expect(others).NotTo(BeClosed())
	s.g.Expect(admin.Create(s.ctx, widgetCRD())).To(Succeed())
	s.g.Expect(s.awaitReady("crd")).To(BeIdenticalTo(member))
	s.g.Expect(member.GetClient().List(s.ctx, &widgetList{})).To(Succeed())
}

func permissionSpec(t *testing.T, c *kube.Cluster) {
	s := newMemberSite(t, c, func(o *clusters.Options) {
		o.Access = []clusters.Access{{Resource: "pods", Subresource: "eviction", Verbs: []string{"create"}, For: "replicas cannot be moved"}}
	})
	s.g.Expect(s.client.Create(s.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "hub"}})).To(Succeed())
	read := []string{"get", "list", "watch"}
	s.bind("pods-"+s.namespace, "hub", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: read})
	own, err := c.KubeconfigFor(s.ctx, "system:serviceaccount:"+s.namespace+":hub")
	s.g.Expect(err).NotTo(HaveOccurred())
	s.register("poor", s.proxy("poor").Kubeconfig(own))
	s.g.Eventually(s.state("poor")).Should(Equal("Degraded/KindsMissing"))
	status, _ := s.provider.Status("poor")
	s.g.Expect(status.Message).To(ContainSubstring("v1 ConfigMap (Forbidden)"))
	s.g.Eventually(func() string { status, _ := s.provider.Status("poor"); return status.Message }).
		Should(ContainSubstring("create pods/eviction (replicas cannot be moved)"))
	member, ok := s.provider.Member("poor")
	s.g.Expect(ok).To(BeTrue())
	s.g.Expect(member.GetClient().List(s.ctx, &corev1.PodList{})).To(Succeed())

	s.bind("rest-"+s.namespace, "hub", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps", "namespaces"}, Verbs: read},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}})
	s.g.Expect(s.awaitReady("poor")).To(BeIdenticalTo(member))
}

func silenceSpec(t *testing.T, c *kube.Cluster) {
	s := newMemberSite(t, c)
	proxy := s.proxy("silent")
	s.register("silent", s.kubeconfig(proxy))
	member := s.awaitReady("silent")
	for what, fault := range map[string]func(){"hangs": func() { proxy.Hang(nil) }, "refuses": proxy.Refuse} {
		fault()
		s.g.Eventually(s.state("silent")).Should(HavePrefix("Unreachable/"), what)
		s.g.Expect(member.BreakerOpen()).To(BeTrue(), what)
		s.g.Expect(member.GetClient().List(s.ctx, &corev1.PodList{})).To(Succeed(), what)
		s.g.Expect(proxy.Restore()).To(Succeed())
		s.g.Expect(s.awaitReady("silent")).To(BeIdenticalTo(member), what)
		s.g.Expect(member.BreakerOpen()).To(BeFalse(), what)
		s.sees(member)
	}
	s.g.Expect(s.aware.first("silent").Err()).NotTo(HaveOccurred())
}

// managed is a runnable that a multicluster manager engages.
type managed struct{ *memberAware }

func (managed) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func managerSpec(t *testing.T, c *kube.Cluster) {
	s := newMemberSite(t, c)
	provider, err := clusters.New(clusters.Options{
		Namespace: s.namespace, HubConfig: c.Config(), Scheme: scheme.Scheme, Fence: clusters.FenceFunc(func(string) error { return nil }),
		Rules: kubeconfig.Rules{AllowedNetworks: memberNetworks}, Kinds: []clusters.Kind{{Object: &corev1.ConfigMap{}}},
	})
	s.g.Expect(err).NotTo(HaveOccurred())
	local, err := manager.New(c.Config(), manager.Options{Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0"})
	s.g.Expect(err).NotTo(HaveOccurred())
	mgr, err := mcmanager.WithMultiCluster(local, provider)
	s.g.Expect(err).NotTo(HaveOccurred())
	aware := &memberAware{engaged: map[string][]context.Context{}}
	s.g.Expect(mgr.Add(managed{aware})).To(Succeed())
	s.run(mgr.Start)
	hung := s.proxy("manager-hung")
	hung.Hang(lists("configmaps"))
	s.register("manager-hung", s.kubeconfig(hung))
	s.register("manager-good", s.kubeconfig(s.proxy("manager-good")))
	s.g.Eventually(aware.live("manager-good")).Should(BeTrue())
	cl, err := mgr.GetCluster(s.ctx, "manager-good")
	s.g.Expect(err).NotTo(HaveOccurred())
	s.g.Expect(cl.GetClient().List(s.ctx, &corev1.ConfigMapList{})).To(Succeed())
	s.unregister("manager-good")
	s.g.Eventually(aware.live("manager-good")).Should(BeFalse())
}

var widgets = schema.GroupVersion{Group: "test.plimsoll.dev", Version: "v1"}

// widget is a kind of which the API server knows nothing at first.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

func (w *widget) DeepCopyObject() runtime.Object {
	c := *w
	w.DeepCopyInto(&c.ObjectMeta)
	return &c
}

type widgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []widget `json:"items"`
}

func (l *widgetList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = nil
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*widget))
	}
	return &c
}

func widgetCRD() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets." + widgets.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: widgets.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: widgets.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
			}},
		},
	}
}
