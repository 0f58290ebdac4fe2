package deploy

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

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
