package deploy

import (
	"flag"
	"os"
	"path"
	"path/filepath"
	"regexp"
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

var update = flag.Bool("update", false, "write the kustomize bases and the golden files anew")

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
		"registrations: {registrars: [{name: x}]}":       {"/registrations/registrars/0", "kind"},
		"image: {tag: latest}":                           {"/image/tag"},
		"imagePullSecrets: [registry]":                   {"/imagePullSecrets/0"},
		"webhook: {tlsRoute: {enabled: true}}":           {"/webhook/tlsRoute/parentRefs"},
		"api: {tlsRoute: {enabled: true}}":               {"/api/tlsRoute/parentRefs"},
		"gateway: {enabled: true}":                       {"/gateway/className"},
		"api: {ingress: {enabled: true}}":                {"/api/ingress/host"},
		"readinessProbe: {periods: 3}":                   {"/readinessProbe", "periods"},
		"users: {viewers: [{kind: Person, name: x}]}":    {"/users/viewers/0/kind"},
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

// chartFiles are the templates that are as they are by default in the kustomize base, and those that a component has.
var (
	ofTheBase     = []string{"deployment.yaml", "disruption.yaml", "networkpolicy.yaml", "rbac.yaml", "registrations.yaml", "services.yaml", "state.yaml", "users.yaml"}
	monitored     = "metrics: {serviceMonitor: {enabled: true}, rules: {enabled: true}}"
	overFleet     = "config: {fleet: {enabled: true}}"
	byCertManager = "webhook: {certificate: {secretName: plimsoll-webhook, issuerRef: {name: plimsoll}}}"
)

// plain takes away the lines of a rendered template that only a release has.
var plain = regexp.MustCompile(`(?m)^ *(app\.kubernetes\.io/(managed-by|instance|version)|helm\.sh/chart|plimsoll\.dev/config-sha256):.*\n` +
	`|^ *# The hub reads its configuration once\.\n` +
	`|^  annotations:\n    helm\.sh/resource-policy: keep\n|^    helm\.sh/resource-policy: keep\n|^      annotations:\n(      *#.*\n)*(      *plimsoll\.dev/config-sha256:.*\n)`)

// The base is made from the chart, comments included, so that there is one place to change it.
func TestTheKustomizeBaseIsWhatTheChartSays(t *testing.T) {
	for folder, values := range map[string]string{"base": "", "components/monitoring": monitored, "components/fleet": overFleet} {
		var parsed Values
		if err := yaml.Unmarshal([]byte(values), &parsed); err != nil {
			t.Fatal(err)
		}
		files, err := RenderChart(parsed)
		if err != nil {
			t.Fatal(err)
		}
		names := ofTheBase
		if folder != "base" {
			names = []string{path.Base(folder) + ".yaml"}
		}
		for _, name := range names {
			want := "# Generated from deploy/chart/plimsoll/templates/" + name + ": make manifests\n" +
				strings.TrimLeft(plain.ReplaceAllString(files[name], ""), "\n")
			golden(t, filepath.Join(root, "deploy", "kustomize", filepath.FromSlash(folder), name), want)
		}
	}
}

// suffix of the ConfigMap's name follows from its content: where the chart has an annotation, so that a change replaces the pods.
var suffix = regexp.MustCompile(`plimsoll-config-[a-z0-9]{10}\b`)

func TestHelmAndKustomizeRenderTheSameObjects(t *testing.T) {
	for folder, values := range map[string]string{
		"kustomize/base":                 "",
		"kustomize/testdata/monitored":   monitored,
		"kustomize/testdata/certificate": byCertManager,
		"kustomize/testdata/fleet":       overFleet,
		"kustomize/testdata/moving":      "registrations: {inReleaseNamespace: true}",
	} {
		t.Run(folder, func(t *testing.T) {
			text, err := RenderKustomization(strings.Split(folder, "/")...)
			if err != nil {
				t.Fatal(err)
			}
			built, err := Parse(suffix.ReplaceAllString(string(text), "plimsoll-config"))
			if err != nil {
				t.Fatal(err)
			}
			rendered := render(t, values).WithoutHelm()
			if diff := cmp.Diff(rendered.Contents(), built.WithoutHelm().Contents()); diff != "" {
				t.Errorf("-chart +kustomize:\n%s", diff)
			}
		})
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

func TestThePortsOfTheDeploymentAreThoseOfTheHub(t *testing.T) {
	objects := render(t, "")
	config := config.Default()
	ports := map[string]any{}
	for _, port := range container(t, objects)["ports"].([]any) {
		port := port.(map[string]any)
		ports[port["name"].(string)] = port["containerPort"]
	}
	want := map[string]any{"webhook": int64(config.Webhook.Port)}
	for name, address := range map[string]string{
		"grpc": config.API.GRPCAddress, "rest": config.API.RESTAddress, "peer": config.Peer.Address,
		"metrics": config.Metrics.Address, "probes": config.Probes.Address,
	} {
		var number int64
		for _, digit := range strings.TrimPrefix(address, ":") {
			number = number*10 + int64(digit-'0')
		}
		want[name] = number
	}
	if diff := cmp.Diff(want, ports); diff != "" {
		t.Errorf("-hub +deployment:\n%s", diff)
	}
}

// selectors are where objects say which pods they are about.
var selectors = map[string][]string{
	"Service": {"spec", "selector"}, "PodDisruptionBudget": {"spec", "selector", "matchLabels"},
	"NetworkPolicy": {"spec", "podSelector", "matchLabels"}, "Deployment": {"spec", "selector", "matchLabels"},
}

func TestWhatIsAboutTheHubsPodsNamesThemAndTheirPorts(t *testing.T) {
	objects := render(t, monitored)
	template := objects["Deployment "+Namespace+"/plimsoll-hub"].Object["spec"].(map[string]any)["template"].(map[string]any)
	labels, _, _ := unstructured.NestedStringMap(template, "metadata", "labels")
	ports := map[any]bool{}
	for _, port := range container(t, objects)["ports"].([]any) {
		ports[port.(map[string]any)["name"]] = true
	}
	about := 0
	for key, object := range objects {
		path, ok := selectors[object.GetKind()]
		if !ok {
			continue
		}
		about++
		selector, found, err := unstructured.NestedStringMap(object.Object, path...)
		if !found || err != nil {
			t.Errorf("%s selects nothing: %v", key, err)
		}
		for name, value := range selector {
			if labels[name] != value {
				t.Errorf("%s selects %s=%s, and the pods have %q", key, name, value, labels[name])
			}
		}
		var named []any
		switch object.GetKind() {
		case "Service":
			for _, port := range object.Object["spec"].(map[string]any)["ports"].([]any) {
				named = append(named, port.(map[string]any)["targetPort"])
			}
		case "NetworkPolicy":
			for _, rule := range object.Object["spec"].(map[string]any)["ingress"].([]any) {
				for _, port := range rule.(map[string]any)["ports"].([]any) {
					named = append(named, port.(map[string]any)["port"])
				}
			}
		}
		for _, port := range named {
			if !ports[port] {
				t.Errorf("%s is about port %v, which the pods do not have", key, port)
			}
		}
	}
	if about != 6 { // three Services, and one of each other
		t.Errorf("%d objects are about pods", about)
	}
	// What Prometheus scrapes is found by the Service's label and the name of its port.
	monitor := objects["ServiceMonitor "+Namespace+"/plimsoll-hub"]
	wanted, _, _ := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
	service := objects["Service "+Namespace+"/plimsoll-metrics"]
	for name, value := range wanted {
		if service.GetLabels()[name] != value {
			t.Errorf("the ServiceMonitor selects %s=%s, and the Service has %v", name, value, service.GetLabels())
		}
	}
	endpoint := monitor.Object["spec"].(map[string]any)["endpoints"].([]any)[0].(map[string]any)["port"]
	if port := service.Object["spec"].(map[string]any)["ports"].([]any)[0].(map[string]any)["name"]; port != endpoint {
		t.Errorf("the ServiceMonitor scrapes port %v, and the Service has %v", endpoint, port)
	}
}

func container(t *testing.T, objects Objects) map[string]any {
	t.Helper()
	return pod(t, objects)["containers"].([]any)[0].(map[string]any)
}

func pod(t *testing.T, objects Objects) map[string]any {
	t.Helper()
	deployment := objects["Deployment "+Namespace+"/plimsoll-hub"]
	if deployment == nil {
		t.Fatalf("no Deployment in %v", objects.Keys())
	}
	return deployment.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
}

func TestAChangedConfigurationReplacesThePods(t *testing.T) {
	sum := func(values string) string {
		deployment := render(t, values)["Deployment "+Namespace+"/plimsoll-hub"].Object
		metadata := deployment["spec"].(map[string]any)["template"].(map[string]any)["metadata"].(map[string]any)
		return metadata["annotations"].(map[string]any)["plimsoll.dev/config-sha256"].(string)
	}
	if sum("") != sum("replicas: 3") || sum("") == sum("config: {log: {level: debug}}") {
		t.Error("the pods' annotation does not follow the configuration")
	}
}

func TestTheHubRunsWithoutAnyPrivilege(t *testing.T) {
	objects := render(t, "")
	want := map[string]any{
		"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": map[string]any{"drop": []any{"ALL"}},
	}
	if diff := cmp.Diff(want, container(t, objects)["securityContext"]); diff != "" {
		t.Error(diff)
	}
	security := pod(t, objects)["securityContext"].(map[string]any)
	if security["runAsNonRoot"] != true || security["runAsUser"] != int64(65532) {
		t.Errorf("%v", security)
	}
	if pod(t, objects)["enableServiceLinks"] != false {
		t.Error("Services of the namespace are in its environment, and look like configuration")
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
