package deploy

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
	"github.com/plimsoll-dev/plimsoll/hub/config"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
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

func TestARegistrationByExternalSecretsIsOneThatTheHubTakes(t *testing.T) {
	r := newFleetRepository(t)
	object := r.objects("members/external-secret.yaml.example")["ExternalSecret "+fleet.Registrations+"/prod-eu"]
	if object == nil {
		t.Fatal("the example is not there")
	}
	if text(t, object, "spec", "target", "template", "metadata", "labels", clusters.MemberLabel) != "true" {
		t.Error("the Secret is no registration")
	}
	values := map[string]any{}
	entries, _, _ := unstructured.NestedSlice(object.Object, "spec", "data")
	for _, entry := range entries {
		values[entry.(map[string]any)["secretKey"].(string)] = "a-token"
	}
	filledIn := filled(t, text(t, object, "spec", "target", "template", "data", clusters.KubeconfigKey), values)
	if !strings.Contains(filledIn, "a-token") {
		t.Errorf("the token is not in it:\n%s", filledIn)
	}
	const placeholder = "LS0t..."
	filledIn = strings.ReplaceAll(filledIn, placeholder, base64.StdEncoding.EncodeToString(authority(t)))
	if _, err := kubeconfig.Vet("prod-eu", []byte(filledIn), kubeconfig.Rules{}); err != nil {
		t.Errorf("%v:\n%s", err, filledIn)
	}
}

// Of forty entries in one list there are forty registrations that the hub takes.
func TestMembersAreOneListOfTheChart(t *testing.T) {
	var members []any
	for i := range 40 {
		name := fmt.Sprintf("member-%d", i)
		members = append(members, map[string]any{"name": name, "server": "https://" + name + ".example.com:6443", "caData": base64.StdEncoding.EncodeToString(authority(t))})
	}
	members[0].(map[string]any)["namespaces"] = []any{"shop", "cart"}
	objects, err := Chart(Values{"registrations": map[string]any{"members": members, "secretStoreRef": map[string]any{"name": "vault"}}})
	if err != nil {
		t.Fatal(err)
	}
	made := objects.Kind("ExternalSecret")
	if len(made) != len(members) {
		t.Fatalf("%d of %d members", len(made), len(members))
	}
	for key, object := range made {
		name := object.GetName()
		filledIn := filled(t, text(t, object, "spec", "target", "template", "data", clusters.KubeconfigKey), map[string]any{"token": "a-token"})
		if _, err := kubeconfig.Vet(name, []byte(filledIn), kubeconfig.Rules{}); err != nil || !strings.Contains(filledIn, "a-token") || !strings.Contains(filledIn, name+".example.com") {
			t.Errorf("%s: %v:\n%s", key, err, filledIn)
		}
		if text(t, object, "spec", "target", "template", "metadata", "labels", clusters.MemberLabel) != "true" || object.GetNamespace() != fleet.Registrations ||
			text(t, object, "spec", "target", "template", "type") != "plimsoll.dev/kubeconfig" ||
			text(t, object, "spec", "target", "template", "metadata", "annotations", "plimsoll.dev/token-renewal") != "external" {
			t.Errorf("%s is no registration that Git keeps: %v", key, object.Object)
		}
	}
	first := made["ExternalSecret "+fleet.Registrations+"/member-0"]
	if got := text(t, first, "spec", "target", "template", "metadata", "annotations", "plimsoll.dev/namespaces"); got != "shop,cart" {
		t.Errorf("the tenant has namespaces %q", got)
	}
}

// What the chart makes for Flux of the list is what the fleet repository has, which test/gitops runs, but that a cluster's workloads stay
// when its entry goes.
func TestTheListOfTheChartIsWhatFluxHasInTheFleetRepository(t *testing.T) {
	var members []any
	for name, environment := range map[string]any{"prod-eu": "production", "prod-us": "production", "staging": "staging"} {
		members = append(members, map[string]any{"name": name, "server": "https://" + name, "environment": environment})
	}
	members = append(members, map[string]any{"name": "without", "server": "https://without"})
	objects, err := Chart(Values{"flux": map[string]any{"enabled": true},
		"registrations": map[string]any{"members": members, "secretStoreRef": map[string]any{"name": "vault"}}})
	if err != nil {
		t.Fatal(err)
	}
	specs := func(objects Objects, orphaned bool) map[string]any {
		found := map[string]any{}
		for key, object := range objects.Kind("Kustomization") {
			spec := object.Object["spec"].(map[string]any)
			if (spec["deletionPolicy"] == "Orphan") != orphaned {
				t.Errorf("%s has the deletionPolicy %v", key, spec["deletionPolicy"])
			}
			delete(spec, "deletionPolicy")
			found[key] = spec
		}
		return found
	}
	if diff := cmp.Diff(specs(newFleetRepository(t).objects("flux/members.yaml"), false), specs(objects, true)); diff != "" {
		t.Errorf("-repository +chart:\n%s", diff)
	}
}

// authority is the certificate of one.
func authority(t *testing.T) []byte {
	t.Helper()
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	made := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<32, 0), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(nil, made, made, key.Public(), key) // Ed25519 needs no randomness
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
