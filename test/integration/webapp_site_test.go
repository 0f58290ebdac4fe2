package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1beta1"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// webAppSite is a member that knows WebApps, and the hub that keeps them there.
type webAppSite struct {
	hub    *insideHub
	member *fleet.Member
	client client.WithWatch // of an administrator
}

// newWebAppSite installs WebApps in the member "eu", as a person does, while the hub runs.
func newWebAppSite(t *testing.T, f *fleet.Fleet, h *insideHub) *webAppSite {
	t.Helper()
	g := NewWithT(t)
	s := &webAppSite{hub: h, member: f.Members[0]}
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme, v1.AddToScheme, v1beta1.AddToScheme, v1alpha1.AddToScheme} {
		g.Expect(add(known)).To(Succeed())
	}
	var err error
	s.client, err = client.NewWithWatch(s.member.Cluster.Config(), client.Options{Scheme: known})
	g.Expect(err).NotTo(HaveOccurred())
	s.install(t, "created")
	g.Eventually(s.condition).WithContext(t.Context()).WithTimeout(patience).Should(And(HaveField("Status", "True"), HaveField("Reason", "Current")))
	s.install(t, "unchanged")
	return s
}

// install runs the CLI, and expects this of everything that it makes.
func (s *webAppSite) install(t *testing.T, done string) {
	t.Helper()
	g := NewWithT(t)
	dir := t.TempDir()
	binary, kubeconfig := filepath.Join(dir, "plimsoll"), filepath.Join(dir, "kubeconfig")
	g.Expect(fleet.BuildCLI(t.Context(), "../..", binary)).To(Succeed())
	g.Expect(os.WriteFile(kubeconfig, s.member.Cluster.Kubeconfig(), 0o600)).To(Succeed())
	output, err := exec.CommandContext(t.Context(), binary, "webapps", "install", "--kubeconfig", kubeconfig, "--member-namespace", fleet.Namespace, "--secrets", "*").CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(output))
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	g.Expect(lines).To(HaveLen(4))
	for _, line := range lines {
		g.Expect(line).To(ContainSubstring(done))
	}
}

// condition is what the hub says of the kind in the member.
func (s *webAppSite) condition(ctx context.Context) (*plimsollv1.Condition, error) {
	return webAppCondition(ctx, s.hub, s.member.Name)
}

func webAppCondition(ctx context.Context, h *insideHub, member string) (*plimsollv1.Condition, error) {
	shown, err := h.Cluster(ctx, member)
	if err != nil {
		return nil, err
	}
	for _, c := range shown.GetConditions() {
		if c.GetType() == "WebApps" {
			return c, nil
		}
	}
	return nil, nil
}

// webApps is one spec, in a namespace of its own.
type webApps struct {
	*WithT
	*webAppSite

	t         *testing.T
	ctx       context.Context
	namespace string
}

// begin begins a spec in a namespace with these labels.
func (s *webAppSite) begin(t *testing.T, labels map[string]string) *webApps {
	t.Helper()
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(patience)
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	t.Cleanup(cancel)
	namespace, err := s.member.NewNamespace(ctx, "webapp", labels)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = s.member.DeleteNamespace(context.Background(), namespace) })
	return &webApps{WithT: g, webAppSite: s, t: t, ctx: ctx, namespace: namespace}
}

// shop is a WebApp with a port, not yet created.
func (s *webApps) shop(change ...func(*v1.WebApp)) *v1.WebApp {
	app := &v1.WebApp{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "shop"}}
	app.Spec.Replicas = new(int32(2))
	app.Spec.Containers = []v1.Container{{Name: "web", Image: "shop:1", Ports: []v1.Port{{Name: "http", ContainerPort: 8080}}}}
	for _, c := range change {
		c(app)
	}
	return app
}

// create makes a WebApp and returns a function that reads it.
func (s *webApps) create(change ...func(*v1.WebApp)) func() (*v1.WebApp, error) {
	s.t.Helper()
	app := s.shop(change...)
	s.Expect(s.client.Create(s.ctx, app)).To(Succeed())
	return func() (*v1.WebApp, error) {
		var is v1.WebApp
		return &is, s.client.Get(s.ctx, client.ObjectKeyFromObject(app), &is)
	}
}

// change patches a WebApp.
func (s *webApps) change(read func() (*v1.WebApp, error), change func(*v1.WebApp)) {
	s.t.Helper()
	app, err := read()
	s.Expect(err).NotTo(HaveOccurred())
	before := app.DeepCopy()
	change(app)
	s.Expect(s.client.Patch(s.ctx, app, client.MergeFrom(before))).To(Succeed())
}

// part reads an object that the WebApp consists of, into a new one each time: decoding keeps what the answer leaves out, such as a
// map's removed keys.
func part[T client.Object](s *webApps, kind T) func() (T, error) {
	return func() (T, error) {
		into := kind.DeepCopyObject().(T)
		return into, s.client.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: "shop"}, into)
	}
}

// is matches a WebApp with a condition, its status, its reason and a part of its message.
func is(condition string, status metav1.ConditionStatus, reason, message string) OmegaMatcher {
	return WithTransform(func(app *v1.WebApp) metav1.Condition {
		found := meta.FindStatusCondition(app.Status.Conditions, condition)
		if found == nil {
			return metav1.Condition{}
		}
		return *found
	}, And(HaveField("Status", status), HaveField("Reason", reason), HaveField("Message", ContainSubstring(message))))
}

var webAppReady = is("Ready", metav1.ConditionTrue, "Ready", "pods are available")

// versions are the resourceVersions of a WebApp and all that it consists of.
func (s *webApps) versions(objects ...client.Object) map[string]string {
	s.t.Helper()
	all := map[string]string{}
	for _, object := range objects {
		s.Expect(s.client.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: "shop"}, object)).To(Succeed())
		all[fmt.Sprintf("%T", object)] = object.GetResourceVersion()
	}
	return all
}

func secret(namespace, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}
