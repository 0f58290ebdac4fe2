package enroll

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// memberFolder is for those who bring objects into members by GitOps, in place of register and, for what is in webapps, of
// install.
var memberFolder = filepath.Join("..", "..", "..", "..", "deploy", "member")

// folderFile is a file by what it holds, and what it says first.
type folderFile struct{ name, says string }

// memberFiles are its files by the resource that they hold.
var memberFiles = map[string]folderFile{
	"namespaces": {"namespace.yaml", `# The namespace of the hub's account. It is enabled for placement, so that the hub can check with a dry run of a pod here that this
# cluster reaches its webhook.`},
	"serviceaccounts": {"account.yaml", "# The hub's account in this cluster."},
	"clusterroles": {"role.yaml", `# The hub's rights in this cluster: read workloads, their pods and nodes, label pods, evict them (never delete), and update the one
# webhook configuration of this folder.`},
	"clusterrolebindings": {"binding.yaml", "# Binds the role to the hub's account."},
	"mutatingwebhookconfigurations": {"webhook.yaml", `# Created empty: the hub updates it, and can neither create nor delete one. Without it, pods of this cluster are created without a
# call to the hub.`},
	policyResource: {"policies.yaml", `# Policies that restrict what the hub's account may write, where RBAC cannot. They need Kubernetes 1.30; for an older cluster, remove
# both files from the kustomization.`},
	policyBindingResource: {"policy-bindings.yaml", "# Bindings: requests that violate a policy are denied."},
	"roles": {"probe-role.yaml", `# Rights in this namespace: pause pods that probe for spot capacity, a token of the hub's own account, which it renews, and Lease
# plimsoll-identity.`},
	"leases":          {"identity.yaml", `# The hub writes it through one registration and reads it through another, to detect that both are for this cluster.`},
	"rolebindings":    {"probe-binding.yaml", "# Binds these roles to the hub's account."},
	"priorityclasses": {"probe-priority.yaml", "# All other pods preempt probes."},
	"secrets":         {"token.yaml", "# Kubernetes fills it with a token of the account, for the kubeconfig in the registration Secret."},
}

// webAppFiles are those of its folder webapps.
var webAppFiles = map[string]folderFile{
	"customresourcedefinitions": {"definition.yaml", `# The definition of WebApps, without a conversion webhook: only v1 is served until the hub sets itself as the webhook. From then on the hub
# updates the definition, so GitOps creates it and ignores changes. It never deletes it, because that deletes all WebApps.`},
	"clusterroles": {"role.yaml", `# The hub's rights for WebApps in this cluster: write the objects of WebApps, and read the ConfigMaps that they reference, of which it
# caches names and versions but no values. Secrets are not included: allow them by a Role in each namespace of WebApps that reference
# some, as plimsoll webapps install --secrets does.`},
	"clusterrolebindings":             {"binding.yaml", "# Binds that role to the hub's account."},
	"validatingwebhookconfigurations": {"webhook.yaml", `# Created empty: the hub updates it. Without it, WebApps are stored without a check by the hub.`},
}

// leftToTheHub are annotations by which Flux and Argo CD make an object that is not there, and leave one alone that is: the
// hub changes fields of the definition that they would change back.
var leftToTheHub = map[string]string{
	"kustomize.toolkit.fluxcd.io/ssa":   "IfNotPresent",
	"kustomize.toolkit.fluxcd.io/prune": "disabled",
	"argocd.argoproj.io/sync-options":   "Prune=false",
}

// The label that says who made an object is left out: what GitOps applies is used as it is by register, and left alone by unregister.
func TestTheFolderForMembersHoldsWhatRegisterMakes(t *testing.T) {
	objects, err := memberObjects(Registration{Namespace: RegistrationNamespace, MemberNamespace: DefaultNamespace, Kinds: []Kind{webApps()}}, true)
	if err != nil {
		t.Fatal(err)
	}
	holds(t, memberFolder, memberFiles, objects)
}

func TestTheFolderForWebAppsHoldsWhatInstallMakes(t *testing.T) {
	objects, err := Installed{Kind: webApps(), Namespace: DefaultNamespace}.objects(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if o.body.GetKind() != "CustomResourceDefinition" {
			continue
		}
		unstructured.RemoveNestedField(o.body.Object, "spec", "conversion") // the hub's to say
		annotations := o.body.GetAnnotations()
		maps.Copy(annotations, leftToTheHub)
		o.body.SetAnnotations(annotations)
	}
	holds(t, filepath.Join(memberFolder, "webapps"), webAppFiles, objects)
}

// holds checks that a folder has a file for each object, and no others, or writes them.
func holds(t *testing.T, folder string, files map[string]folderFile, objects []object) {
	t.Helper()
	texts := map[string]string{} // by resource
	for _, o := range objects {
		resource := o.resource.Resource
		if _, ok := files[resource]; !ok {
			t.Errorf("%s is missing in %s", o, folder)
			continue
		}
		labels := o.body.GetLabels()
		if delete(labels, managedByLabel); len(labels) == 0 {
			labels = nil
		}
		o.body.SetLabels(labels)
		if o.body.GetKind() == "Namespace" {
			delete(o.body.Object, "spec") // an empty one
		}
		text, err := yaml.Marshal(o.body.Object)
		if err != nil {
			t.Fatal(err)
		}
		if texts[resource] != "" {
			texts[resource] += "---\n"
		}
		texts[resource] += string(text)
	}
	for resource, file := range files {
		made, path := file.says+"\n"+texts[resource], filepath.Join(folder, file.name)
		if *update {
			if err := os.WriteFile(path, []byte(made), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		committed, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(committed), made); diff != "" {
			t.Errorf("%s is not what is made; run this test with -update (-committed +made)\n%s", path, diff)
		}
	}
}
