package confine

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Unwritable says why the account may not be let write a resource as a whole, whatever its owner wants; empty: it may. These are
// the resources of Kubernetes' own for which a policy says in detail what may be written, and those by which an account could give
// itself, or a pod, any right. What resources of other groups give, their owner has to know.
func Unwritable(r schema.GroupResource) string {
	own := []string{"pods", "services", "serviceaccounts", "events", "deployments", "poddisruptionbudgets", "horizontalpodautoscalers", "leases"}
	running := []string{"replicationcontrollers", "replicasets", "statefulsets", "daemonsets", "jobs", "cronjobs", "podtemplates", "controllerrevisions"}
	escalating := []string{"secrets", "nodes", "namespaces", "persistentvolumes", "bindings", "componentstatuses"}
	groups := []string{
		"rbac.authorization.k8s.io", "authorization.k8s.io", "authentication.k8s.io", "certificates.k8s.io", "admissionregistration.k8s.io",
		"apiextensions.k8s.io", "apiregistration.k8s.io", "flowcontrol.apiserver.k8s.io", "node.k8s.io", "scheduling.k8s.io", "storage.k8s.io",
	}
	const kubernetes = "the hub is not let write it: "
	switch {
	case !builtIn(r.Group):
		return ""
	case slices.Contains(own, r.Resource):
		return kubernetes + "policies say what of it the hub may write"
	case slices.Contains(running, r.Resource):
		return kubernetes + "what it runs could have any right in the cluster"
	case slices.Contains(escalating, r.Resource) || slices.Contains(groups, r.Group):
		return kubernetes + "who writes it could have any right in the cluster"
	}
	return ""
}

// builtIn reports whether a group is one of Kubernetes' own, as the policy for kinds distinguishes them.
func builtIn(group string) bool {
	const suffix = ".k8s.io"
	return !slices.Contains([]byte(group), '.') || len(group) > len(suffix) && group[len(group)-len(suffix):] == suffix
}

// writes are grants for the reconcilers of other modules: everywhere but in Kubernetes' own namespaces, which hold what the
// cluster's own parts trust, and in the account's.
func (a Account) writes() (all []grant) {
	for _, r := range a.Writes {
		if builtIn(r.Group) { // others are left to RBAC
			all = append(all, grant{group: r.Group, resource: r.Resource, operations: []string{create, update, remove}, apart: true})
		}
	}
	return all
}
