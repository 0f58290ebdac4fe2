package placing

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/reconcile/module"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
)

var placed = []spot.PlacedKind{{Name: "Deployment"}, {Name: "StatefulSet"}, {Name: "ReplicaSet"}, {Name: "Rollout.argoproj.io"}}

func TestTheTargetIsNamedAsSpotPlacementNamesIt(t *testing.T) {
	for name, test := range map[string]struct {
		version, kind, key, problem string
	}{
		"Deployment":        {"apps/v1", "Deployment", "Deployment", ""},
		"of a module":       {"example.com/v1", "Shop", "Deployment", ""},
		"configured":        {"argoproj.io/v1alpha1", "Rollout", "Rollout.argoproj.io", ""},
		"DaemonSet":         {"apps/v1", "DaemonSet", "", "does not support this kind"},
		"not configured":    {"batch/v1", "Job", "", "spot.workloadKinds"},
		"no workload":       {"example.com/v1", "Bundle", "", "does not support this kind"},
		"no version at all": {"", "Deployment", "", `apiVersion ""`},
		"too many slashes":  {"a/b/c", "Deployment", "", `apiVersion "a/b/c"`},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.FleetPlacement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}}
			p.Spec.TargetRef = v1alpha1.TargetRef{APIVersion: test.version, Kind: test.kind, Name: "web"}
			found, err := targetOf(p, placed, []module.Resource{
				{Group: "example.com", Kind: "Shop", Workload: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}},
				{Group: "example.com", Kind: "Bundle"},
			})
			if test.problem != "" {
				if err == nil || !strings.Contains(err.Error(), test.problem) {
					t.Errorf("%v, want an error that names %s", err, test.problem)
				}
				return
			}
			if err != nil || found.key.Kind != test.key || found.key.String() == "" || found.scaled.Kind != test.kind {
				t.Errorf("%+v, %v", found, err)
			}
		})
	}
}
