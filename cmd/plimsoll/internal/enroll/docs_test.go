package enroll

import (
	"os"
	"strings"
	"testing"
)

// wordsFor are how docs/cli.md calls the resources that register creates.
var wordsFor = map[string]string{
	"namespaces": "namespace `", "serviceaccounts": "service account `", policyResource: "ValidatingAdmissionPolicies `", policyBindingResource: "ValidatingAdmissionPolicies `",
	"clusterroles": "cluster role and binding", "clusterrolebindings": "cluster role and binding", "roles": "roles and bindings", "rolebindings": "roles and bindings",
	"priorityclasses": "priority class", "mutatingwebhookconfigurations": "`MutatingWebhookConfiguration`", "leases": "Lease `",
}

// The list of docs/cli.md is complete: somebody who cleans up a member by hand finds every object there.
func TestThePageListsEveryKindOfObjectThatRegisterCreates(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "`register` creates these objects")
	table, _, there := strings.Cut(rest, "\n\n- ")
	if !there {
		t.Fatal("docs/cli.md has no list of what register creates")
	}
	objects, err := memberObjects(Registration{Name: "prod-eu", Namespace: RegistrationNamespace, MemberNamespace: DefaultNamespace}, false)
	if err != nil || len(objects) < 10 {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	for _, o := range objects {
		if word := wordsFor[o.resource.Resource]; word == "" || !strings.Contains(table, word) {
			t.Errorf("docs/cli.md does not list %s (as %q)", o, word)
		}
	}
}
