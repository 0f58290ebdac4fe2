package confine_test

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plimsoll-dev/plimsoll/hub/confine"
	"github.com/plimsoll-dev/plimsoll/reconcile/module"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp"
	v1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
)

// shown is what a policy of an account says, by its suffix; "": there is none.
func shown(t *testing.T, a confine.Account, suffix string) string {
	t.Helper()
	for _, made := range confine.Policies(a) {
		if made.Policy.Name == a.Name+"-"+suffix {
			text, err := json.Marshal(made.Policy.Spec)
			if err != nil {
				t.Fatal(err)
			}
			return strings.ReplaceAll(string(text), `\u0026`, "&")
		}
	}
	return ""
}

func TestWhatAnAccountMayWriteFollowsFromWhatModulesDeclare(t *testing.T) {
	shops := module.Resource{
		Title: "Shops", Group: "example.com", Kind: "Shop", Plural: "shops", Versions: []string{"v2", "v1"},
		Parts: []schema.GroupResource{{Group: "apps", Resource: "deployments"}, {Resource: "configmaps"}},
	}
	bare := confine.Account{Namespace: "plimsoll", Name: "hub", Webhook: "plimsoll"}
	with := bare
	with.Resources = []module.Resource{shops}

	if text := shown(t, bare, "kinds"); strings.Contains(text, `\"configmaps\" && request.?subResource.orValue(\"\") == \"\" && request.operation in [\"CREATE\", \"UPDATE\", \"DELETE\"]`) {
		t.Errorf("without a module: %s", text)
	}
	for suffix, wants := range map[string][]string{
		"kinds":    {`the parts of Shops and its own token`, `request.resource.resource == \"deployments\"`, `request.resource.resource == \"configmaps\"`},
		"webhooks": {`about pods that are created, and about Shops`},
		"shops": {
			`r.kind == \"Shop\" && r.apiVersion == \"example.com/v2\"`, `what a Shop of the same name controls`,
			`reach nothing of their node`, `serviceAccountName.orValue(\"default\") == \"default\"`,
		},
	} {
		text := shown(t, with, suffix)
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("policy %s lacks %s: %s", suffix, want, text)
			}
		}
	}
	if text := shown(t, with, "shops"); strings.Contains(text, "externalIPs") {
		t.Errorf("a rule about Services, which Shops have none of: %s", text)
	}
	carts := shops
	carts.Title, carts.Kind, carts.Plural = "Carts", "Cart", "carts"
	with.Resources = append(with.Resources, carts)
	if text := shown(t, with, "shops"); !strings.Contains(text, `r.kind == \"Cart\"`) {
		t.Errorf("both kinds have Deployments, and one policy must not refuse what the other one lets through: %s", text)
	}
}

// For each of them an API server copies the request's object several times: a thousand objects of a kind have a thousand accounts, and a
// thousand Deployments.
func TestPartsAreComparedWithTheAccountsAndDeploymentsOfOthersOnly(t *testing.T) {
	a := confine.Account{Namespace: "plimsoll", Name: "hub", Webhook: "plimsoll", Resources: []module.Resource{webapp.Resource(&webapp.Policy{})}}
	looked := map[string]*metav1.LabelSelector{}
	for _, made := range confine.Policies(a) {
		if each := made.Binding.Spec.ParamRef; each != nil {
			looked[made.Policy.Spec.ParamKind.Kind] = each.Selector
		}
	}
	wanted := webapp.Desire(&v1.WebApp{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}, policy.Keys{}, false)
	own := map[string]map[string]string{"ServiceAccount": wanted.Account.Labels, "Deployment": wanted.Deployment.Labels}
	if len(looked) != len(own) {
		t.Fatalf("policies with parameters: %v, want those of accounts and Deployments", looked)
	}
	for kind, labelled := range own {
		selector, err := metav1.LabelSelectorAsSelector(looked[kind])
		if err != nil {
			t.Fatal(err)
		}
		if selector.Matches(labels.Set(labelled)) {
			t.Errorf("%s selects the %s of a WebApp: %v", selector, kind, labelled)
		}
		if !selector.Matches(labels.Set{"app.kubernetes.io/managed-by": "plimsoll"}) {
			t.Errorf("%s does not select the %s of somebody else", selector, kind)
		}
	}
}

func TestNoPolicyNamesAKindThatNobodyDeclares(t *testing.T) {
	for _, made := range confine.Policies(confine.Account{Namespace: "plimsoll", Name: "hub", Webhook: "plimsoll"}) {
		text, err := json.Marshal(made)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(strings.ToLower(string(text)), "webapp") {
			t.Errorf("%s: %s", made.Policy.Name, text)
		}
	}
}
