package spot

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// An engine runs in many goroutines. What its maker writes to the options afterwards must reach none of them.
func TestAnEngineKeepsACopyOfItsOptions(t *testing.T) {
	label := capacity.NodeLabel{Key: "example.com/capacity", Spot: []string{"spot"}, OnDemand: []string{"on-demand"}}
	labels, err := capacity.NewLabels(label)
	if err != nil {
		t.Fatal(err)
	}
	share := 40
	o := Options{
		Keys: spottest.DefaultKeys, Capacity: labels, Defaults: policy.Defaults{Percentage: &share},
		Settings:        plan.Settings{MaxMoves: policy.MoveLimit{Percent: 10}},
		Kinds:           []WorkloadKind{workloadKind(t, "argoproj.io/v1alpha1", "Rollout")},
		SpotTolerations: []corev1.Toleration{{Key: "spot", TolerationSeconds: new(int64(30))}},
	}
	e, err := NewEngine(o)
	if err != nil {
		t.Fatal(err)
	}
	share = 90
	o.Capacity.NodeLabels[0].Spot[0] = "written"
	o.Kinds[0] = workloadKind(t, "apps.kruise.io/v1alpha1", "CloneSet")
	o.SpotTolerations[0].Key, *o.SpotTolerations[0].TolerationSeconds = "written", 1
	if got := *e.options.Defaults.Percentage; got != 40 {
		t.Errorf("default percentage %d", got)
	}
	if got := e.options.Capacity.NodeLabels[0].Spot[0]; got != "spot" {
		t.Errorf("value of the spot label %q", got)
	}
	if got := e.options.Kinds[0].Kind; got != "Rollout" {
		t.Errorf("kind %s", got)
	}
	if got := e.options.SpotTolerations[0]; got.Key != "spot" || *got.TolerationSeconds != 30 {
		t.Errorf("toleration %s for %d s", got.Key, *got.TolerationSeconds)
	}
	for field := range reflect.TypeFor[Engine]().Fields() {
		if field.IsExported() || field.Anonymous {
			t.Errorf("field %s can be written to while the engine runs", field.Name)
		}
	}
}
