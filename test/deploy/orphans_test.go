package deploy

import (
	"os/exec"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

const (
	upgradeHub = "helm upgrade plimsoll deploy/chart/plimsoll --kube-context hub --namespace plimsoll-system --reset-then-reuse-values --set "
	installHub = "helm install plimsoll deploy/chart/plimsoll --kube-context hub --namespace plimsoll-system --create-namespace --set replicas=1"
	elsewhere  = "fleet-members"
)

// externalSecrets serves the kind without its fields.
const externalSecrets = `kubectl --context hub apply -f - <<'EOF'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: externalsecrets.external-secrets.io}
spec:
  group: external-secrets.io
  scope: Namespaced
  names: {kind: ExternalSecret, listKind: ExternalSecretList, plural: externalsecrets, singular: externalsecret}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
EOF
kubectl --context hub wait --for=condition=Established --timeout=60s crd/externalsecrets.external-secrets.io
kubectl --context hub get externalsecrets --all-namespaces`

// Helm, with its own template engine and a real API server, fails an upgrade or a new installation after which the hub would not read a registration
// that it reads now, and lets every other one pass.
func TestAnUpgradeThatWouldLoseMembersIsRefused(t *testing.T) {
	d := newDesk(t)
	d.shell("install", installHub)
	d.shell("nobody is registered", upgradeHub+"registrations.namespace=plimsoll-members")
	d.shell("register", "plimsoll register prod-eu --context prod-eu --hub-context hub")

	// A new installation finds what the one before it has left.
	d.shell("uninstall", "helm uninstall plimsoll --kube-context hub --namespace plimsoll-system")
	d.refused(installHub+",registrations.namespace="+elsewhere, fleet.Registrations, elsewhere, "prod-eu", "set registrations.namespace="+fleet.Registrations)
	d.shell("install again", installHub)

	// From one namespace of registrations to another, and to the hub's own.
	d.refused(upgradeHub+"registrations.namespace="+elsewhere, fleet.Registrations, elsewhere, "prod-eu", "set registrations.namespace="+fleet.Registrations)
	d.refused(upgradeHub+"registrations.namespace="+Namespace, fleet.Registrations, Namespace, "prod-eu")
	// What is there under another name, or is no registration, is no replacement.
	d.create("hub", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: elsewhere}})
	d.create("hub", registrationOf(elsewhere, "prod-us", clusters.KubeconfigType))
	d.create("hub", registrationOf(elsewhere, "prod-eu", corev1.SecretTypeOpaque))
	d.refused(upgradeHub+"registrations.namespace="+elsewhere, fleet.Registrations, elsewhere, "prod-eu")
	var deployment appsv1.Deployment
	if d.get("hub", &deployment, Namespace, "plimsoll-hub"); registrationNamespace(&deployment) != fleet.Registrations {
		t.Errorf("after refusals the hub reads %s", registrationNamespace(&deployment))
	}
	d.shell("an upgrade about something else", upgradeHub+"replicas=2")
	d.shell("a kind of External Secrets", externalSecrets)
	d.shell("members that the upgrade itself registers", upgradeHub+"registrations.namespace="+elsewhere+
		",registrations.members[0].name=prod-eu,registrations.members[0].server=https://prod-eu:6443,registrations.secretStoreRef.name=vault --dry-run=server")

	// As the page says.
	d.shell("clean up", "kubectl --context hub -n "+elsewhere+" delete secret prod-us prod-eu")
	d.runSection("docs/upgrade.md", "### Helm refuses an upgrade that would lose members")
	if d.get("hub", &deployment, Namespace, "plimsoll-hub"); registrationNamespace(&deployment) != elsewhere {
		t.Errorf("after the move the hub reads %s", registrationNamespace(&deployment))
	}
	d.get("hub", &corev1.Secret{}, elsewhere, "prod-eu")
	d.expectGone("hub", &corev1.Secret{}, fleet.Registrations, "prod-eu")

	// A registration in the hub's namespace, of any type and with either label, where older versions kept it.
	old := registrationOf(Namespace, "old", corev1.SecretTypeOpaque)
	old.Labels = map[string]string{clusters.MulticlusterRuntimeLabel: "true"}
	d.create("hub", old)
	d.refused(upgradeHub+"replicas=1", Namespace, elsewhere, "old", "set registrations.inReleaseNamespace=true")
	d.shell("with both namespaces", upgradeHub+"registrations.inReleaseNamespace=true")
	d.refused(upgradeHub+"registrations.inReleaseNamespace=false", Namespace, elsewhere, "old")
	d.create("hub", registrationOf(elsewhere, "old", clusters.KubeconfigType))
	d.shell("once it is registered in the other", upgradeHub+"registrations.inReleaseNamespace=false")
}

// refused runs a command that must fail, with an error that says all of this.
func (d *desk) refused(command string, says ...string) {
	d.Helper()
	run := exec.CommandContext(timeout(d.T, patience), "bash", "-c", command)
	run.Dir, run.Env = root, d.environ
	said, err := run.CombinedOutput()
	if err == nil {
		d.Fatalf("it is not refused: %s\n%s", command, said)
	}
	for _, part := range append(says, "docs/upgrade.md") {
		if !strings.Contains(string(said), part) {
			d.Errorf("%s: %q is not in the error:\n%s", command, part, said)
		}
	}
}

func (d *desk) create(cluster string, object client.Object) {
	d.Helper()
	if err := d.clusters[cluster].Client().Create(d.Context(), object); err != nil {
		d.Fatal(err)
	}
}

// registrationOf is a Secret with the label of a registration.
func registrationOf(namespace, name string, kind corev1.SecretType) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{clusters.MemberLabel: "true"}},
		Type:       kind, Data: map[string][]byte{clusters.KubeconfigKey: []byte("{}")},
	}
}

// registrationNamespace is where a hub's Deployment says that registrations are.
func registrationNamespace(hub *appsv1.Deployment) string {
	for _, variable := range hub.Spec.Template.Spec.Containers[0].Env {
		if variable.Name == "PLIMSOLL_HUB_REGISTRATIONNAMESPACE" {
			return variable.Value
		}
	}
	return ""
}
