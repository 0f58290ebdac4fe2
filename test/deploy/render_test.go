package deploy

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-dev/plimsoll/hub"
	"github.com/plimsoll-dev/plimsoll/hub/config"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

var update = flag.Bool("update", false, "rewrite the kustomize bases and the golden files")

func render(t *testing.T, values string) Objects {
	t.Helper()
	var parsed Values
	if err := yaml.Unmarshal([]byte(values), &parsed); err != nil {
		t.Fatal(err)
	}
	objects, err := Chart(parsed)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func TestAWrongValueIsRefusedWithTheNameOfItsKey(t *testing.T) {
	for values, want := range map[string][]string{
		"replica: 3":                                     {"replica"},
		"replicas: 0":                                    {"/replicas"},
		"replicas: two":                                  {"/replicas"},
		"image: {repositry: x}":                          {"/image", "repositry"},
		"image: {digest: latest}":                        {"/image/digest"},
		"config: {spot: {maxMove: 3}}":                   {"/config/spot", "maxMove"},
		"config: {spot: {moveCooldown: 10}}":             {"/config/spot/moveCooldown"},
		"config: {spot: {moveCooldown: soon}}":           {"/config/spot/moveCooldown"},
		"config: {controller: {workers: many}}":          {"/config/controller/workers"},
		"config: {webhook: {port: 8443}}":                {"/config/webhook", "port"},
		"config: {peer: {address: \":1\"}}":              {"/config", "peer"},
		"config: {leaderElection: {enabled: false}}":     {"/config/leaderElection", "enabled"},
		"webhook: {certificate: {issuerRef: {name: x}}}": {"/webhook/certificate/secretName"},
		"webhook: {service: {type: None}}":               {"/webhook/service/type"},
		"networkPolicy: {apiFrom: [{namespace: x}]}":     {"/networkPolicy/apiFrom/0", "namespace"},
		"podDisruptionBudget: {maxUnavailable: most}":    {"/podDisruptionBudget/maxUnavailable"},
		"networkPolicy: {egress: {enabled: true}}":       {"/networkPolicy/egress/to"}, // an empty list would be anybody
		"networkPolicy: {egress: {enabled: true, to: [{podSelector: {}}], dnsTo: []}}": {"/networkPolicy/egress/dnsTo"},
		"registrations: {registrars: [{name: x}]}":                                     {"/registrations/registrars/0", "kind"},
		"image: {tag: latest}":                        {"/image/tag"},
		"imagePullSecrets: [registry]":                {"/imagePullSecrets/0"},
		"webhook: {tlsRoute: {enabled: true}}":        {"/webhook/tlsRoute/parentRefs"},
		"api: {tlsRoute: {enabled: true}}":            {"/api/tlsRoute/parentRefs"},
		"gateway: {enabled: true}":                    {"/gateway/className"},
		"api: {ingress: {enabled: true}}":             {"/api/ingress/host"},
		"readinessProbe: {periods: 3}":                {"/readinessProbe", "periods"},
		"users: {viewers: [{kind: Person, name: x}]}": {"/users/viewers/0/kind"},
		"registrations: {members: [{name: prod_eu, server: \"https://a\"}], secretStoreRef: {kind: SecretStore, name: v}}": {"/registrations/members/0/name"},
		"registrations: {members: [{name: prod-eu, server: \"http://a\"}], secretStoreRef: {kind: SecretStore, name: v}}":  {"/registrations/members/0/server"},
		"registrations: {members: [{name: prod-eu, server: \"https://a\"}]}":                                               {"/registrations/secretStoreRef/name"},
	} {
		var parsed Values
		if err := yaml.Unmarshal([]byte(values), &parsed); err != nil {
			t.Fatal(err)
		}
		_, err := Chart(parsed)
		for _, part := range want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, want %q in it", values, err, part)
			}
		}
	}
}

func golden(t *testing.T, path, text string) {
	t.Helper()
	text = strings.TrimRight(text, "\n") + "\n"
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(committed), text); diff != "" {
		t.Errorf("%s is old: make manifests (-committed +made)\n%s", path, diff)
	}
}

func TestTheChartsConfigurationIsOneThatTheHubTakes(t *testing.T) {
	for name, values := range map[string]string{
		"nothing":      "",
		"cert-manager": byCertManager,
		"much": `
config:
  webhook: {url: https://plimsoll.example.com, dnsNames: [a.example.com]}
  controller: {resyncPeriod: 1m, workers: 7}
  clusters: {allowedNetworks: [10.0.0.0/8], qps: 12.5}
  spot:
    defaults: {spotPercentage: 50, minOnDemand: 1}
    maxMoves: 20%
    tolerations: [{key: example.com/spot, operator: Exists, effect: NoSchedule}]
  namespaceSelector: {matchLabels: {team: shop}}
  log: {level: debug}
api: {certificate: {secretName: api-certificate}, clientCA: {secretName: api-clients}}
webhook: {clientCA: {secretName: api-servers}}
registrations: {namespace: fleet-members}
`,
	} {
		t.Run(name, func(t *testing.T) {
			config := hubConfig(t, render(t, values))
			if name == "much" && (config.Controller.Workers != 7 || config.Webhook.URL != "https://plimsoll.example.com" || config.API.CertDir != "/etc/plimsoll/api" ||
				config.Webhook.ClientCA != "/etc/plimsoll/webhook-clients/ca.crt" || config.API.ClientCA != "/etc/plimsoll/api-clients/ca.crt") {
				t.Errorf("read back: %+v", config)
			}
			if name == "cert-manager" && config.Webhook.CertDir != "/etc/plimsoll/webhook" {
				t.Errorf("read back: %+v", config.Webhook)
			}
		})
	}
}

// hubConfig is what the hub reads of what was rendered, in the environment that its pod would have.
func hubConfig(t *testing.T, objects Objects) config.Config {
	t.Helper()
	config, err := config.Load(writeConfig(t, objects), podEnvironment)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

var podEnvironment = []string{"PLIMSOLL_HUB_REGISTRATIONNAMESPACE=" + fleet.Registrations, "POD_NAMESPACE=" + Namespace, "POD_NAME=plimsoll-hub-1", "POD_IP=127.0.0.1"}

// writeConfig puts the rendered configuration where a process can read it.
func writeConfig(t *testing.T, objects Objects) string {
	t.Helper()
	data := objects["ConfigMap "+Namespace+"/plimsoll-config"].Object["data"].(map[string]any)
	return writeText(t, data["config.yaml"].(string))
}

func writeText(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheNotesSayWhatToDoNext(t *testing.T) {
	for values, want := range map[string]bool{"": true, "config: {webhook: {url: \"https://plimsoll.example.com\"}}": false} {
		var parsed Values
		if err := yaml.Unmarshal([]byte(values), &parsed); err != nil {
			t.Fatal(err)
		}
		notes, err := RenderNotes(parsed)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(notes, "config.webhook.url is not set") != want {
			t.Errorf("%s: whether the webhook has an address that members reach:\n%s", values, notes)
		}
		for _, part := range []string{"kubectl -n " + Namespace + " rollout status", "plimsoll register", "plimsoll clusters", "plimsoll-viewer"} {
			if !strings.Contains(notes, part) {
				t.Errorf("%q is not in the notes:\n%s", part, notes)
			}
		}
	}
}

func TestACertificateIsForEveryNameUnderWhichTheHubIsCalled(t *testing.T) {
	names := []any{"plimsoll-webhook.plimsoll-system.svc", "plimsoll-api.plimsoll-system.svc.cluster.local"}
	for config, want := range map[string]struct{ names, addresses []any }{
		`{}`:                        {},
		`{url: "https://10.0.0.7"}`: {addresses: []any{"10.0.0.7"}},
		`{url: "https://hooks.example.com:8443/x", dnsNames: [other.example.com]}`: {names: []any{"hooks.example.com", "other.example.com"}},
		`{url: "https://[fd00::7]:8443", ips: [10.0.0.8, "fd00::7"]}`:              {addresses: []any{"fd00::7", "10.0.0.8"}},
	} {
		certificate := render(t, byCertManager+"\nconfig: {webhook: "+config+"}")["Certificate "+Namespace+"/plimsoll-webhook"]
		if certificate == nil {
			t.Fatalf("%s: no Certificate", config)
		}
		spec := certificate.Object["spec"].(map[string]any)
		for _, name := range append(want.names, names...) {
			if !slices.Contains(spec["dnsNames"].([]any), name) {
				t.Errorf("%s: %s is not among %v", config, name, spec["dnsNames"])
			}
		}
		if got, _ := spec["ipAddresses"].([]any); !slices.Equal(got, want.addresses) {
			t.Errorf("%s: the addresses are %v, not %v", config, spec["ipAddresses"], want.addresses)
		}
	}
}

func TestPrometheusShowsATokenAndChecksTheCertificateUnlessMetricsAreOpen(t *testing.T) {
	endpoint := func(values string) map[string]any {
		monitor := render(t, values)["ServiceMonitor "+Namespace+"/plimsoll-hub"]
		return monitor.Object["spec"].(map[string]any)["endpoints"].([]any)[0].(map[string]any)
	}
	guarded := endpoint(monitored)
	tls := guarded["tlsConfig"].(map[string]any)
	if guarded["scheme"] != "https" || guarded["bearerTokenFile"] == nil || tls["serverName"] != "plimsoll-metrics."+Namespace+".svc" || tls["insecureSkipVerify"] != nil {
		t.Errorf("scraped by %v", guarded)
	}
	if diff := cmp.Diff(map[string]any{"configMap": map[string]any{"name": hub.APICAConfigMap, "key": hub.MetricsCAKey}}, tls["ca"]); diff != "" {
		t.Error(diff)
	}
	open := endpoint("metrics: {unauthenticated: true, serviceMonitor: {enabled: true}}")
	if open["scheme"] != nil || open["bearerTokenFile"] != nil {
		t.Errorf("metrics in plain text are scraped by %v", open)
	}
	reader := render(t, "")["ClusterRole plimsoll-metrics-reader"]
	if reader == nil {
		t.Fatal("there is no role for scrapers")
	}
	rules, _, err := unstructured.NestedSlice(reader.Object, "rules")
	want := []any{map[string]any{"nonResourceURLs": []any{"/metrics"}, "verbs": []any{"get"}}}
	if diff := cmp.Diff(want, rules); diff != "" || err != nil {
		t.Error(diff, err)
	}
}
