package report

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

const metricsNamespace = "plimsoll"

// Metrics of placement. Every series carries the member's name; those of a member or workload that is gone are to be deleted by the Forget
// methods. Safe for concurrent use. [NewMetrics] makes them.
type Metrics struct {
	replicas *workloadSeries
	moves    *prometheus.CounterVec
	urgent   *prometheus.CounterVec
	plans    prometheus.Histogram

	undecided *prometheus.CounterVec
}

// NewMetrics creates the metrics and registers them, unless registerer is nil. workloads is how many workloads of a member have series of
// their own, 0: [DefaultWorkloadSeries]. reservations and dry count by member at every scrape, live reservations and shapes of pods that a
// capacity type has no room for; both must be safe for concurrent use. The error is that of the registerer.
func NewMetrics(registerer prometheus.Registerer, workloads int, reservations func() map[string]int, dry func(capacity.Type) map[string]int) (*Metrics, error) {
	m := &Metrics{
		replicas: newWorkloadSeries(workloads),
		moves: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metricsNamespace, Name: "moves_total", Help: "Pods evicted or released to move their replica to the other capacity type.",
		}, []string{"member"}),
		urgent: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metricsNamespace, Name: "replacements_total",
			Help: "Pods evicted or released because their node is being terminated (interruption) or is at risk of it (advisory), or because the capacity type they wait for has insufficient capacity (insufficient-capacity).",
		}, []string{"member", "for"}),
		undecided: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metricsNamespace, Name: "pods_undecided_total",
			Help: "Pods of enabled workloads that were found without a decision of the webhook: the member's API server did not get one in time.",
		}, []string{"member"}),
		plans: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: metricsNamespace, Name: "plan_seconds", Help: "Time to plan one workload.",
			// Close together below 5 ms, which is what the 99th percentile is promised to stay under.
			Buckets: []float64{.00001, .00003, .0001, .0003, .001, .0015, .002, .0025, .003, .0035, .004, .0045, .005, .0075, .01, .02, .05, .1},
		}),
	}
	if registerer == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.replicas, m.moves, m.urgent, m.undecided, m.plans, &memberCollector{reservationsDesc, reservations}, &dryCollector{dry}} {
		if err := registerer.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// ShowWorkload sets the series of a workload to the outcome of its last plan.
func (m *Metrics) ShowWorkload(v *Workload) {
	m.replicas.set(v.Member, v.WorkloadKey, countsOf(v))
}

// ObservePlan counts one plan and the time that it took.
func (m *Metrics) ObservePlan(d time.Duration) { m.plans.Observe(d.Seconds()) }

// CountMoves counts pods of a member that were evicted or released, by purpose. What ends a release was counted when it began.
func (m *Metrics) CountMoves(member string, counts map[plan.Purpose]int) {
	for purpose, n := range counts {
		switch purpose {
		case plan.PurposeMove:
			m.moves.WithLabelValues(member).Add(float64(n))
		case plan.PurposeInsufficientCapacity, plan.PurposeInterruption, plan.PurposeAdvisory:
			m.urgent.WithLabelValues(member, string(purpose)).Add(float64(n))
		}
	}
}

// CountUndecided counts n more pods of a member that were found without a decision of the webhook.
func (m *Metrics) CountUndecided(member string, n int) {
	m.undecided.WithLabelValues(member).Add(float64(n))
}

// ForgetWorkload deletes the series of a workload.
func (m *Metrics) ForgetWorkload(member string, key policy.WorkloadKey) {
	m.replicas.forget(member, key)
}

// ForgetWorkloads deletes the series of all workloads of a member.
func (m *Metrics) ForgetWorkloads(member string) {
	m.replicas.forgetMember(member)
}

// ForgetMember deletes all series of a member.
func (m *Metrics) ForgetMember(member string) {
	m.ForgetWorkloads(member)
	m.moves.DeleteLabelValues(member)
	m.undecided.DeleteLabelValues(member)
	m.urgent.DeletePartialMatch(prometheus.Labels{"member": member})
}

var reservationsDesc = prometheus.NewDesc(prometheus.BuildFQName(metricsNamespace, "", "reservations_live"),
	"Slots reserved for pods that were admitted and are not in the cache yet.", []string{"member"}, nil)

var dryDesc = prometheus.NewDesc(prometheus.BuildFQName(metricsNamespace, "", "spot_dry"),
	"Shapes of pods for which the member's capacity of the type (spot or on-demand) has no room.", []string{"member", "capacity"}, nil)

// dryCollector counts decisions by member and capacity type when it is asked.
type dryCollector struct {
	count func(capacity.Type) map[string]int
}

// Describe implements prometheus.Collector.
func (c *dryCollector) Describe(into chan<- *prometheus.Desc) { into <- dryDesc }

// Collect implements prometheus.Collector.
func (c *dryCollector) Collect(into chan<- prometheus.Metric) {
	for _, capacityType := range []capacity.Type{capacity.Spot, capacity.OnDemand} {
		for member, n := range c.count(capacityType) {
			into <- prometheus.MustNewConstMetric(dryDesc, prometheus.GaugeValue, float64(n), member, string(capacityType))
		}
	}
}

// memberCollector counts by member when it is asked: a gauge that is kept current would cost every admission.
type memberCollector struct {
	desc  *prometheus.Desc
	count func() map[string]int
}

// Describe implements prometheus.Collector.
func (c *memberCollector) Describe(into chan<- *prometheus.Desc) { into <- c.desc }

// Collect implements prometheus.Collector.
func (c *memberCollector) Collect(into chan<- prometheus.Metric) {
	for member, n := range c.count() {
		into <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, float64(n), member)
	}
}
