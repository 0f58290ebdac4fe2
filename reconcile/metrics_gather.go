package reconcile

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// unfed are the series of controller-runtime that count how reconciles end. Its half of a controller sees none fail: what a
// result means is reported to the queue, and plimsoll_reconcile_* count it by member.
var unfed = map[string]bool{
	"controller_runtime_reconcile_total":                 true,
	"controller_runtime_reconcile_errors_total":          true,
	"controller_runtime_terminal_reconcile_errors_total": true,
	"controller_runtime_reconcile_panics_total":          true,
	"controller_runtime_reconcile_timeouts_total":        true,
}

// Gatherer returns what from gathers, without the series of controller-runtime that say of this runtime's controllers that no
// reconcile fails: plimsoll_reconcile_total and plimsoll_reconcile_errors_total say how they end. Series of other controllers
// stay. Serve this and not controller-runtime's registry itself. It may be used concurrently.
func (rt *Runtime) Gatherer(from prometheus.Gatherer) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := from.Gather()
		mine := rt.controllerNames()
		kept := make([]*dto.MetricFamily, 0, len(families))
		for _, family := range families {
			if unfed[family.GetName()] {
				if family = without(family, mine); family == nil {
					continue
				}
			}
			kept = append(kept, family)
		}
		return kept, err
	})
}

func (rt *Runtime) controllerNames() []string {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return slices.Sorted(maps.Keys(rt.queues))
}

// without leaves out the series of controllers; nil: nothing is left.
func without(family *dto.MetricFamily, controllers []string) *dto.MetricFamily {
	var left []*dto.Metric
	for _, metric := range family.GetMetric() {
		of := slices.ContainsFunc(metric.GetLabel(), func(pair *dto.LabelPair) bool {
			return pair.GetName() == labelController && slices.Contains(controllers, pair.GetValue())
		})
		if !of {
			left = append(left, metric)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return &dto.MetricFamily{Name: family.Name, Help: family.Help, Type: family.Type, Unit: family.Unit, Metric: left}
}
