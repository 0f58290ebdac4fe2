package deploy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plimsoll-dev/plimsoll/hub/config"
)

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
