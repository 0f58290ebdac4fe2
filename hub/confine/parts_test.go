package confine_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plimsoll-dev/plimsoll/hub/confine"
	"github.com/plimsoll-dev/plimsoll/reconcile/module"
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
		Title: "Shops", Group: "example.com", Kind: "Shop", Plural: "shops",
		Parts: []schema.GroupResource{{Group: "apps", Resource: "deployments"}, {Resource: "configmaps"}},
	}
	bare := confine.Account{Namespace: "plimsoll", Name: "hub", Webhook: "plimsoll"}
	with := bare
	with.Resources = []module.Resource{shops}

	if text := shown(t, bare, "kinds"); strings.Contains(text, `\"configmaps\" && request.?subResource.orValue(\"\") == \"\" && request.operation in [\"CREATE\", \"UPDATE\", \"DELETE\"]`) {
		t.Errorf("without a module: %s", text)
	}
	for suffix, wants := range map[string][]string{
		"kinds":    {`the parts of Shops and its own token`, `request.requestResource.resource == \"deployments\"`, `request.requestResource.resource == \"configmaps\"`},
		"webhooks": {`about pods that are created, and about Shops`},
		"shops": {
			`r.kind == \"Shop\" && r.apiVersion.startsWith(\"example.com/\")`, `what a Shop of the same name controls`,
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

// TestEveryResourceIsJudged holds the policy for kinds to what the others say: of a resource that it leaves out another policy lists the
// grants, for the same operations and without a condition beside the user.
func TestEveryResourceIsJudged(t *testing.T) {
	shops := module.Resource{
		Title: "Shops", Group: "example.com", Kind: "Shop", Plural: "shops",
		Parts: []schema.GroupResource{{Group: "apps", Resource: "deployments"}, {Resource: "configmaps"}},
	}
	all := confine.Policies(confine.Account{Namespace: "plimsoll", Name: "hub", Webhook: "plimsoll", Resources: []module.Resource{shops}})
	left := all[0].Policy.Spec.MatchConstraints.ExcludeResourceRules
	if all[0].Policy.Name != "hub-kinds" || len(left) != 5 {
		t.Fatalf("policy %s leaves out %+v", all[0].Policy.Name, left)
	}
	for i := range left {
		judged := false
		for _, made := range all[1:] {
			spec := &made.Policy.Spec
			for at := range spec.MatchConstraints.ResourceRules {
				judged = judged || reflect.DeepEqual(spec.MatchConstraints.ResourceRules[at], left[i]) && len(spec.MatchConditions) == 1 &&
					strings.HasPrefix(spec.Validations[0].Expression, "(request.requestResource.group == ") &&
					strings.Contains(spec.Validations[0].Expression, "request.requestResource.resource == \""+left[i].Resources[0]+"\"")
			}
		}
		if !judged {
			t.Errorf("no policy judges %+v, which the policy for kinds leaves out", left[i].Rule)
		}
	}
}

func TestOnlyResourcesThatNobodyJudgesAnywayAreLeftOutByGroup(t *testing.T) {
	a := confine.Account{Namespace: "plimsoll", Name: "hub", Webhook: "plimsoll",
		Kinds: []schema.GroupResource{{Group: "example.com", Resource: "carts"}, {Group: "gateway.k8s.io", Resource: "routes"}, {Group: "batch", Resource: "jobs"}}}
	text := shown(t, a, "kinds")
	if !strings.Contains(text, `{"operations":["CREATE","UPDATE","DELETE","CONNECT"],"apiGroups":["example.com"],"apiVersions":["*"],"resources":["*/*"],"scope":"*"}`) {
		t.Errorf("objects of example.com are copied to be let through: %s", text)
	}
	for _, group := range []string{"gateway.k8s.io", "batch"} {
		if strings.Contains(text, `"apiGroups":["`+group+`"]`) {
			t.Errorf("the policy leaves Kubernetes' own group %s out: %s", group, text)
		}
	}
}
