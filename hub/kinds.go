package hub

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
)

// workloadKinds are the kinds of workloads that the configuration names.
func workloadKinds(config *SpotConfig) ([]spot.WorkloadKind, error) {
	kinds := make([]spot.WorkloadKind, 0, len(config.WorkloadKinds))
	named := map[string]bool{}
	for _, one := range config.WorkloadKinds {
		kind, err := spot.NewWorkloadKind(one.APIVersion, one.Kind, one.ReplicasPath, one.StatusReplicasPath)
		if err != nil {
			return nil, err
		}
		if named[kind.Name()] {
			return nil, fmt.Errorf("kind %s: it is named twice", kind.Name())
		}
		named[kind.Name()] = true
		kinds = append(kinds, kind)
	}
	return kinds, nil
}

// ownerKinds are those of them that may own pods directly, for all that is known.
func ownerKinds(config *SpotConfig) []schema.GroupKind {
	var owners []schema.GroupKind
	for _, one := range config.WorkloadKinds {
		gv, err := schema.ParseGroupVersion(one.APIVersion)
		if err != nil {
			continue // the configuration was checked
		}
		owners = append(owners, schema.GroupKind{Group: gv.Group, Kind: one.Kind})
	}
	return owners
}
