package spot

import (
	"github.com/prometheus/client_golang/prometheus"
)

const metricsNamespace = "plimsoll"

// metrics of placement. Every series carries the member's name; those of a member or workload that is gone are deleted.
type metrics struct {
	replicas *prometheus.GaugeVec
	moves    *prometheus.CounterVec
}

func newMetrics(registerer prometheus.Registerer, reservations func() map[string]int) (*metrics, error) {
	m := &metrics{
		replicas: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: metricsNamespace, Name: "workload_replicas",
			Help: "Replicas of a workload by capacity type; count is wanted (by the policy) or actual.",
		}, []string{"member", "namespace", "kind", "name", "capacity", "count"}),
		moves: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metricsNamespace, Name: "moves_total", Help: "Pods evicted to move their replica to the other capacity type.",
		}, []string{"member"}),
	}
	if registerer == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.replicas, m.moves, &reservationCollector{count: reservations}} {
		if err := registerer.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) planned(v *WorkloadView) {
	set := func(capacity Capacity, wanted, actual int) {
		m.replicas.WithLabelValues(v.Member, v.Namespace, v.Kind, v.Name, string(capacity), "wanted").Set(float64(wanted))
		m.replicas.WithLabelValues(v.Member, v.Namespace, v.Kind, v.Name, string(capacity), "actual").Set(float64(actual))
	}
	set(Spot, v.SpotWanted, v.SpotActual)
	set(OnDemand, v.OnDemandWanted, v.OnDemandActual)
}

func (m *metrics) moved(member string, n int) {
	if n > 0 {
		m.moves.WithLabelValues(member).Add(float64(n))
	}
}

func (m *metrics) forgetWorkload(member string, key WorkloadKey) {
	m.replicas.DeletePartialMatch(prometheus.Labels{"member": member, "namespace": key.Namespace, "kind": key.Kind, "name": key.Name})
}

func (m *metrics) forgetMember(member string) {
	m.replicas.DeletePartialMatch(prometheus.Labels{"member": member})
	m.moves.DeleteLabelValues(member)
}

var reservationsDesc = prometheus.NewDesc(prometheus.BuildFQName(metricsNamespace, "", "reservations_live"),
	"Slots promised to pods that were admitted and not seen yet.", []string{"member"}, nil)

// reservationCollector counts when it is asked: a gauge that is kept current would cost every admission.
type reservationCollector struct{ count func() map[string]int }

// Describe implements prometheus.Collector.
func (*reservationCollector) Describe(into chan<- *prometheus.Desc) { into <- reservationsDesc }

// Collect implements prometheus.Collector.
func (c *reservationCollector) Collect(into chan<- prometheus.Metric) {
	for member, n := range c.count() {
		into <- prometheus.MustNewConstMetric(reservationsDesc, prometheus.GaugeValue, float64(n), member)
	}
}
