package placing

import (
	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile/module"
)

// Access is what fleet placement needs to be allowed in a member, beside what spot placement does. Members are not asked for it:
// one that does not allow it takes no part, and the status of the FleetPlacement says why. Kinds that the configuration names
// need the same right to their scale subresource. kinds are those of modules.
func Access(kinds []module.Resource) []clusters.Access {
	scale := []string{"get", "update"}
	needed := []clusters.Access{
		{Group: appsGroup, Resource: "deployments", Subresource: "scale", Verbs: scale, For: "setting how many replicas a member has"},
		{Group: appsGroup, Resource: "statefulsets", Subresource: "scale", Verbs: scale, For: "setting how many replicas a member has"},
		{Group: appsGroup, Resource: "replicasets", Subresource: "scale", Verbs: scale, For: "setting how many replicas a member has"},
		{Group: "autoscaling", Resource: "horizontalpodautoscalers", Verbs: []string{"list"}, For: "detecting workloads that another autoscaler scales"},
	}
	for i := range kinds {
		if kind := &kinds[i]; !kind.Workload.Empty() {
			needed = append(needed, clusters.Access{
				Group: kind.Group, Resource: kind.Plural, Subresource: "scale", Verbs: scale, For: "setting how many replicas a " + kind.Kind + " has in a member",
			})
		}
	}
	return needed
}
