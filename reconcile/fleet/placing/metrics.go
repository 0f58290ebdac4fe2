package placing

import (
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
)

// metrics are those of fleet placements. They do not name single ones, so that their number is bounded.
type metrics struct {
	placements *gauges
	replicas   *gauges
	moves      *prometheus.CounterVec
	movedIn    map[string]bool // members that moves has series of; only rounds look at it
	plan       prometheus.Histogram
	members    *gauges
	entries    prometheus.Gauge
	bytes      prometheus.Gauge
	dropped    prometheus.Counter
}

func newMetrics(to prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		movedIn:    map[string]bool{},
		placements: newGauges("plimsoll_fleet_placements", "FleetPlacements by the reason of their condition Ready.", "reason"),
		replicas: newGauges("plimsoll_fleet_replicas", "Replicas of all FleetPlacements in a member by capacity type: wanted, running and ready.",
			"member", "capacity", "state"),
		moves: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plimsoll_fleet_moves_total", Help: "Replicas that fleet placement has started (up) and stopped (down) in a member, by capacity type.",
		}, []string{"member", "capacity", "direction"}),
		plan: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "plimsoll_fleet_plan_seconds", Help: "How long it took to plan all FleetPlacements once.", Buckets: prometheus.ExponentialBuckets(1e-4, 4, 9),
		}),
		members: newGauges("plimsoll_fleet_members", "FleetPlacements by member and by the state that it is in for them, such as Lost.", "member", "state"),
		entries: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "plimsoll_fleet_history_entries", Help: "Changes of spot supply in the fleet's own history.",
		}),
		bytes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "plimsoll_fleet_history_bytes", Help: "Size of the fleet's own history.",
		}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "plimsoll_fleet_history_dropped_total", Help: "Changes of spot supply that were dropped from the fleet's own history because it was full.",
		}),
	}
	if to == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.placements, m.replicas, m.moves, m.plan, m.members, m.entries, m.bytes, m.dropped} {
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
	m.movedIn[move.Member] = true
}

// forget drops what is counted of members that are registered no more.
func (m *metrics) forget(members []Member) {
	for name := range m.movedIn {
		if !slices.ContainsFunc(members, func(is Member) bool { return is.Name == name }) {
			m.moves.DeletePartialMatch(prometheus.Labels{"member": name})
			delete(m.movedIn, name)
		}
	}
}

// seen sets what is counted of all FleetPlacements. Only rounds call it.
func (m *metrics) seen(items []*item) {
	placements, members, replicas := counted{}, counted{}, counted{}
	for _, it := range items {
		if ready := meta.FindStatusCondition(it.object.Status.Conditions, reconcile.ConditionReady); ready != nil {
			placements[[3]string{ready.Reason}]++
		}
		for i := range it.object.Status.Members {
			s := &it.object.Status.Members[i]
			if it.stop == nil { // else nobody looks at its members, and the status keeps what was last seen
				members[[3]string{s.Name, string(s.State)}]++
			}
			for capacity, c := range map[string]*v1alpha1.Counts{"spot": &s.Spot, "on-demand": &s.OnDemand} {
				replicas[[3]string{s.Name, capacity, "wanted"}] += float64(c.Wanted)
				replicas[[3]string{s.Name, capacity, "running"}] += float64(c.Running)
				replicas[[3]string{s.Name, capacity, "ready"}] += float64(c.Ready)
			}
		}
	}
	m.placements.set(placements)
	m.members.set(members)
	m.replicas.set(replicas)
}

// counted are values by up to three labels.
type counted map[[3]string]float64

// gauges have as many series as there are labels in what they were set to last. One that stays is there at any time with its whole
// value: an alert that waits for some minutes starts again when a scrape finds its series missing.
type gauges struct {
	*prometheus.GaugeVec
	labels int
	last   counted
}

func newGauges(name, help string, labels ...string) *gauges {
	return &gauges{GaugeVec: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels), labels: len(labels)}
}

func (g *gauges) set(now counted) {
	for labels, value := range now {
		g.WithLabelValues(labels[:g.labels]...).Set(value)
	}
	for labels := range g.last {
		if _, stays := now[labels]; !stays {
			g.DeleteLabelValues(labels[:g.labels]...)
		}
	}
	g.last = now
}

// kept sets what there is of the fleet's history, and counts what of it was dropped since.
func (m *metrics) kept(entries, bytes, dropped int) {
	m.entries.Set(float64(entries))
	m.bytes.Set(float64(bytes))
	m.dropped.Add(float64(dropped))
}
