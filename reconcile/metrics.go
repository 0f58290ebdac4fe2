package reconcile

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Labels of the metrics. Every metric carries the member's name.
const (
	labelController = "controller"
	labelMember     = "member"
	labelOutcome    = "outcome"
	labelPriority   = "priority"
)

var (
	durationBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	waitBuckets     = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .5, 1, 5, 30, 60, 300}
)

// metrics counts what reconciles do, and reads the depths of the queues when it is asked. The series of a member that
// left are deleted.
type metrics struct {
	rt *Runtime

	total, failed, panics, events *prometheus.CounterVec
	duration, wait                *prometheus.HistogramVec
	depth, running                *prometheus.Desc
	stuck, overdue, detached      *prometheus.Desc
	watchAge                      *prometheus.Desc
}

func newMetrics(rt *Runtime) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	return &metrics{
		rt: rt,
		total: counter("plimsoll_reconcile_total", "Reconciles that ended, by outcome.",
			labelController, labelMember, labelOutcome),
		failed: counter("plimsoll_reconcile_errors_total", "Reconciles that ended with an error, a panic or a missed deadline.",
			labelController, labelMember),
		panics: counter("plimsoll_reconcile_panics_total", "Panics caught in reconcilers and mappers.",
			labelController, labelMember),
		events: counter("plimsoll_events_dropped_total", "Events that could not be recorded in the member.", labelMember),
		duration: histogram("plimsoll_reconcile_duration_seconds", "Time that a reconcile took.", durationBuckets,
			labelController, labelMember),
		wait: histogram("plimsoll_queue_wait_seconds",
			"Time from the moment a key could run (its event, or the end of its member's hold) to the start of its reconcile.",
			waitBuckets, labelMember, labelPriority),
		depth: prometheus.NewDesc("plimsoll_queue_depth", "Keys that are queued, and those that are held because this replica does not act on the member, or its breaker is open.",
			[]string{labelController, labelMember, labelPriority}, nil),
		running: prometheus.NewDesc("plimsoll_reconciles_running", "Reconciles that run now.",
			[]string{labelController, labelMember}, nil),
		stuck: prometheus.NewDesc("plimsoll_reconcile_stuck", "Reconciles that have not returned although their deadline has passed.",
			[]string{labelController, labelMember}, nil),
		detached: prometheus.NewDesc("plimsoll_member_detached", "1 for a member that is detached by force: no finalizer waits for it.", []string{labelMember}, nil),
		watchAge: prometheus.NewDesc("plimsoll_dependency_watch_age_seconds",
			"For how long a watch for what objects depend on has been closed, the longest of a member; 0 while all are open.", []string{labelMember}, nil),
		overdue: prometheus.NewDesc("plimsoll_finalizers_overdue", "Objects in deletion that could not be cleaned up within the deadline.",
			[]string{labelController, labelMember}, nil),
	}
}

func (m *metrics) vectors() []prometheus.Collector {
	return []prometheus.Collector{m.total, m.failed, m.panics, m.events, m.duration, m.wait}
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(out chan<- *prometheus.Desc) {
	for _, v := range m.vectors() {
		v.Describe(out)
	}
	out <- m.depth
	out <- m.running
	out <- m.stuck
	out <- m.overdue
	out <- m.detached
	out <- m.watchAge
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	for _, v := range m.vectors() {
		v.Collect(out)
	}
	for _, member := range m.rt.allDetached() {
		out <- prometheus.MustNewConstMetric(m.detached, prometheus.GaugeValue, 1, member)
	}
	for member, age := range m.rt.dependencies.WatchAges() {
		out <- prometheus.MustNewConstMetric(m.watchAge, prometheus.GaugeValue, age.Seconds(), member)
	}
	for _, l := range m.rt.depths() {
		for b, n := range l.queued {
			out <- prometheus.MustNewConstMetric(m.depth, prometheus.GaugeValue, float64(n),
				l.controller, l.member, Priority(b).String())
		}
		out <- prometheus.MustNewConstMetric(m.running, prometheus.GaugeValue, float64(l.running), l.controller, l.member)
		out <- prometheus.MustNewConstMetric(m.stuck, prometheus.GaugeValue, float64(l.stuck), l.controller, l.member)
		out <- prometheus.MustNewConstMetric(m.overdue, prometheus.GaugeValue, float64(l.overdue), l.controller, l.member)
	}
}

// flowDepth is how full one flow is.
type flowDepth struct {
	controller, member string
	queued             [priorities]int
	running            int
	stuck, overdue     int
}

func (rt *Runtime) depths() []flowDepth {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	var all []flowDepth
	for _, q := range rt.queues {
		for name, l := range q.flows {
			d := flowDepth{controller: q.name, member: name, running: l.running, stuck: q.stuck(l, rt.now()), overdue: l.overdue}
			for b := range l.seats {
				d.queued[b] = l.seats[b].line.n
			}
			all = append(all, d)
		}
	}
	return all
}

// ran counts a reconcile.
func (m *metrics) ran(controller string, w work, v decision, took time.Duration) {
	member, known := w.flow.member.name, &w.flow.measures
	known.once.Do(func() {
		known.duration = m.duration.WithLabelValues(controller, member)
		known.done = m.total.WithLabelValues(controller, member, outcomeLabels[codeDone])
		for b := range known.wait {
			known.wait[b] = m.wait.WithLabelValues(member, Priority(b).String())
		}
	})
	known.wait[w.priority].Observe(w.waited.Seconds())
	known.duration.Observe(took.Seconds())
	if v.outcome == codeDone {
		known.done.Inc()
		return
	}
	m.total.WithLabelValues(controller, member, outcomeLabels[v.outcome]).Inc()
	if v.failed() {
		m.failed.WithLabelValues(controller, member).Inc()
	}
}

// measures are the series of a flow that every reconcile adds to, so that they are not searched for each time.
type measures struct {
	once     sync.Once
	wait     [priorities]prometheus.Observer
	duration prometheus.Observer
	done     prometheus.Counter
}

func (m *metrics) panicked(controller, member string) {
	m.panics.WithLabelValues(controller, member).Inc()
}

// left deletes the series of a controller in a member, and those of the member if no controller is left there.
func (m *metrics) left(controller, member string, noneAnywhere bool) {
	here := prometheus.Labels{labelController: controller, labelMember: member}
	m.total.DeletePartialMatch(here)
	m.failed.DeletePartialMatch(here)
	m.panics.DeletePartialMatch(here)
	m.duration.DeletePartialMatch(here)
	if noneAnywhere {
		m.wait.DeletePartialMatch(prometheus.Labels{labelMember: member})
		m.events.DeletePartialMatch(prometheus.Labels{labelMember: member})
	}
}
