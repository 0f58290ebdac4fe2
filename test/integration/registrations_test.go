package integration

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/hub"
	"github.com/plimsoll-dev/plimsoll/hub/pki"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// TestARegistrarReadsNoneOfTheHubsKeys installs the rights of the chart, as the kustomize base has them, in a cluster with RBAC.
func TestARegistrarReadsNoneOfTheHubsKeys(t *testing.T) {
	fleets.beside(t)
	g, ctx := NewWithT(t), t.Context()
	g.SetDefaultEventuallyTimeout(patience)
	c := kube.New(t, kube.Options{Name: "hub", Minimal: true})
	installHubsRights(t, c)
	const registrar = "registrar"
	g.Expect(c.Client().Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: registrar}})).To(Succeed())
	g.Expect(c.Client().Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: fleet.Registrations, Name: registrar},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "plimsoll-registrar"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: registrar}},
	})).To(Succeed())
	as := func(user string) client.Client {
		kubeconfig, err := c.KubeconfigFor(ctx, user)
		g.Expect(err).NotTo(HaveOccurred())
		config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
		g.Expect(err).NotTo(HaveOccurred())
		made, err := client.New(config, client.Options{Scheme: scheme.Scheme})
		g.Expect(err).NotTo(HaveOccurred())
		return made
	}
	person, theHub := as("system:serviceaccount:default:"+registrar), as(fleet.HubUser)

	one := fleet.Registration("prod-eu", []byte("of the member"))
	g.Eventually(func() error { return person.Create(ctx, one) }).Should(Succeed())
	g.Expect(person.List(ctx, &corev1.SecretList{}, client.InNamespace(fleet.Registrations))).To(Succeed())
	keys := client.ObjectKey{Namespace: fleet.Namespace, Name: hub.CASecret}
	g.Expect(person.Get(ctx, keys, &corev1.Secret{})).To(Satisfy(apierrors.IsForbidden))
	g.Expect(person.List(ctx, &corev1.SecretList{}, client.InNamespace(fleet.Namespace))).To(Satisfy(apierrors.IsForbidden))
	g.Expect(person.List(ctx, &corev1.SecretList{})).To(Satisfy(apierrors.IsForbidden))

	own := &corev1.Secret{}
	g.Expect(theHub.Get(ctx, keys, own)).To(Succeed())
	g.Expect(own.Data).To(HaveKey(pki.TokenKeyField))
	g.Expect(theHub.Update(ctx, one)).To(Succeed(), "it renews tokens")
	other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: fleet.Namespace, Name: "certificate"}}
	g.Expect(c.Client().Create(ctx, other)).To(Succeed())
	g.Expect(theHub.Update(ctx, other)).To(Satisfy(apierrors.IsForbidden))
	g.Expect(theHub.List(ctx, &corev1.SecretList{}, client.InNamespace(fleet.Namespace))).To(Satisfy(apierrors.IsForbidden))
}

// installHubsRights gives a cluster the accounts and rights of the chart, and the hub's keys.
func installHubsRights(t *testing.T, c *kube.Cluster) {
	t.Helper()
	if err := c.Client().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fleet.Namespace}}); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"registrations.yaml", "rbac.yaml", "state.yaml"} {
		applyFile(t, c, filepath.Join("..", "..", "deploy", "kustomize", "base", file))
	}
	if _, err := pki.EnsureCA(t.Context(), c.Client(), fleet.Namespace, hub.CASecret); err != nil {
		t.Fatal(err)
	}
}

// applyFile creates the objects of a file of manifests.
func applyFile(t *testing.T, c *kube.Cluster, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := documents.Decode(&object.Object); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(object.Object) == 0 {
			continue
		}
		if err := c.Client().Create(t.Context(), object); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
}

// TestRegistrationsAreMovedOutOfTheHubsNamespace goes from the old layout to the new one with a member that runs.
func TestRegistrationsAreMovedOutOfTheHubsNamespace(t *testing.T) {
	fleets.beside(t)
	c := kube.New(t, kube.Options{Name: "members", Minimal: true})
	var old string
	s := newMemberSite(t, c, func(o *clusters.Options) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "apart"}}
		if err := c.Client().Create(t.Context(), namespace); err != nil {
			t.Fatal(err)
		}
		old, o.HubNamespace, o.AlsoHubNamespace, o.Namespace = o.Namespace, o.Namespace, true, namespace.Name
	})
	kubeconfig := s.kubeconfig(s.proxy("one"))
	s.register("one", kubeconfig) // an Opaque Secret in the hub's namespace
	running := s.awaitReady("one")
	s.g.Eventually(s.separate("one")).Should(Equal("False/" + clusters.ReasonSharedNamespace))
	s.g.Eventually(s.warnings("one")).Should(ContainElement(clusters.ReasonSharedNamespace))
	s.g.Expect(s.log.String()).To(ContainSubstring("not kept apart from the hub's own keys"))

	s.namespace = "apart"
	s.register("other", s.kubeconfig(s.proxy("other")))
	s.g.Eventually(s.state("other")).Should(Equal("Refused/"+clusters.ReasonSecretType), "an Opaque Secret among registrations")
	moved := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "one", Labels: map[string]string{clusters.MemberLabel: "true"}},
		Type:       clusters.KubeconfigType, Data: map[string][]byte{clusters.KubeconfigKey: kubeconfig},
	}
	s.g.Expect(s.client.Create(s.ctx, moved)).To(Succeed())
	s.g.Eventually(s.separate("one")).Should(Equal("False/" + clusters.ReasonUnusedSecret))
	s.g.Expect(running.Registration().Namespace).To(Equal("apart"))
	s.namespace = old
	s.unregister("one")
	s.g.Eventually(s.separate("one")).Should(Equal("True/" + clusters.ReasonSeparate))
	now := s.awaitReady("one")
	s.g.Expect(now).To(BeIdenticalTo(running), "the member runs on")
}

// separate gives "Status/Reason" of a member's condition Separate.
func (s *memberSite) separate(name string) func() string {
	return func() string {
		status, _ := s.provider.Status(name)
		for _, c := range status.Conditions {
			if c.Type == clusters.ConditionSeparate {
				return string(c.Status) + "/" + c.Reason
			}
		}
		return ""
	}
}
