package deploy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// everyValue sets every value of the chart that changes what is rendered. A real API server checks the result.
const everyValue = `
replicas: 3
env: [{name: HTTPS_PROXY, value: "http://proxy:3128"}]
image: {digest: "sha256:0000000000000000000000000000000000000000000000000000000000000000"}
imagePullSecrets: [{name: s}]
commonLabels: {team: platform}
commonAnnotations: {example.com/owner: platform}
extraArgs: [--config=/etc/other.yaml]
extraVolumes: [{name: roots, configMap: {name: company-roots}}]
extraVolumeMounts: [{name: roots, mountPath: /etc/ssl/certs, readOnly: true}]
extraObjects:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: company-roots, namespace: "{{ .Release.Namespace }}"}
config: {webhook: {url: "https://plimsoll.example.com"}, fleet: {enabled: true}}
webhook:
  certificate: {secretName: w, issuerRef: {name: x, kind: ClusterIssuer}}
  clientCA: {secretName: c}
  service:
    type: LoadBalancer
    annotations: {a: b}
    loadBalancerClass: example.com/internal
    loadBalancerSourceRanges: [10.0.0.0/8]
    externalTrafficPolicy: Local
    ipFamilyPolicy: SingleStack
    ipFamilies: [IPv4]
  tlsRoute: {enabled: true, annotations: {a: b}, parentRefs: [{name: public, namespace: gateways}]}
api:
  certificate: {secretName: a, issuerRef: {name: x}}
  clientCA: {secretName: d}
  tlsRoute: {enabled: true, annotations: {a: b}, grpcHostnames: [plimsoll-grpc.example.com], restHostnames: [plimsoll-api.example.com]}
  ingress:
    enabled: true
    className: nginx
    annotations: {nginx.ingress.kubernetes.io/backend-protocol: HTTPS}
    host: plimsoll-api.example.com
    tls: [{hosts: [plimsoll-api.example.com], secretName: tls}]
gateway: {enabled: true, className: internal, annotations: {a: b}, addresses: [{type: IPAddress, value: 192.0.2.7}]}
metrics:
  certificate: {secretName: m, issuerRef: {name: x}}
  serviceMonitor:
    enabled: true
    interval: 15s
    scrapeTimeout: 10s
    labels: {release: prometheus}
    relabelings: [{action: labeldrop, regex: pod}]
    metricRelabelings: [{action: drop, sourceLabels: [__name__], regex: go_.*}]
  rules:
    enabled: true
    labels: {release: prometheus}
    runbooks: https://wiki.example.com/plimsoll
    alerts: {PlimsollSpotDry: {enabled: false}}
  dashboards: {enabled: true, labels: {grafana_dashboard: "yes"}, annotations: {grafana_folder: Plimsoll}, namespace: default}
networkPolicy:
  webhookFrom: [{ipBlock: {cidr: 10.0.0.0/8}}]
  apiFrom: [{podSelector: {}}]
  egress: {enabled: true, to: [{ipBlock: {cidr: 10.0.0.0/8}}]}
podDisruptionBudget: {maxUnavailable: 50%}
serviceAccount: {name: plimsoll, annotations: {a: b}}
registrations:
  registrars: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: sre}]
  secretStoreRef: {kind: SecretStore, name: vault}
  members: [{name: prod-eu, server: "https://prod-eu:6443", caData: LS0t, tokenKey: k, tokenProperty: p, memberNamespace: m, namespaces: [shop], environment: production, annotations: {a: b}}]
flux: {enabled: true, namespace: default, interval: 5m, sourceRef: {kind: OCIRepository, name: fleet}}
users:
  viewers: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: developers}]
  operators: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: sre}]
  scrapers: [{kind: ServiceAccount, name: prometheus, namespace: monitoring}]
strategy: {type: Recreate}
terminationGracePeriodSeconds: 60
startupProbe: {failureThreshold: 60}
livenessProbe: {periodSeconds: 20}
readinessProbe: {timeoutSeconds: 5}
podSecurityContext: {runAsUser: null, runAsGroup: null}
securityContext: {seccompProfile: {type: RuntimeDefault}}
topologySpreadConstraints:
  - {topologyKey: rack, maxSkew: 2, whenUnsatisfiable: DoNotSchedule}
  - {topologyKey: zone, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {a: b}}}
podAnnotations: {a: b}
podLabels: {a: b}
nodeSelector: {a: b}
tolerations: [{key: a, operator: Exists}]
affinity: {nodeAffinity: {}}
priorityClassName: system-cluster-critical
`

func TestValuesArriveInTheObjects(t *testing.T) {
	objects := render(t, everyValue)
	at := func(key string, path ...string) any {
		t.Helper()
		if objects[key] == nil {
			t.Fatalf("no %s in %v", key, objects.Keys())
		}
		value, _, err := unstructured.NestedFieldNoCopy(objects[key].Object, path...)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	for key, object := range objects {
		if key == "ConfigMap "+Namespace+"/company-roots" {
			continue // as it was given
		}
		if object.GetLabels()["team"] != "platform" || object.GetAnnotations()["example.com/owner"] != "platform" {
			t.Errorf("%s has labels %v and annotations %v", key, object.GetLabels(), object.GetAnnotations())
		}
	}
	if at("Secret "+Namespace+"/plimsoll-hub-ca", "metadata", "annotations").(map[string]any)["helm.sh/resource-policy"] != "keep" {
		t.Error("Helm does not keep the authority")
	}
	own, deployment := "Service "+Namespace+"/plimsoll-webhook", "Deployment "+Namespace+"/plimsoll-hub"
	for _, c := range []struct {
		got, want any
	}{
		{at(own, "metadata", "annotations"), map[string]any{"a": "b", "example.com/owner": "platform"}},
		{at(own, "spec", "loadBalancerSourceRanges"), []any{"10.0.0.0/8"}},
		{at(own, "spec", "externalTrafficPolicy"), "Local"},
		{at(deployment, "spec", "strategy"), map[string]any{"type": "Recreate"}},
		{at(deployment, "spec", "selector", "matchLabels"), map[string]any{"app.kubernetes.io/name": "plimsoll", "app.kubernetes.io/component": "hub"}},
		{pod(t, objects)["serviceAccountName"], "plimsoll"},
		{pod(t, objects)["imagePullSecrets"], []any{map[string]any{"name": "s"}}},
		{pod(t, objects)["securityContext"], map[string]any{"runAsNonRoot": true, "seccompProfile": map[string]any{"type": "RuntimeDefault"}}},
		{container(t, objects)["args"], []any{"--config=/etc/plimsoll/hub/config.yaml", "--config=/etc/other.yaml"}},
		{container(t, objects)["readinessProbe"], map[string]any{"httpGet": map[string]any{"path": "/readyz", "port": "probes"}, "periodSeconds": int64(5), "timeoutSeconds": int64(5)}},
		{at("TLSRoute "+Namespace+"/plimsoll-webhook", "spec", "hostnames"), []any{"plimsoll.example.com"}},
		{at("TLSRoute "+Namespace+"/plimsoll-webhook", "spec", "parentRefs"), []any{map[string]any{"name": "public", "namespace": "gateways"}}},
		{at("TLSRoute "+Namespace+"/plimsoll-api-grpc", "spec", "parentRefs"), []any{map[string]any{"name": "plimsoll"}}},
		{at("TLSRoute "+Namespace+"/plimsoll-api-grpc", "spec", "rules"), []any{map[string]any{"backendRefs": []any{map[string]any{"name": "plimsoll-api", "port": int64(9090)}}}}},
		{at("TLSRoute "+Namespace+"/plimsoll-api-rest", "spec", "hostnames"), []any{"plimsoll-api.example.com"}},
		{at("Gateway "+Namespace+"/plimsoll", "spec", "gatewayClassName"), "internal"},
		{at("Kustomization default/in-prod-eu", "spec", "sourceRef"), map[string]any{"kind": "OCIRepository", "name": "fleet"}},
		{at("Gateway "+Namespace+"/plimsoll", "spec", "addresses"), []any{map[string]any{"type": "IPAddress", "value": "192.0.2.7"}}},
		{at("ClusterRoleBinding plimsoll-metrics-reader", "subjects"), []any{map[string]any{"kind": "ServiceAccount", "name": "prometheus", "namespace": "monitoring"}}},
		{at("ClusterRoleBinding plimsoll-hub", "subjects"), []any{map[string]any{"kind": "ServiceAccount", "name": "plimsoll", "namespace": Namespace}}},
		{at("ConfigMap "+Namespace+"/company-roots", "metadata", "namespace"), Namespace},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	constraints := pod(t, objects)["topologySpreadConstraints"].([]any)
	first := constraints[0].(map[string]any)["labelSelector"].(map[string]any)["matchLabels"].(map[string]any)
	second := constraints[1].(map[string]any)["labelSelector"].(map[string]any)["matchLabels"].(map[string]any)
	if first["app.kubernetes.io/name"] != "plimsoll" || second["a"] != "b" {
		t.Errorf("the constraints are about %v and %v", first, second)
	}
}

func TestAccountRightsAndRolesCanBeLeftToOthers(t *testing.T) {
	for key := range render(t, "{serviceAccount: {create: false}, rbac: {create: false}, users: {create: false}}") {
		kind, _, _ := strings.Cut(key, " ")
		if strings.Contains(kind, "Role") || kind == "ServiceAccount" {
			t.Errorf("%s is rendered", key)
		}
	}
}

// A value that no template reads would be one that silently does nothing; one that is set nowhere above is not tested.
func TestEveryValueIsSetInTheTestOfAllValues(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "deploy", "chart", "plimsoll", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var defaults, set map[string]any
	if err := yaml.Unmarshal(text, &defaults); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(everyValue), &set); err != nil {
		t.Fatal(err)
	}
	// What has tests of its own, or only a default that nobody would change in a test of rendering.
	elsewhere := map[string]bool{"renewTokens": true, "resources": true, "rbac": true}
	for name := range defaults {
		if _, there := set[name]; !there && !elsewhere[name] {
			t.Errorf("%s is not set in everyValue", name)
		}
	}
}
