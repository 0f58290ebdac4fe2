package placing

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// target is the workload of a FleetPlacement.
type target struct {
	// key names it as spot placement does: the replicas of a WebApp are those of its Deployment.
	key policy.WorkloadKey
	// scaled is the kind whose scale subresource is written.
	scaled schema.GroupVersionKind
	// placed is the kind of key.
	placed schema.GroupVersionKind
}

// Kinds that are known without being configured.
const (
	appsGroup   = "apps"
	webAppGroup = "apps.plimsoll.dev"
	webAppKind  = "WebApp"
)

// targetOf returns the workload of a FleetPlacement. The error names what is wrong with targetRef.
func targetOf(p *v1alpha1.FleetPlacement, placed []spot.PlacedKind) (target, error) {
	ref := p.Spec.TargetRef
	version, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil || version.Version == "" {
		return target{}, fmt.Errorf("targetRef.apiVersion %q: must be group/version, such as apps/v1", ref.APIVersion)
	}
	t := target{scaled: version.WithKind(ref.Kind), placed: version.WithKind(ref.Kind)}
	t.key.NamespacedName = types.NamespacedName{Namespace: p.Namespace, Name: ref.Name}
	switch version.Group {
	case appsGroup:
		t.key.Kind = ref.Kind
	case webAppGroup:
		if ref.Kind == webAppKind {
			t.key.Kind = spot.KindDeployment
			t.placed = schema.GroupVersionKind{Group: appsGroup, Version: "v1", Kind: spot.KindDeployment}
		}
	default:
		t.key.Kind = ref.Kind + "." + version.Group
	}
	for i := range placed {
		if placed[i].Name == t.key.Kind {
			return t, nil
		}
	}
	return target{}, fmt.Errorf("targetRef: %s %s: spot placement knows no such kind; spot.workloadKinds names further ones", ref.APIVersion, ref.Kind)
}
