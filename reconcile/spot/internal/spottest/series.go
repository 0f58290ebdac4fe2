package spottest

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Series returns the values of a metric by the values of its labels, in the order of the labels' names. A histogram's is how often it was
// observed.
func Series(t testing.TB, registry *prometheus.Registry, name string) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			var labels []string
			for _, label := range m.GetLabel() {
				labels = append(labels, label.GetValue())
			}
			values[strings.Join(labels, "/")] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return values
}
