package placing

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
)

// metrics are those of fleet placements. They do not name single ones, so that their number is bounded.
type metrics struct {
	placements *prometheus.GaugeVec
	replicas   *prometheus.GaugeVec
	moves      *prometheus.CounterVec
	plan       prometheus.Histogram
}

func newMetrics(to prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		placements: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "plimsoll_fleet_placements", Help: "FleetPlacements by the reason of their condition Ready.",
		}, []string{"reason"}),
		replicas: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "plimsoll_fleet_replicas", Help: "Replicas of all FleetPlacements in a member by capacity type: wanted, running and ready.",
		}, []string{"member", "capacity", "state"}),
		moves: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plimsoll_fleet_moves_total", Help: "Replicas that fleet placement has started (up) and stopped (down) in a member, by capacity type.",
		}, []string{"member", "capacity", "direction"}),
		plan: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "plimsoll_fleet_plan_seconds", Help: "How long it took to plan all FleetPlacements once.", Buckets: prometheus.ExponentialBuckets(1e-4, 4, 9),
		}),
	}
	if to == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.placements, m.replicas, m.moves, m.plan} {
		if err := to.Register(c); err != nil {
			return nil, fmt.Errorf("register the metrics of fleet placements: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) planned(took time.Duration) { m.plan.Observe(took.Seconds()) }

func (m *metrics) moved(move *v1alpha1.Move) {
	direction, by := "up", move.By
	if by < 0 {
		direction, by = "down", -by
	}
	m.moves.WithLabelValues(move.Member, move.Capacity, direction).Add(float64(by))
}

// seen sets what is counted of all FleetPlacements.
func (m *metrics) seen(items []*item) {
	m.placements.Reset()
	m.replicas.Reset()
	for _, it := range items {
		if ready := meta.FindStatusCondition(it.object.Status.Conditions, reconcile.ConditionReady); ready != nil {
			m.placements.WithLabelValues(ready.Reason).Inc()
		}
		for i := range it.object.Status.Members {
			s := &it.object.Status.Members[i]
			for capacity, c := range map[string]*v1alpha1.Counts{"spot": &s.Spot, "on-demand": &s.OnDemand} {
				m.replicas.WithLabelValues(s.Name, capacity, "wanted").Add(float64(c.Wanted))
				m.replicas.WithLabelValues(s.Name, capacity, "running").Add(float64(c.Running))
				m.replicas.WithLabelValues(s.Name, capacity, "ready").Add(float64(c.Ready))
			}
		}
	}
}
