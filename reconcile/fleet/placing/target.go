package placing

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/reconcile/module"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// target is the workload of a FleetPlacement.
type target struct {
	// key names it as spot placement does: the replicas of a module's kind are those of the workload that it declares.
	key policy.WorkloadKey
	// scaled is the kind whose scale subresource is written.
	scaled schema.GroupVersionKind
	// placed is the kind of key.
	placed schema.GroupVersionKind
}

// appsGroup is that of the kinds that are known without being configured.
const appsGroup = "apps"

// targetOf returns the workload of a FleetPlacement. kinds are those of modules. The error names what is wrong with targetRef.
func targetOf(p *v1alpha1.FleetPlacement, placed []spot.PlacedKind, kinds []module.Resource) (target, error) {
	ref := p.Spec.TargetRef
	version, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil || version.Version == "" {
		return target{}, fmt.Errorf("targetRef.apiVersion %q: must be group/version, such as apps/v1", ref.APIVersion)
	}
	t := target{scaled: version.WithKind(ref.Kind), placed: version.WithKind(ref.Kind)}
	for i := range kinds {
		if kind := &kinds[i]; kind.Group == version.Group && kind.Kind == ref.Kind && !kind.Workload.Empty() {
			t.placed = kind.Workload
		}
	}
	t.key.NamespacedName = types.NamespacedName{Namespace: p.Namespace, Name: ref.Name}
	if t.key.Kind = t.placed.Kind; t.placed.Group != appsGroup {
		t.key.Kind += "." + t.placed.Group
	}
	for i := range placed {
		if placed[i].Name == t.key.Kind {
			return t, nil
		}
	}
	return target{}, fmt.Errorf("targetRef: %s %s: spot placement does not support this kind; add it to spot.workloadKinds", ref.APIVersion, ref.Kind)
}
