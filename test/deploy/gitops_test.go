package deploy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/plimsoll-dev/plimsoll/hub/config"
)

// fleetRepository is the example put together as docs/gitops.md says; test/gitops runs it with the real Flux.
type fleetRepository struct {
	*testing.T
	dir string
}

func newFleetRepository(t *testing.T) fleetRepository {
	t.Helper()
	r := fleetRepository{t, t.TempDir()}
	for from, to := range map[string]string{"gitops": ".", "kustomize": "plimsoll/kustomize", "member": "plimsoll/member"} {
		if err := os.CopyFS(filepath.Join(r.dir, filepath.FromSlash(to)), os.DirFS(filepath.Join(root, "deploy", from))); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// build returns the objects of a folder.
func (r fleetRepository) build(folder string) Objects {
	r.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(r.dir, filepath.FromSlash(folder)))
	if err != nil {
		r.Fatalf("%s: %v", folder, err)
	}
	text, err := built.AsYaml()
	if err != nil {
		r.Fatal(err)
	}
	objects, err := Parse(string(text))
	if err != nil {
		r.Fatal(err)
	}
	return objects
}

func (r fleetRepository) read(file string) string {
	r.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, filepath.FromSlash(file)))
	if err != nil {
		r.Fatal(err)
	}
	return string(text)
}

// edit replaces parts of a file, old and new in turn; each must be in it.
func (r fleetRepository) edit(file string, pairs ...string) {
	r.Helper()
	text := r.read(file)
	for i := 0; i+1 < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			r.Fatalf("%s does not hold %q", file, pairs[i])
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	r.write(file, text)
}

func (r fleetRepository) write(file, text string) {
	r.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, filepath.FromSlash(file)), []byte(text), 0o600); err != nil {
		r.Fatal(err)
	}
}

// objects are those of a file that is no kustomization.
func (r fleetRepository) objects(file string) Objects {
	r.Helper()
	objects, err := Parse(r.read(file))
	if err != nil {
		r.Fatal(err)
	}
	return objects
}

func TestTheHubOfTheFleetRepositoryStartsWithItsConfiguration(t *testing.T) {
	r := newFleetRepository(t)
	// With all components: none of them has a configuration of its own, for it would stand in for this one.
	r.edit("hub/kustomization.yaml", "#   - ../plimsoll", "  - ../plimsoll")
	var read config.Config
	for _, object := range r.build("hub") {
		if object.GetKind() == "ConfigMap" && strings.HasPrefix(object.GetName(), "plimsoll-config-") {
			text, _, _ := unstructured.NestedString(object.Object, "data", "config.yaml")
			var err error
			if read, err = config.Load(writeText(t, text), podEnvironment); err != nil {
				t.Fatal(err)
			}
		}
	}
	if read.Webhook.URL != "https://plimsoll.example.com" || len(read.Clusters.AllowedNetworks) != 1 || !read.Fleet.Enabled {
		t.Errorf("%+v", read)
	}
}

func TestWhatGoesIntoAMemberIsWhatRegisterAndInstallMake(t *testing.T) {
	want := slices.Concat(member(t).Keys(), webApps(t).Keys(), memberFleet(t).Keys())
	slices.Sort(want)
	if diff := cmp.Diff(want, newFleetRepository(t).build("in-member").Keys()); diff != "" {
		t.Error(diff)
	}
}

// environments of the example, from the one where something is tried to the one that it is promoted to.
var environments = []string{"staging", "production"}

func TestAValueThatIsSetAtOneStageIsThereOnlyUntilItIsPromoted(t *testing.T) {
	r := newFleetRepository(t)
	before := map[string]Objects{}
	for _, environment := range environments {
		before[environment] = r.build("apps/" + environment)
	}
	r.edit("apps/staging/policy.yaml", `spot-percentage: "70"`, `spot-percentage: "30"`, "percentage: 50", "percentage: 20")
	says := func(environment string) (deployment string, webApp int64) {
		objects := r.build("apps/" + environment)
		webApp, _, err := unstructured.NestedInt64(objects["WebApp shop/account"].Object, "spec", "spot", "percentage")
		if err != nil {
			t.Fatal(err)
		}
		return objects["Deployment shop/web"].GetAnnotations()["plimsoll.dev/spot-percentage"], webApp
	}
	if deployment, webApp := says("staging"); deployment != "30" || webApp != 20 {
		t.Errorf("staging has %s and %d", deployment, webApp)
	}
	if diff := cmp.Diff(before["production"].Contents(), r.build("apps/production").Contents()); diff != "" {
		t.Errorf("what was changed in staging is in production:\n%s", diff)
	}
	r.write("apps/production/policy.yaml", r.read("apps/staging/policy.yaml"))
	if deployment, webApp := says("production"); deployment != "30" || webApp != 20 {
		t.Errorf("production has %s and %d after the promotion", deployment, webApp)
	}
}

// placed is the workload of the example that runs over the members of production together.
const placed = "shop/catalog"

func TestTheEnvironmentsDifferInNothingButTheirSizesAndWhatRunsOverTheFleet(t *testing.T) {
	r := newFleetRepository(t)
	built := map[string]map[string]map[string]any{}
	for _, environment := range environments {
		objects := r.build("apps/" + environment)
		for key, object := range objects {
			if replicas, found, _ := unstructured.NestedInt64(object.Object, "spec", "replicas"); found && replicas == 0 {
				t.Errorf("%s of %s has no replicas", key, environment)
			}
			unstructured.RemoveNestedField(object.Object, "spec", "replicas")
			if strings.HasSuffix(key, " "+placed) {
				delete(objects, key)
			}
		}
		built[environment] = objects.Contents()
	}
	if diff := cmp.Diff(built["staging"], built["production"]); diff != "" {
		t.Error(diff)
	}
}

func TestFluxIsToldOfFoldersThatAreThere(t *testing.T) {
	r := newFleetRepository(t)
	told := Objects{}
	for _, file := range []string{"flux/source.yaml", "flux/hub.yaml", "flux/members.yaml"} {
		for key, object := range r.objects(file) {
			told[key] = object
		}
	}
	for key, object := range told {
		if object.GetKind() != "Kustomization" {
			continue
		}
		r.build(text(t, object, "spec", "path"))
		source := text(t, object, "spec", "sourceRef", "kind") + " " + object.GetNamespace() + "/" + text(t, object, "spec", "sourceRef", "name")
		if told[source] == nil {
			t.Errorf("%s is built of %s, which nothing makes", key, source)
		}
		needs, _, _ := unstructured.NestedSlice(object.Object, "spec", "dependsOn")
		for _, need := range needs {
			if name := need.(map[string]any)["name"].(string); told["Kustomization "+object.GetNamespace()+"/"+name] == nil {
				t.Errorf("%s waits for %s, which nothing makes", key, name)
			}
		}
	}
}

func text(t *testing.T, object *unstructured.Unstructured, path ...string) string {
	t.Helper()
	value, found, err := unstructured.NestedString(object.Object, path...)
	if !found || err != nil {
		t.Fatalf("%s %s: %v: %v", object.GetKind(), object.GetName(), path, err)
	}
	return value
}
