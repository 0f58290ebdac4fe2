package enroll

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plimsoll-dev/plimsoll/reconcile/webapp"
)

func webApps() Kind {
	return Kind{Resource: webapp.Resource(webapp.Policy{}), Rights: webapp.Rights(), SecretRights: webapp.SecretRights()}
}

func TestInstallIsPinned(t *testing.T) {
	text, err := RenderInstall(Installed{Kind: webApps(), Namespace: DefaultNamespace})
	if err != nil {
		t.Fatal(err)
	}
	definition, rest, _ := strings.Cut(strings.TrimPrefix(string(text), "---\n"), "---\n")
	if !strings.Contains(definition, "name: webapps.apps.plimsoll.dev") || strings.Contains(definition, "strategy: Webhook") {
		t.Error("the definition comes first, and without a hub it converts nothing")
	}
	golden(t, "install.golden.yaml", rest)
}

func TestTheHubReadsSecretsForWebAppsWhereItWasAllowedTo(t *testing.T) {
	for _, w := range []Installed{{}, {Secrets: []string{"shop", "cart"}}, {Secrets: []string{AllNamespaces}}} {
		w.Kind, w.Namespace = webApps(), DefaultNamespace
		objects, err := w.objects(nil)
		if err != nil {
			t.Fatal(err)
		}
		var allowed []string
		for _, o := range objects {
			rules, _, _ := unstructured.NestedSlice(o.body.Object, "rules")
			for _, rule := range rules {
				text := fmt.Sprint(rule)
				if strings.Contains(text, "*") {
					t.Errorf("a wildcard: %s", text)
				}
				if !strings.Contains(text, "[secrets]") {
					continue
				}
				if !strings.Contains(text, "verbs:[get list watch]") {
					t.Errorf("%s may do more than read Secrets: %s", o, text)
				}
				allowed = append(allowed, cmp.Or(o.body.GetNamespace(), AllNamespaces))
			}
		}
		if !slices.Equal(allowed, w.Secrets) {
			t.Errorf("Secrets of %v: the roles are for %v", w.Secrets, allowed)
		}
	}
}
