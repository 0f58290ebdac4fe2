package spot

import "github.com/plimsoll-dev/plimsoll/clusters"

// Access is what spot placement needs to be allowed in a member, and what is lost without it.
func Access() []clusters.Access {
	read := []string{"get", "list", "watch"}
	return []clusters.Access{
		{Group: "apps", Resource: "deployments", Verbs: read, For: "placing Deployments"},
		{Group: "apps", Resource: "statefulsets", Verbs: read, For: "placing StatefulSets"},
		{Group: "apps", Resource: "replicasets", Verbs: read, For: "placing Deployments"},
		{Resource: "namespaces", Verbs: read, For: "knowing which namespaces are enabled"},
		{Resource: "nodes", Verbs: read, For: "knowing the capacity type of bound pods"},
		{Resource: "pods", Verbs: append([]string{"patch"}, read...), For: "giving slots to pods"},
		{Resource: "pods", Subresource: "eviction", Verbs: []string{"create"}, For: "moving pods"},
		{Resource: "events", Verbs: []string{"create", "patch"}, For: "telling in the member what was done"},
	}
}
