package spot

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

const metricsNamespace = "plimsoll"

// metrics of placement. Every series carries the member's name; those of a member or workload that is gone are deleted.
type metrics struct {
	replicas *workloadSeries
	moves    *prometheus.CounterVec
	urgent   *prometheus.CounterVec
	plans    prometheus.Histogram

	undecided *prometheus.CounterVec
}

func newMetrics(registerer prometheus.Registerer, workloads int, reservations func() map[string]int, dry func(capacity.Type) map[string]int) (*metrics, error) {
	m := &metrics{
		replicas: newWorkloadSeries(workloads),
		moves: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metricsNamespace, Name: "moves_total", Help: "Pods evicted or released to move their replica to the other capacity type.",
		}, []string{"member"}),
		urgent: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metricsNamespace, Name: "replacements_total",
			Help: "Pods evicted or released because their node is being terminated (interruption) or is at risk of it (advisory), or because the capacity type they wait for has no room (drought).",
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

func (m *metrics) planned(v *WorkloadView) {
	m.replicas.set(v.Member, v.WorkloadKey, countsOf(v))
}

// planTook notes the time of one plan.
func (m *metrics) planTook(d time.Duration) { m.plans.Observe(d.Seconds()) }

// moved notes pods that were taken away, or released, by purpose. What ends a release was counted when it began.
func (m *metrics) moved(member string, counts map[plan.Purpose]int) {
	for purpose, n := range counts {
		switch purpose {
		case plan.PurposeMove:
			m.moves.WithLabelValues(member).Add(float64(n))
		case plan.PurposeDrought, plan.PurposeInterruption, plan.PurposeAdvisory:
			m.urgent.WithLabelValues(member, string(purpose)).Add(float64(n))
		}
	}
}

func (m *metrics) forgetWorkload(member string, key policy.WorkloadKey) {
	m.replicas.forget(member, key)
}

// forgetWorkloads drops the series of all workloads of a member.
func (m *metrics) forgetWorkloads(member string) {
	m.replicas.forgetMember(member)
}

func (m *metrics) forgetMember(member string) {
	m.forgetWorkloads(member)
	m.moves.DeleteLabelValues(member)
	m.undecided.DeleteLabelValues(member)
	m.urgent.DeletePartialMatch(prometheus.Labels{"member": member})
}

var reservationsDesc = prometheus.NewDesc(prometheus.BuildFQName(metricsNamespace, "", "reservations_live"),
	"Slots reserved for pods that were admitted and are not in the cache yet.", []string{"member"}, nil)

var dryDesc = prometheus.NewDesc(prometheus.BuildFQName(metricsNamespace, "", "spot_dry"),
	"Shapes of pods for which the member's capacity of the type (spot or on-demand) has no room.", []string{"member", "capacity"}, nil)

// dryCollector counts verdicts by member and capacity type when it is asked.
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
