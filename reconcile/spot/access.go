package spot

import "github.com/plimsoll-dev/plimsoll/clusters"

// Access is what spot placement needs to be allowed in a member, and what is lost without it. Beside that, probes are created
// and deleted in one namespace; see [ProbeOptions.Namespace].
func Access() []clusters.Access {
	read := []string{"get", "list", "watch"}
	return []clusters.Access{
		{Group: "apps", Resource: "deployments", Verbs: read, For: "placing Deployments"},
		{Group: "apps", Resource: "statefulsets", Verbs: read, For: "placing StatefulSets"},
		{Group: "apps", Resource: "replicasets", Verbs: read, For: "placing Deployments"},
		{Resource: "namespaces", Verbs: read, For: "reading which namespaces are enabled"},
		{Resource: "nodes", Verbs: read, ClusterScoped: true, For: "reading the capacity type of nodes"},
		{Resource: "pods", Verbs: append([]string{"patch"}, read...), For: "labelling pods with their slots"},
		{Resource: "pods", Subresource: "eviction", Verbs: []string{"create"}, For: "moving pods"},
		{Group: "policy", Resource: "poddisruptionbudgets", Verbs: read, For: "respecting PodDisruptionBudgets"},
		{Resource: "services", Verbs: []string{"list"}, For: "checking that no Service selects pods by pod-template-hash"},
		{Resource: "events", Verbs: []string{"create", "patch"}, For: "recording Events"},
	}
}

// SignAccess is what spot placement may be allowed beside that: reading what autoscalers say about nodes that are on their way,
// or that they can make. Without it members are not Degraded: pods are given the time that nodes were seen to take, and reserved capacity
// is used once it has a node. In a member that is registered for
// named namespaces, what is cluster-scoped is not granted.
func SignAccess() []clusters.Access {
	return []clusters.Access{
		{Resource: "events", Verbs: []string{"list"}, For: "reading from Events of pods that nodes are being created"},
		{Group: "karpenter.sh", Resource: "nodeclaims", Verbs: []string{"list"}, ClusterScoped: true, For: "reading which nodes Karpenter has launched"},
		{Group: "karpenter.sh", Resource: "nodepools", Verbs: []string{"list"}, ClusterScoped: true, For: "using reserved capacity that has no node yet"},
	}
}
