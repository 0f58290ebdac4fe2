package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile/module"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// moduleSite is a hub that was built from a module of somebody else (test/module), as its user builds and registers.
type moduleSite struct {
	*cliSite
	fleet  *fleet.Fleet
	member *fleet.Member
	hub    *fleet.Process // built from test/module
	api    *fleet.API
}

// TestAHubWithAControllerOfSomebodyElse goes through the life of such a hub, in order: each part goes on from the one before.
func TestAHubWithAControllerOfSomebodyElse(t *testing.T) {
	fleets.beside(t)
	s := newModuleSite(t)
	t.Run("a member says which right is missing, until it is registered with it", func(t *testing.T) { moduleRights(t, s) })
	t.Run("its reconciler runs in the member", func(t *testing.T) { moduleReconciles(t, s) })
	t.Run("the API shows its controller and its keys, and a requeue is followed to its end", func(t *testing.T) { moduleInAPI(t, s) })
	t.Run("metrics carry its name, and its own metric is beside them", func(t *testing.T) { moduleMetrics(t, s) })
	t.Run("it writes nothing in the namespaces of the system", func(t *testing.T) { moduleConfined(t, s) })
	t.Run("its finalizer cleans up", func(t *testing.T) { moduleFinalizes(t, s) })
	t.Run("a kind of its own is kept current in the member, and the member asks about its objects", func(t *testing.T) { moduleKind(t, s) })
	t.Run("and is reconciled in each of its versions", func(t *testing.T) { moduleKindReconciles(t, s) })
}

func newModuleSite(t *testing.T) *moduleSite {
	t.Helper()
	g := NewWithT(t)
	f, err := fleet.Start(t.Context(), fleet.Options{Members: []string{"eu"}})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(f.Stop()).To(Succeed()) })
	dir := t.TempDir()
	s := &moduleSite{fleet: f, member: f.Members[0], cliSite: &cliSite{
		hub: f.Hub, member: f.Members[0].Cluster, binary: filepath.Join(dir, "plimsoll"), kubeconfig: filepath.Join(dir, "config"),
	}}
	s.write(t, s.kubeconfig, f.Hub.Kubeconfig(), s.member.Cluster.Kubeconfig())
	hubBinary := filepath.Join(dir, "fleet-hub")
	g.Expect(fleet.BuildCLI(t.Context(), "../..", s.binary)).To(Succeed())
	build := exec.CommandContext(t.Context(), "go", "build", "-o", hubBinary, ".")
	build.Dir = "../module"
	said, err := build.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(said))
	settings := fleet.Settings{}
	for key, value := range quick {
		settings[key] = value
	}
	replica, err := f.NewReplica("fleet-hub", settings)
	g.Expect(err).NotTo(HaveOccurred())
	s.hub, err = replica.Launch(hubBinary)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := os.ReadFile(s.hub.LogFile)
			t.Logf("the hub said:\n%s", log[max(0, len(log)-8000):])
		}
		g.Expect(s.hub.Kill()).To(Succeed())
	})
	f.Balancer.Add(replica.Webhook)
	s.api, err = replica.Connect()
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(s.api.Close)
	return s
}

func (s *moduleSite) register(t *testing.T, more ...string) {
	t.Helper()
	s.ok(t, append([]string{"register", "eu", "--context", "eu", "--hub-context", "hub"}, more...)...)
}

func moduleRights(t *testing.T, s *moduleSite) {
	g := NewWithT(t)
	s.register(t)
	g.Eventually(func() (string, error) {
		cluster, err := s.api.Cluster(t.Context(), "eu")
		return cluster.String(), err
	}).WithTimeout(patience).Should(And(ContainSubstring("CLUSTER_STATE_DEGRADED"), ContainSubstring("configmaps (mirroring ConfigMaps)")))
	s.register(t, "--writes", "configmaps,bundles.example.com", "--keeps", "bundles.example.com")
	g.Expect(s.api.AwaitMembers(t.Context(), s.member)).To(Succeed())
}

// source makes a ConfigMap that is to be mirrored.
func (s *moduleSite) source(t *testing.T, name, to string) *corev1.ConfigMap {
	t.Helper()
	source := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "platform", Name: name, Labels: map[string]string{"mirror.example.com/role": "source"},
			Annotations: map[string]string{"mirror.example.com/to": to},
		},
		Data: map[string]string{"ca.crt": "root"},
	}
	if err := s.member.Client().Create(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	return source
}

func (s *moduleSite) copied(t *testing.T, namespace, name string) func() (string, error) {
	return func() (string, error) {
		var found corev1.ConfigMap
		err := s.member.Client().Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &found)
		return found.Data["ca.crt"], err
	}
}

func moduleReconciles(t *testing.T, s *moduleSite) {
	g := NewWithT(t)
	for _, name := range []string{"platform", "shop", "cart"} {
		g.Expect(s.member.Client().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	}
	s.source(t, "trust", "shop,cart")
	for _, namespace := range []string{"shop", "cart"} {
		g.Eventually(s.copied(t, namespace, "trust")).WithTimeout(patience).Should(Equal("root"))
	}
	var one corev1.ConfigMap
	g.Eventually(func() (string, error) {
		err := s.member.Client().Get(t.Context(), client.ObjectKey{Namespace: "platform", Name: "trust"}, &one)
		return one.Annotations["mirror.example.com/copies"], err
	}).WithTimeout(patience).Should(Equal("2"))
	g.Expect(s.member.Client().Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "trust"}, &one)).To(Succeed())
	one.Data["ca.crt"] = "changed by hand"
	g.Expect(s.member.Client().Update(t.Context(), &one)).To(Succeed())
	g.Eventually(s.copied(t, "shop", "trust")).WithTimeout(patience).Should(Equal("root"))
}

func moduleInAPI(t *testing.T, s *moduleSite) {
	g := NewWithT(t)
	controllers := s.ok(t, "controllers", "--api", s.hub.GRPC, "--insecure-plaintext")
	g.Expect(controllers.out).To(MatchRegexp(`(?m)^eu +mirror +v1 ConfigMap +1 `))
	g.Expect(controllers.out).To(MatchRegexp(`(?m)^eu +deployment-spot `), "beside the hub's own")
	listed, err := s.api.Objects.ListObjects(t.Context(), &plimsollv1.ListObjectsRequest{Cluster: "eu", Controller: "mirror"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(listed.GetObjects()).To(HaveLen(1), "copies are no keys")
	g.Expect(listed.GetObjects()[0].GetKey().GetNamespace() + "/" + listed.GetObjects()[0].GetKey().GetName()).To(Equal("platform/trust"))

	requeued := s.ok(t, "requeue", "eu", "platform/trust", "--controller", "mirror", "--wait", "--api", s.hub.GRPC, "--insecure-plaintext")
	g.Expect(strings.ToLower(requeued.out)).To(ContainSubstring("done"))
}

func moduleMetrics(t *testing.T, s *moduleSite) {
	g := NewWithT(t)
	g.Eventually(func(g Gomega) {
		samples, err := s.hub.Samples(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		named := 0
		for _, all := range samples {
			for _, sample := range all {
				if sample.Has("controller", "mirror") && sample.Has("member", "eu") {
					named++
				}
			}
		}
		g.Expect(named).To(BeNumerically(">", 3))
		g.Expect(samples["mirror_copies"]).To(ConsistOf(fleet.Sample{Labels: `member="eu"`, Value: 2}))
	}).WithTimeout(patience).Should(Succeed())
}

func moduleConfined(t *testing.T, s *moduleSite) {
	g := NewWithT(t)
	s.source(t, "escape", "kube-system")
	g.Eventually(func() (string, error) {
		state, err := s.api.Objects.GetObjectState(t.Context(), &plimsollv1.GetObjectStateRequest{
			Cluster: "eu", Controller: "mirror", Namespace: "platform", Name: "escape",
		})
		return state.GetObject().GetLastError(), err
	}).WithTimeout(patience).Should(ContainSubstring("the hub's account may only write"))
	_, err := s.copied(t, "kube-system", "escape")()
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue())
}

func moduleFinalizes(t *testing.T, s *moduleSite) {
	g := NewWithT(t)
	source := &corev1.ConfigMap{}
	g.Expect(s.member.Client().Get(t.Context(), client.ObjectKey{Namespace: "platform", Name: "trust"}, source)).To(Succeed())
	g.Expect(source.Finalizers).To(Equal([]string{"mirror.example.com/mirror"}))
	g.Expect(s.member.Client().Delete(t.Context(), source)).To(Succeed())
	for _, namespace := range []string{"platform", "shop", "cart"} {
		g.Eventually(func() bool {
			_, err := s.copied(t, namespace, "trust")()
			return apierrors.IsNotFound(err)
		}).WithTimeout(patience).Should(BeTrue())
	}
}

// bundle is an object of the module's kind, which this program does not know.
func bundle(version, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/" + version, "kind": "Bundle",
		"metadata": map[string]any{"namespace": "platform", "name": name}, "spec": spec,
	}}
}

// moduleKind has a person install the definition as an older hub had it, and the hub do the rest.
func moduleKind(t *testing.T, s *moduleSite) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
	member, err := client.New(s.member.Cluster.Config(), client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	text, err := os.ReadFile("../module/bundle/crd.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	older, err := module.NewDefinition(text, 0)
	g.Expect(err).NotTo(HaveOccurred())
	definition := older.New()
	g.Expect(member.Create(t.Context(), definition)).To(Succeed())
	g.Eventually(func() (map[string]string, error) {
		cluster, err := s.api.Cluster(t.Context(), "eu")
		conditions := map[string]string{}
		for _, c := range cluster.GetConditions() {
			conditions[c.GetType()] = c.GetReason()
		}
		return conditions, err
	}).WithTimeout(patience).Should(And(HaveKeyWithValue("Bundles", "Current"), HaveKeyWithValue("WebApps", "Missing")))
	g.Expect(member.Get(t.Context(), client.ObjectKeyFromObject(definition), definition)).To(Succeed())
	g.Expect(definition.Annotations).To(HaveKeyWithValue(older.RevisionAnnotation(), "1"), "the hub brought it up to date")

	bad := map[string]any{"sources": []any{"ours"}, "to": []any{"kube-system"}}
	g.Eventually(func() error { return member.Create(t.Context(), bundle("v1", "bad", bad), client.DryRunAll) }).WithTimeout(patience).
		Should(MatchError(ContainSubstring("spec.to[0]: Forbidden: is a namespace of the system")))
}

// moduleKindReconciles makes a Bundle in the older version, before what it needs.
func moduleKindReconciles(t *testing.T, s *moduleSite) {
	g := NewWithT(t)
	member := s.member.Client()
	made := bundle("v1alpha1", "roots", map[string]any{"sources": "ours,theirs", "to": "shop"})
	g.Eventually(func() error { return member.Create(t.Context(), made.DeepCopy()) }).WithTimeout(patience).Should(Succeed())
	stored := bundle("v1", "roots", nil)
	g.Eventually(func(g Gomega) {
		g.Expect(member.Get(t.Context(), client.ObjectKeyFromObject(made), stored)).To(Succeed())
		sources, _, _ := unstructured.NestedStringSlice(stored.Object, "spec", "sources")
		g.Expect(sources).To(Equal([]string{"ours", "theirs"}))
		g.Expect(stored.GetLabels()).To(HaveKeyWithValue("example.com/team", "platform"))
	}).WithTimeout(patience).Should(Succeed())
	g.Eventually(func() (string, error) {
		state, err := s.api.Objects.GetObjectState(t.Context(), &plimsollv1.GetObjectStateRequest{
			Cluster: "eu", Controller: "bundle", Namespace: "platform", Name: "roots",
		})
		return state.GetObject().GetReason(), err
	}).WithTimeout(patience).Should(ContainSubstring("waits for ConfigMap platform/ours"))
	for _, name := range []string{"ours", "theirs"} {
		source := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: name}, Data: map[string]string{"ca.crt": name + "\n"}}
		g.Expect(member.Create(t.Context(), source)).To(Succeed())
	}
	g.Eventually(s.copied(t, "shop", "roots")).WithTimeout(patience).Should(Equal("ours\ntheirs\n"), "one module mirrors what the other made")
	g.Eventually(func() (int64, error) {
		err := member.Get(t.Context(), client.ObjectKeyFromObject(made), stored)
		length, _, _ := unstructured.NestedInt64(stored.Object, "status", "bytes")
		return length, err
	}).WithTimeout(patience).Should(BeEquivalentTo(len("ours\ntheirs\n")))
}
