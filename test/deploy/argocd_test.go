package deploy

import (
	"bytes"
	"slices"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// filledIn is what the hub, or Kubernetes, writes into objects of the repository, by folder. Argo CD must not take it away.
var filledIn = map[string]map[string][]any{
	"hub": {"Secret plimsoll-hub-ca": {"/data"}, "ConfigMap plimsoll-api-ca": {"/data"}},
	"in-member": {
		"MutatingWebhookConfiguration plimsoll":              {"/webhooks"},
		"ValidatingWebhookConfiguration plimsoll":            {"/webhooks"},
		"CustomResourceDefinition webapps.apps.plimsoll.dev": {"/metadata/annotations/apps.plimsoll.dev~1revision", "/spec/conversion", "/spec/versions"},
		"Secret plimsoll-hub-token":                          {"/data"},
	},
}

func TestArgoCDIsToldOfFoldersThatAreThereAndLeavesAloneWhatTheHubFillsIn(t *testing.T) {
	r := newFleetRepository(t)
	seen := map[string]bool{}
	for key, object := range r.objects("argocd/applications.yaml") {
		for _, environment := range environments {
			seen[r.application(key, object, map[string]any{
				"name": "prod-eu", "metadata": map[string]any{"labels": map[string]any{"environment": environment}},
			})] = true
		}
	}
	for _, folder := range []string{"hub", "members", "placements", "in-member", "apps/staging", "apps/production"} {
		if !seen[folder] {
			t.Errorf("nothing brings %s", folder)
		}
	}
}

// The ApplicationSets over a list bring into each of its members what those over labels bring, and differ in their generators only.
func TestArgoCDReadsTheMembersFromOneList(t *testing.T) {
	r := newFleetRepository(t)
	var list []map[string]any
	if err := yaml.Unmarshal([]byte(r.read("argocd/members.yaml")), &list); err != nil || len(list) < 3 {
		t.Fatalf("members: %v, %v", list, err)
	}
	byLabel := r.objects("argocd/applications.yaml")
	for key, object := range r.objects("argocd/by-list.yaml") {
		files, _, _ := unstructured.NestedSlice(object.Object["spec"].(map[string]any)["generators"].([]any)[0].(map[string]any), "git", "files")
		if want := []any{map[string]any{"path": "argocd/members.yaml"}}; !cmp.Equal(files, want) {
			t.Errorf("%s reads %v", key, files)
		}
		if kept, _, _ := unstructured.NestedBool(object.Object, "spec", "syncPolicy", "preserveResourcesOnDeletion"); !kept {
			t.Errorf("%s: an entry that is removed by mistake takes the workloads of its cluster along", key)
		}
		there := byLabel[key]
		if there == nil {
			t.Errorf("%s is not instead of one in applications.yaml", key)
			continue
		}
		names := map[string]bool{}
		for _, member := range list {
			folder := r.application(key, object, member)
			label := map[string]any{"name": member["name"], "metadata": map[string]any{"labels": map[string]any{"environment": member["environment"]}}}
			if want := r.application(key, there, label); folder != want {
				t.Errorf("%s brings %s into %s, not %s", key, folder, member["name"], want)
			}
			if destination := filled(t, text(t, object, "spec", "template", "spec", "destination", "name"), member); destination != member["name"] {
				t.Errorf("%s goes to %s", key, destination)
			}
			names[filled(t, text(t, object, "spec", "template", "metadata", "name"), member)] = true
		}
		if len(names) != len(list) {
			t.Errorf("%s makes %v of %d members", key, names, len(list))
		}
	}
}

// application checks an Application, or what an ApplicationSet makes of a member's values, and returns the folder that it brings: the
// objects whose fields are ignored are in it, and are those that the hub fills in.
func (r fleetRepository) application(key string, object *unstructured.Unstructured, values map[string]any) string {
	r.Helper()
	spec := object.Object["spec"].(map[string]any)
	if object.GetKind() == "ApplicationSet" {
		spec = spec["template"].(map[string]any)["spec"].(map[string]any)
	}
	source, _ := spec["source"].(map[string]any)
	folder := filled(r.T, source["path"].(string), values)
	objects := r.build(folder)
	ignored := map[string][]any{}
	differences, _ := spec["ignoreDifferences"].([]any)
	for _, one := range differences {
		difference := one.(map[string]any)
		name := difference["kind"].(string) + " " + difference["name"].(string)
		ignored[name] = difference["jsonPointers"].([]any)
		if !slices.ContainsFunc(objects.Keys(), func(key string) bool {
			return name == objects[key].GetKind()+" "+objects[key].GetName()
		}) {
			r.Errorf("%s: %s is not in %s", key, name, folder)
		}
	}
	if want := filledIn[folder]; len(want)+len(ignored) > 0 {
		if diff := cmp.Diff(want, ignored); diff != "" {
			r.Errorf("%s: -written by the hub +ignored:\n%s", key, diff)
		}
	}
	return folder
}

// filled fills in a template as ApplicationSets with goTemplate, and External Secrets, do.
func filled(t *testing.T, text string, values map[string]any) string {
	t.Helper()
	parsed, err := template.New("").Option("missingkey=error").Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, values); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
