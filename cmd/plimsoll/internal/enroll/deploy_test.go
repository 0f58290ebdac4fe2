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
	"namespaces": {"namespace.yaml", `# Holds nothing but the hub's account. It is enabled so that the hub can see, by the dry run of a pod here, that this cluster
# reaches its webhook.`},
	"serviceaccounts": {"account.yaml", "# Who the hub is in this cluster."},
	"clusterroles": {"role.yaml", `# What the hub may do in this cluster: read workloads, their pods and nodes, label pods, evict them (never delete), and keep the
# one webhook configuration current that is beside this.`},
	"clusterrolebindings": {"binding.yaml", "# Gives the account its role."},
	"mutatingwebhookconfigurations": {"webhook.yaml", `# Empty: the hub fills it in and keeps it current, and can neither make nor delete one. Delete it to have pods of this cluster
# made without asking the hub.`},
	policyResource: {"policies.yaml", `# What the hub's account may write in this cluster, beyond what its role can say. Kubernetes 1.30 and later know these; leave both
# files out of the kustomization for a cluster that is older.`},
	policyBindingResource: {"policy-bindings.yaml", "# Has the policies deny what they do not allow."},
	"roles": {"probe-role.yaml", `# Pause pods, in this namespace only, that find out whether there is spot capacity again; its own token, which the hub
# renews; and the Lease beside this.`},
	"leases":          {"identity.yaml", `# By what the hub writes here through one registration, and reads through another, it knows whether both lead to this cluster.`},
	"rolebindings":    {"probe-binding.yaml", "# Gives the account these roles."},
	"priorityclasses": {"probe-priority.yaml", "# Probes give way to every other pod."},
	"secrets":         {"token.yaml", "# Kubernetes fills it with a token of the account, for the kubeconfig in the registration Secret."},
}

// webAppFiles are those of its folder webapps.
var webAppFiles = map[string]folderFile{
	"customresourcedefinitions": {"definition.yaml", `# WebApps, without a converter between their versions: only v1 is served until the hub sets itself as one, and it then keeps
# the definition current. So GitOps makes it and leaves it alone, and never deletes it: all WebApps would go with it.`},
	"clusterroles": {"role.yaml", `# What the hub may do about WebApps in this cluster: keep what they consist of, and wait for the ConfigMaps that they name, of
# which it keeps names and versions and never a value. Secrets are not among it: allow them by a Role in the namespaces of WebApps
# that name some, as plimsoll webapps install --secrets does.`},
	"clusterrolebindings":             {"binding.yaml", "# Gives the hub's account that role."},
	"validatingwebhookconfigurations": {"webhook.yaml", `# Empty: the hub fills it in and keeps it current. Delete it to have WebApps stored without asking for the hub's policy.`},
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
