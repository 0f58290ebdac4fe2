package admission

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// Spread is what an admission request shows of a topology spread constraint.
type Spread struct {
	// Key is the topologyKey.
	Key string
	// Must says that whenUnsatisfiable is DoNotSchedule.
	Must bool
	// Affinity and Taints are nodeAffinityPolicy and nodeTaintsPolicy; empty where they are not set.
	Affinity, Taints corev1.NodeInclusionPolicy
}

// CountsByDefault reports whether the constraint must hold and leaves it to Kubernetes which nodes count.
func (s *Spread) CountsByDefault() bool {
	return s.Must && s.Affinity == "" && s.Taints != corev1.NodeInclusionPolicyHonor
}

// spreadTogether has the scheduler count all nodes for the constraints that may hold over both capacity types. What the
// constraint says of itself stays.
func spreadTogether(ops *patch, in *Incoming) {
	for i := range in.Spreads {
		if s := &in.Spreads[i]; s.CountsByDefault() && slices.Contains(in.Together, s.Key) {
			ops.add("/spec/topologySpreadConstraints/"+strconv.Itoa(i)+"/nodeAffinityPolicy", string(corev1.NodeInclusionPolicyIgnore))
		}
	}
}
