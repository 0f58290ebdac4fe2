package deploy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// The TLSRoutes of clusters that serve v1 are of v1, which newer releases of the Gateway API serve alone.
func TestRoutesAreOfTheVersionThatTheClusterServes(t *testing.T) {
	values := Values{}
	if err := yaml.Unmarshal([]byte(everyValue), &values); err != nil {
		t.Fatal(err)
	}
	for served, want := range map[string]string{
		"gateway.networking.k8s.io/v1/TLSRoute":       "gateway.networking.k8s.io/v1",
		"gateway.networking.k8s.io/v1alpha2/TLSRoute": "gateway.networking.k8s.io/v1alpha2",
	} {
		files, err := renderChart(values, "routes.yaml", served)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := Parse(files["routes.yaml"])
		if err != nil {
			t.Fatal(err)
		}
		routes := objects.Kind("TLSRoute")
		for key, route := range routes {
			if route.GetAPIVersion() != want {
				t.Errorf("%s is of %s where %s is served", key, route.GetAPIVersion(), served)
			}
		}
		if len(routes) != 3 {
			t.Errorf("%d routes", len(routes))
		}
	}
}

// A route without a host name is one that the API server refuses, or that is not there though its value is on.
func TestATLSRouteWithoutAHostNameIsRefused(t *testing.T) {
	const gateway = "gateway: {enabled: true, className: c}\n"
	for values, want := range map[string]string{
		"webhook: {tlsRoute: {enabled: true}}":                                                        "Set webhook.tlsRoute.hostnames or config.webhook.url",
		"webhook: {tlsRoute: {enabled: true}}\nconfig: {webhook: {url: \"https://192.0.2.7:8443\"}}":  "Set webhook.tlsRoute.hostnames",
		"webhook: {tlsRoute: {enabled: true}}\nconfig: {webhook: {url: \"https://[2001:db8::7]\"}}":   "address 2001:db8::7",
		"api: {tlsRoute: {enabled: true}}":                                                            "Set api.tlsRoute.grpcHostnames, api.tlsRoute.restHostnames",
		"webhook: {tlsRoute: {enabled: true}}\nconfig: {webhook: {url: \"https://a.example.com:1\"}}": "",
		"webhook: {tlsRoute: {enabled: true, hostnames: [a.example.com]}}":                            "",
		"api: {tlsRoute: {enabled: true, restHostnames: [a.example.com]}}":                            "",
	} {
		_, err := Chart(parsed(t, gateway+values))
		if want == "" && err != nil {
			t.Errorf("%s: %v", values, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q in it", values, err, want)
		}
	}
}

// routeSwitches turn on one route each, with the number of backends that it adds.
var routeSwitches = []struct {
	values   string
	backends int
}{
	{"webhook: {tlsRoute: {enabled: true, hostnames: [w.example.com]}}", 1},
	{"api: {tlsRoute: {enabled: true, grpcHostnames: [g.example.com]}}", 1},
	{"api: {tlsRoute: {enabled: true, restHostnames: [r.example.com]}}", 1},
	{"api: {ingress: {enabled: true, host: i.example.com}}", 1},
	{"webhook: {service: {type: LoadBalancer}}", 0},
	{"api: {service: {type: NodePort}}", 0},
	{"metrics: {unauthenticated: true, serviceMonitor: {enabled: true}}", 0},
}

// Whatever is on beside them, routes lead to ports of Services, and from there to ports of the pods.
func TestRoutesLeadToPortsThatServicesHave(t *testing.T) {
	for on := range 1 << len(routeSwitches) {
		values, backends := parsed(t, "gateway: {enabled: true, className: c}"), 0
		for i, one := range routeSwitches {
			if on&(1<<i) != 0 {
				mergeInto(values, parsed(t, one.values))
				backends += one.backends
			}
		}
		objects, err := Chart(values)
		if err != nil {
			t.Fatalf("%v: %v", values, err)
		}
		ends := servicePorts(t, objects)
		found := 0
		for key, object := range objects {
			for _, backend := range backendsIn(object.Object) {
				found++
				if !ends[backend] {
					t.Errorf("%v: %s leads to %s, and there are %v", values, key, backend, slices.Sorted(maps.Keys(ends)))
				}
			}
			parents, _, _ := unstructured.NestedSlice(object.Object, "spec", "parentRefs")
			for _, parent := range parents {
				name := fmt.Sprint(parent.(map[string]any)["name"])
				if objects["Gateway "+object.GetNamespace()+"/"+name] == nil {
					t.Errorf("%v: %s has parent %s, which is not there", values, key, name)
				}
			}
		}
		if found != backends {
			t.Errorf("%v: %d backends, want %d", values, found, backends)
		}
	}
}

// mergeInto adds values to others, group by group.
func mergeInto(values, more map[string]any) {
	for name, value := range more {
		inside, isMap := value.(map[string]any)
		if there, both := values[name].(map[string]any); isMap && both {
			mergeInto(there, inside)
			continue
		}
		values[name] = value
	}
}

// servicePorts are the ports of Services, each by number and by name, that lead to ports which the pods have.
func servicePorts(t *testing.T, objects Objects) map[string]bool {
	t.Helper()
	targets := map[any]bool{}
	for _, port := range container(t, objects)["ports"].([]any) {
		targets[port.(map[string]any)["name"]] = true
	}
	ends := map[string]bool{}
	for _, service := range objects.Kind("Service") {
		for _, port := range service.Object["spec"].(map[string]any)["ports"].([]any) {
			port := port.(map[string]any)
			if targets[port["targetPort"]] {
				ends[fmt.Sprintf("%s:%v", service.GetName(), port["name"])] = true
				ends[fmt.Sprintf("%s:%v", service.GetName(), port["port"])] = true
			}
		}
	}
	return ends
}

// backendsIn are the Services and ports that an Ingress or a route of any kind leads to, as name:port.
func backendsIn(content any) (found []string) {
	switch content := content.(type) {
	case []any:
		for _, one := range content {
			found = append(found, backendsIn(one)...)
		}
	case map[string]any:
		for name, inside := range content {
			switch name {
			case "backendRefs":
				for _, reference := range inside.([]any) {
					reference := reference.(map[string]any)
					found = append(found, fmt.Sprintf("%v:%v", reference["name"], reference["port"]))
				}
			case "service":
				service, _ := inside.(map[string]any)
				port, isPort := service["port"].(map[string]any)
				if !isPort {
					continue
				}
				for _, by := range port { // name or number
					found = append(found, fmt.Sprintf("%v:%v", service["name"], by))
				}
			default:
				found = append(found, backendsIn(inside)...)
			}
		}
	}
	return found
}
