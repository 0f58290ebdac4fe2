package integration

import (
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// webAppsUninstalled installs the WebApp kind in a member and removes it, which is refused while there is a WebApp. The member is registered
// and unregistered around it: the definition is left behind, and the command says how to delete it.
func webAppsUninstalled(t *testing.T, s *cliSite) {
	g := NewWithT(t)
	s.ok(t, toRegister("prod-eu")...)
	s.ok(t, "webapps", "install", "prod-eu", "--context", "member")
	app := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.plimsoll.dev/v1", "kind": "WebApp", "metadata": map[string]any{"name": "shop", "namespace": "default"},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "web", "image": "registry.example.com/shop:1.0"}}},
	}}
	// A definition is served a moment after it was created.
	g.Eventually(func() error { return s.member.Client().Create(t.Context(), app.DeepCopy()) }, memberPatience).Should(Succeed())

	installed := traces(t, s.member)
	refused := s.plimsoll(t, "webapps", "uninstall", "prod-eu", "--context", "member")
	g.Expect(refused.code).NotTo(BeZero(), refused.out)
	g.Expect(refused.err).To(And(ContainSubstring("default/shop"), ContainSubstring("nothing was changed")))
	g.Expect(traces(t, s.member)).To(Equal(installed))
	g.Expect(s.member.Client().Get(t.Context(), client.ObjectKeyFromObject(app), app)).To(Succeed())

	left := s.ok(t, "unregister", "prod-eu", "--context", "member", "--hub-context", "hub")
	g.Expect(left.out).To(And(ContainSubstring("customresourcedefinition/webapps.apps.plimsoll.dev stays"), ContainSubstring("plimsoll webapps uninstall")))

	g.Expect(s.member.Client().Delete(t.Context(), app)).To(Succeed())
	s.ok(t, "webapps", "uninstall", "prod-eu", "--context", "member")
	definition := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}}
	g.Eventually(func() bool {
		return apierrors.IsNotFound(s.member.Client().Get(t.Context(), client.ObjectKey{Name: "webapps.apps.plimsoll.dev"}, definition))
	}, memberPatience).Should(BeTrue(), "the definition is still there")
	// What comes next registers the member again, which a namespace that is being deleted would refuse.
	g.Eventually(func() []string { return traces(t, s.member) }, memberPatience).ShouldNot(ContainElement("Namespace /" + fleet.Namespace))
}
