package reconcile

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const levelError = slog.LevelError

func ptrTo[T any](v T) *T { return &v }

func ownedBy(version, kind, name string, controller *bool) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: name, UID: "uid", Controller: controller}}
}

// series lists the metrics that carry all of the labels, each as name=value.
func (h *hub) series(labels ...string) []string {
	var found []string
	for _, s := range h.gather(labels...) {
		found = append(found, s.text)
	}
	slices.Sort(found)
	return found
}

// value adds up a metric over the series that carry all of the labels; of a histogram, its sum.
func (h *hub) value(name string, labels ...string) (sum float64) {
	for _, s := range h.gather(labels...) {
		if s.name == name {
			sum += s.value
		}
	}
	return sum
}

type sample struct {
	name, text string
	value      float64
}

func (h *hub) gather(labels ...string) []sample {
	h.t.Helper()
	families, err := h.registry.Gather()
	if err != nil {
		h.t.Fatal(err)
	}
	var found []sample
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			var has []string
			for _, pair := range metric.GetLabel() {
				has = append(has, pair.GetName()+"="+pair.GetValue())
			}
			if slices.ContainsFunc(labels, func(label string) bool { return !slices.Contains(has, label) }) {
				continue
			}
			value := metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + metric.GetHistogram().GetSampleSum()
			found = append(found, sample{family.GetName(), fmt.Sprint(family.GetName(), has, "=", value), value})
		}
	}
	return found
}

func TestTwoRuntimesInOneRegistryAreAnError(t *testing.T) {
	registry := prometheus.NewRegistry()
	if _, err := NewRuntime(Options{Registerer: registry}); err != nil {
		t.Fatal(err)
	}
	if _, err := NewRuntime(Options{Registerer: registry}); err == nil {
		t.Error("the second registered its metrics as well")
	}
}

func typeName(v any) string { return fmt.Sprintf("%T", v) }
