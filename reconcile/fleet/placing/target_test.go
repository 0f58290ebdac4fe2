package placing

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
)

var placed = []spot.PlacedKind{{Name: "Deployment"}, {Name: "StatefulSet"}, {Name: "ReplicaSet"}, {Name: "Rollout.argoproj.io"}}

func TestTheTargetIsNamedAsSpotPlacementNamesIt(t *testing.T) {
	for name, test := range map[string]struct {
		version, kind, key, problem string
	}{
		"Deployment":        {"apps/v1", "Deployment", "Deployment", ""},
		"WebApp":            {"apps.plimsoll.dev/v1", "WebApp", "Deployment", ""},
		"configured":        {"argoproj.io/v1alpha1", "Rollout", "Rollout.argoproj.io", ""},
		"DaemonSet":         {"apps/v1", "DaemonSet", "", "no such kind"},
		"not configured":    {"batch/v1", "Job", "", "spot.workloadKinds"},
		"another of ours":   {"apps.plimsoll.dev/v1", "Bundle", "", "no such kind"},
		"no version at all": {"", "Deployment", "", `apiVersion ""`},
		"too many slashes":  {"a/b/c", "Deployment", "", `apiVersion "a/b/c"`},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.FleetPlacement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}}
			p.Spec.TargetRef = v1alpha1.TargetRef{APIVersion: test.version, Kind: test.kind, Name: "web"}
			found, err := targetOf(p, placed)
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
