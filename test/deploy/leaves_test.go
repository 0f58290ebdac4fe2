package deploy

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// otherValues set the values that everyValue does not set, or does not set alone, with what they depend on.
const (
	services = "api: {service: {type: LoadBalancer, annotations: {a: b}, loadBalancerClass: example.com/internal, loadBalancerSourceRanges: [10.0.0.0/8], " +
		"externalTrafficPolicy: Local, ipFamilyPolicy: SingleStack, ipFamilies: [IPv4]}}"
	routes     = "{webhook: {tlsRoute: {enabled: true, hostnames: [a.example.com]}}, api: {tlsRoute: {enabled: true, grpcHostnames: [b.example.com], parentRefs: [{name: p}]}}, gateway: {enabled: true, className: c}}"
	containers = "{resources: {requests: {cpu: 1, memory: 1Gi}, limits: {memory: 2Gi}}, startupProbe: {periodSeconds: 3}, livenessProbe: {timeoutSeconds: 6, failureThreshold: 7}, " +
		"readinessProbe: {periodSeconds: 6}, podSecurityContext: {runAsNonRoot: null, seccompProfile: {type: Localhost, localhostProfile: p}}, " +
		"securityContext: {allowPrivilegeEscalation: null, readOnlyRootFilesystem: false, capabilities: {drop: [NET_RAW]}}, " +
		"strategy: {rollingUpdate: {maxSurge: 2, maxUnavailable: 1}}}"
	policies      = "networkPolicy: {metricsFrom: [{podSelector: {}}], egress: {enabled: true, to: [{podSelector: {}}], ports: [8443], dnsTo: [{podSelector: {}}]}}"
	withoutAll    = "{networkPolicy: {enabled: false}, podDisruptionBudget: {enabled: false}, renewTokens: false, serviceAccount: {create: false, name: a}, users: {create: false}}"
	registrations = "registrations: {namespace: members, createNamespace: false}"
)

var otherValues = map[string]string{
	"image.repository": "image: {repository: example.com/hub}", "image.tag": "image: {tag: v2}", "image.pullPolicy": "image: {pullPolicy: Always}",
	"webhook.tlsRoute.hostnames": routes, "api.tlsRoute.parentRefs": routes,
	"api.service": services, "metrics.unauthenticated": "metrics: {unauthenticated: true}",
	"resources": containers, "strategy.rollingUpdate": containers, "startupProbe.periodSeconds": containers, "livenessProbe": containers,
	"readinessProbe.periodSeconds": containers, "podSecurityContext": containers, "securityContext": containers,
	"networkPolicy": policies, "networkPolicy.enabled": withoutAll, "podDisruptionBudget.enabled": withoutAll, "renewTokens": withoutAll,
	"serviceAccount.create": withoutAll, "users.create": withoutAll, "rbac.create": "rbac: {create: false}",
	"registrations.namespace": registrations, "registrations.createNamespace": registrations,
	"registrations.inReleaseNamespace": "registrations: {inReleaseNamespace: true}",
	"flux.sourceRef.name":              "flux: {enabled: true, sourceRef: {name: other}}\nregistrations: {members: [{name: a, server: \"https://a:6443\", environment: e}], secretStoreRef: {name: s}}",
}

// Each value of the chart, down to the last key, is in the README and changes what is rendered: one that no template reads would
// silently do nothing.
func TestEachLeafOfTheValuesChangesWhatIsRendered(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "deploy", "chart", "plimsoll", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile(filepath.Join(root, "deploy", "chart", "plimsoll", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for path, byDefault := range leaves(parsed(t, string(text)), nil) {
		if !strings.Contains(string(table), "\n| `"+path+"` |") {
			t.Errorf("%s is not in the table of the chart's README", path)
		}
		keys := strings.Split(path, ".")
		setting := everyValue
		if set, there, _ := unstructured.NestedFieldNoCopy(parsed(t, everyValue), keys...); !there || reflect.DeepEqual(set, byDefault) {
			setting = otherValuesOf(path)
		}
		values := parsed(t, setting)
		if set, there, _ := unstructured.NestedFieldNoCopy(values, keys...); !there || reflect.DeepEqual(set, byDefault) {
			t.Errorf("%s is set in neither everyValue nor otherValues, or to its default %v", path, byDefault)
			continue
		}
		changed, err := renderedText(values)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		values = parsed(t, setting)
		if err := unstructured.SetNestedField(values, byDefault, keys...); err != nil {
			t.Fatal(err)
		}
		// That the schema refuses the default beside the other values is a difference as well.
		if before, err := renderedText(values); err == nil && maps.Equal(changed, before) {
			t.Errorf("%s: nothing rendered depends on it", path)
		}
	}
}

// otherValuesOf are the other values for a path, or for what it is in.
func otherValuesOf(path string) string {
	for {
		if setting, there := otherValues[path]; there {
			return setting
		}
		i := strings.LastIndex(path, ".")
		if i < 0 {
			return ""
		}
		path = path[:i]
	}
}

// leaves are the values that hold no named ones, by their paths. What is in config is the hub's own configuration.
func leaves(values map[string]any, above []string) map[string]any {
	found := map[string]any{}
	for name, value := range values {
		path := append(above[:len(above):len(above)], name)
		if inside, ok := value.(map[string]any); ok && len(inside) > 0 && name != "config" {
			maps.Copy(found, leaves(inside, path))
			continue
		}
		found[strings.Join(path, ".")] = value
	}
	return found
}

func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return values
}

// renderedText renders values, at a webhook address if they have none.
func renderedText(values map[string]any) (map[string]string, error) {
	if _, there := values["config"]; !there {
		values["config"] = map[string]any{"webhook": map[string]any{"url": "https://plimsoll.example.com"}}
	}
	return renderChart(values, ".yaml")
}
