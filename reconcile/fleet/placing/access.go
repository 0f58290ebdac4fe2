package placing

import "github.com/plimsoll-dev/plimsoll/clusters"

// Access is what fleet placement needs to be allowed in a member, beside what spot placement does. Members are not asked for it:
// one that does not allow it takes no part, and the status of the FleetPlacement says why. Kinds that the configuration names
// need the same right to their scale subresource.
func Access() []clusters.Access {
	scale := []string{"get", "update"}
	return []clusters.Access{
		{Group: appsGroup, Resource: "deployments", Subresource: "scale", Verbs: scale, For: "setting how many replicas a member has"},
		{Group: appsGroup, Resource: "statefulsets", Subresource: "scale", Verbs: scale, For: "setting how many replicas a member has"},
		{Group: appsGroup, Resource: "replicasets", Subresource: "scale", Verbs: scale, For: "setting how many replicas a member has"},
		{Group: webAppGroup, Resource: "webapps", Subresource: "scale", Verbs: scale, For: "setting how many replicas a WebApp has in a member"},
		{Group: "autoscaling", Resource: "horizontalpodautoscalers", Verbs: []string{"list"}, For: "leaving alone what another autoscaler scales"},
	}
}
