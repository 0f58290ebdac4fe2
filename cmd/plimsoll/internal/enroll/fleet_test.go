package enroll

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/placing"
	"github.com/plimsoll-dev/plimsoll/reconcile/module"
)

func TestTheRightsForTheFleetAreWhatFleetPlacementNeeds(t *testing.T) {
	r := Registration{Fleet: true, Kinds: []Kind{webApps()}, WorkloadResources: []string{"rollouts.argoproj.io"}}
	rules := r.fleetRules()
	needed := placing.Access([]module.Resource{webApps().Resource})
	granted := 0
	for _, rule := range rules {
		granted += len(rule.Resources)
	}
	for _, access := range needed {
		resource := access.Resource
		if access.Subresource != "" {
			resource += "/" + access.Subresource
		}
		for _, verb := range access.Verbs {
			if !grant(rules, access.Group, resource, access.Name, verb) {
				t.Errorf("%s of %s is not granted", verb, resource)
			}
		}
	}
	if !grant(rules, "argoproj.io", "rollouts/scale", "", "update") {
		t.Error("further workloads cannot be scaled")
	}
	if want := len(needed) + 1; granted != want {
		t.Errorf("%d resources are granted, and %d needed", granted, want)
	}
	if rules := (Registration{}).fleetRules(); rules != nil {
		t.Errorf("nobody asked for %v", rules)
	}
}

func TestTheFolderForTheFleetGrantsWhatRegisterGrants(t *testing.T) {
	folder := filepath.Join(memberFolder, "fleet")
	read := func(name string, into any) {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(text, into); err != nil {
			t.Fatal(err)
		}
	}
	var role rbacv1.ClusterRole
	var binding rbacv1.ClusterRoleBinding
	read("role.yaml", &role)
	read("binding.yaml", &binding)
	if diff := cmp.Diff(fleetRules([]Kind{webApps()}), role.Rules); diff != "" {
		t.Error(diff)
	}
	want := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: DefaultNamespace, Name: Account}}
	if diff := cmp.Diff(want, binding.Subjects); diff != "" || binding.RoleRef.Name != role.Name {
		t.Error(diff, binding.RoleRef)
	}
}
