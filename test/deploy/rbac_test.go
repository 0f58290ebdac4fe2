package deploy

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// rolesOf are the rules of all roles among the objects, by the role's name among [Objects].
func rolesOf(t *testing.T, objects Objects) map[string][]rbacv1.PolicyRule {
	t.Helper()
	roles := map[string][]rbacv1.PolicyRule{}
	for key, object := range objects {
		if kind := object.GetKind(); kind != "Role" && kind != "ClusterRole" {
			continue
		}
		var role rbacv1.ClusterRole
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
			t.Fatal(err)
		}
		roles[key] = role.Rules
	}
	return roles
}

// Whoever changes a line of these files asks every platform team for another right.
func TestTheRightsOfTheHubArePinned(t *testing.T) {
	for name, objects := range rendered(t) {
		text, err := yaml.Marshal(rolesOf(t, objects))
		if err != nil {
			t.Fatal(err)
		}
		golden(t, filepath.Join("testdata", "rbac-"+name+".golden.yaml"), string(text))
	}
}

// rendered is everything that asks for rights.
func rendered(t *testing.T) map[string]Objects {
	t.Helper()
	return map[string]Objects{
		"hub": render(t, ""), "hub-fleet": render(t, overFleet), "member": member(t), "webapps": webApps(t), "member-fleet": memberFleet(t),
	}
}

// The kind comes with the key that has the hub keep it, and stays when the release goes.
func TestTheKindOfFleetPlacementsComesWithItsKey(t *testing.T) {
	if made := render(t, "").Kind("CustomResourceDefinition"); len(made) > 0 {
		t.Errorf("nobody asked for %v", made.Keys())
	}
	made := render(t, overFleet).Kind("CustomResourceDefinition")
	if len(made) != 1 {
		t.Fatal(made.Keys())
	}
	for key, object := range made {
		if object.GetName() != "fleetplacements.fleet.plimsoll.dev" || object.GetAnnotations()["helm.sh/resource-policy"] != "keep" {
			t.Errorf("%s: %v", key, object.GetAnnotations())
		}
	}
}

func member(t *testing.T) Objects {
	t.Helper()
	objects, err := Kustomization("member")
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func webApps(t *testing.T) Objects {
	t.Helper()
	objects, err := Kustomization("member", "webapps")
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func memberFleet(t *testing.T) Objects {
	t.Helper()
	objects, err := Kustomization("member", "fleet")
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// asked are rights that stand out and are needed, by role: the hub writes renewed tokens into registrations, and registrars make those.
// RBAC cannot select them by label, so their namespace holds nothing else.
var asked = map[string][]string{
	"Role " + fleet.Registrations + "/plimsoll-hub-registrations": {"update of any Secret"},
	"Role " + fleet.Registrations + "/plimsoll-registrar":         {"create of any Secret", "patch of any Secret", "delete of any Secret"},
}

func TestNoRoleIsWiderThanItMustBe(t *testing.T) {
	for name, objects := range rendered(t) {
		for role, rules := range rolesOf(t, objects) {
			for _, rule := range rules {
				for _, problem := range tooWide(role, rule) {
					if slices.Contains(asked[role], problem) {
						continue
					}
					t.Errorf("%s: %s: %s: %+v", name, role, problem, rule)
				}
			}
		}
	}
}

// escalating are verbs with which whoever has them can give themselves others.
var escalating = []string{"bind", "escalate", "impersonate"}

var reading = []string{"get", "list", "watch"}

// ownNamespace begins the names of roles in the hub's own namespace of a member, where nothing but its probes runs.
const ownNamespace = "Role " + Namespace + "/"

// tooWide says what is wrong with a rule of a role.
func tooWide(role string, rule rbacv1.PolicyRule) (problems []string) {
	everywhere := strings.HasPrefix(role, "ClusterRole ")
	for _, words := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs, rule.NonResourceURLs} {
		if slices.ContainsFunc(words, func(word string) bool { return strings.Contains(word, "*") }) {
			problems = append(problems, "a wildcard")
		}
	}
	for _, verb := range rule.Verbs {
		if slices.Contains(escalating, verb) {
			problems = append(problems, "the verb "+verb)
		}
		for _, resource := range rule.Resources {
			switch {
			case everywhere && resource == "secrets" && slices.Contains(reading, verb):
				problems = append(problems, "Secrets of the whole cluster")
			case everywhere && resource == "secrets":
				problems = append(problems, fmt.Sprintf("%s of Secrets of the whole cluster", verb))
			case resource == "secrets" && !slices.Contains(reading, verb) && len(rule.ResourceNames) == 0:
				problems = append(problems, fmt.Sprintf("%s of any Secret", verb))
			case resource == "pods" && !strings.HasPrefix(role, ownNamespace) && slices.Contains([]string{"delete", "deletecollection", "create", "update"}, verb):
				problems = append(problems, fmt.Sprintf("%s of pods, which are evicted, never deleted", verb))
			case resource == "pods/exec" || resource == "pods/attach":
				problems = append(problems, resource)
			case resource == "serviceaccounts/token" && !slices.Equal(rule.ResourceNames, []string{"plimsoll-hub"}): // its own it renews
				problems = append(problems, resource)
			case strings.HasSuffix(resource, "webhookconfigurations") && (slices.Contains([]string{"create", "delete"}, verb) || len(rule.ResourceNames) == 0):
				problems = append(problems, fmt.Sprintf("%s of any %s", verb, resource))
			}
		}
	}
	return problems
}

func TestThePodsOfAMemberAreEvictedAndNeverDeleted(t *testing.T) {
	var evicts bool
	for _, rules := range rolesOf(t, member(t)) {
		for _, rule := range rules {
			evicts = evicts || slices.Contains(rule.Resources, "pods/eviction") && slices.Equal(rule.Verbs, []string{"create"})
		}
	}
	if !evicts {
		t.Error("the hub may not evict")
	}
}
