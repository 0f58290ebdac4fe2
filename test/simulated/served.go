package simulated

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// served are the resources of a member, by the path of their group and version.
var served = map[string]metav1.APIResourceList{
	"/api/v1": resources("v1", namespaced("pods", "Pod"), namespaced("configmaps", "ConfigMap"), namespaced("secrets", "Secret"),
		namespaced("services", "Service"), namespaced("serviceaccounts", "ServiceAccount"), namespaced("events", "Event"),
		clusterWide("namespaces", "Namespace"), clusterWide("nodes", "Node")),
	"/apis/apps/v1": resources("apps/v1", namespaced("deployments", "Deployment"), namespaced("replicasets", "ReplicaSet"),
		namespaced("statefulsets", "StatefulSet"), namespaced("daemonsets", "DaemonSet")),
	"/apis/batch/v1":         resources("batch/v1", namespaced("jobs", "Job"), namespaced("cronjobs", "CronJob")),
	"/apis/policy/v1":        resources("policy/v1", namespaced("poddisruptionbudgets", "PodDisruptionBudget")),
	"/apis/autoscaling/v2":   resources("autoscaling/v2", namespaced("horizontalpodautoscalers", "HorizontalPodAutoscaler")),
	"/apis/events.k8s.io/v1": resources("events.k8s.io/v1", namespaced("events", "Event")),
	"/apis/admissionregistration.k8s.io/v1": resources("admissionregistration.k8s.io/v1",
		clusterWide("mutatingwebhookconfigurations", "MutatingWebhookConfiguration")),
}

func resources(groupVersion string, list ...metav1.APIResource) metav1.APIResourceList {
	return metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: groupVersion, APIResources: list,
	}
}

func namespaced(name, kind string) metav1.APIResource {
	return metav1.APIResource{Name: name, Kind: kind, Namespaced: true}
}

func clusterWide(name, kind string) metav1.APIResource {
	return metav1.APIResource{Name: name, Kind: kind}
}

// collection is what a path lists.
type collection struct {
	path string // with the namespace, if there is one: what a watch is counted by
	kind schema.GroupVersionKind
	// name is that of a single object in the collection; empty: all.
	name string
}

// collectionOf finds what a path is about; false: the member does not have that.
func collectionOf(path string) (collection, bool) {
	for root, list := range served {
		rest, ok := strings.CutPrefix(path, root+"/")
		if !ok {
			continue
		}
		parts := strings.Split(rest, "/")
		if len(parts) > 2 && parts[0] == "namespaces" {
			parts = parts[2:]
		}
		for _, resource := range list.APIResources {
			if resource.Name != parts[0] || len(parts) > 2 {
				continue
			}
			gv, err := schema.ParseGroupVersion(list.GroupVersion)
			if err != nil {
				return collection{}, false
			}
			found := collection{path: path, kind: gv.WithKind(resource.Kind)}
			if len(parts) == 2 {
				found.name, found.path = parts[1], strings.TrimSuffix(path, "/"+parts[1])
			}
			return found, true
		}
	}
	return collection{}, false
}
