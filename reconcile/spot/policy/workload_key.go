package policy

import "k8s.io/apimachinery/pkg/types"

// WorkloadKey names a workload within one member.
type WorkloadKey struct {
	// Kind is Deployment, StatefulSet or another kind that is placed.
	Kind string
	types.NamespacedName
}

// Compare orders keys by namespace, kind and name: the order of every list.
func (k WorkloadKey) Compare(other WorkloadKey) int {
	for _, pair := range [...][2]string{{k.Namespace, other.Namespace}, {k.Kind, other.Kind}, {k.Name, other.Name}} {
		switch {
		case pair[0] < pair[1]:
			return -1
		case pair[0] > pair[1]:
			return 1
		}
	}
	return 0
}
