package clusters

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/intake"
)

// metrics are what the package measures. All series of a member go when the member leaves.
type metrics struct {
	state    *prometheus.GaugeVec
	breaker  *prometheus.GaugeVec
	probe    *prometheus.HistogramVec
	refused  *prometheus.CounterVec
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	paced    *prometheus.CounterVec
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	buckets := []float64{.001, .005, .025, .1, .5, 2.5, 10, 30}
	m := &metrics{
		state: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "plimsoll_member_state",
			Help: "1 for the state a member is in, 0 for the others.",
		}, []string{"member", "state"}),
		breaker: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "plimsoll_member_breaker_open",
			Help: "1 while requests to a member are refused because it does not answer.",
		}, []string{"member"}),
		probe: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "plimsoll_member_probe_duration_seconds",
			Help:    "How long probes of a member took, failed ones included.",
			Buckets: buckets,
		}, []string{"member"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plimsoll_member_refused_total",
			Help: "Registrations, and changes of registrations, that were refused.",
		}, []string{"reason"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plimsoll_member_requests_total",
			Help: "Requests to a member by class (read, write, watch) and by HTTP status, or the cause where there is no status.",
		}, []string{"member", "class", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "plimsoll_member_request_duration_seconds",
			Help:    "Time until a member's response headers, by class (read, write); waiting for the client's own budget included.",
			Buckets: buckets,
		}, []string{"member", "class"}),
		paced: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plimsoll_member_paced_seconds_total",
			Help: "Time that events and large answers of a member waited because it sent more than the hub reads at a time.",
		}, []string{"member"}),
	}
	if registerer == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.state, m.breaker, m.probe, m.refused, m.requests, m.duration, m.paced} {
		if err := registerer.Register(c); err != nil {
			return nil, fmt.Errorf("register the metrics of members: %w", err)
		}
	}
	return m, nil
}

// setState shows state as the member's only one.
func (m *metrics) setState(member string, state State) {
	for _, s := range states {
		value := 0.0
		if s == state {
			value = 1
		}
		m.state.WithLabelValues(member, string(s)).Set(value)
	}
}

// forget removes all series of a member.
func (m *metrics) forget(member string) {
	label := prometheus.Labels{"member": member}
	m.state.DeletePartialMatch(label)
	m.breaker.DeletePartialMatch(label)
	m.probe.DeletePartialMatch(label)
	m.requests.DeletePartialMatch(label)
	m.duration.DeletePartialMatch(label)
	m.paced.DeletePartialMatch(label)
}

// pacing counts how long what a member sends waits for its pace. It adds to the same series even after the member has left, where
// nobody sees it.
func (m *metrics) pacing(member string) func(time.Duration) {
	waited := m.paced.WithLabelValues(member)
	return func(d time.Duration) { waited.Add(d.Seconds()) }
}

// instrument counts and times the requests of member.
func (m *metrics) instrument(member string, next http.RoundTripper) http.RoundTripper {
	return intake.RoundTripper(func(req *http.Request) (*http.Response, error) {
		class, start := classOf(req), time.Now()
		resp, err := next.RoundTrip(req)
		m.requests.WithLabelValues(member, class, codeOf(resp, err)).Inc()
		if class != classWatch {
			m.duration.WithLabelValues(member, class).Observe(time.Since(start).Seconds())
		}
		return resp, err
	})
}

const (
	classRead  = "read"
	classWrite = "write"
	classWatch = "watch"
)

func classOf(req *http.Request) string {
	switch {
	case isWrite(req):
		return classWrite
	case intake.IsStream(req):
		return classWatch
	}
	return classRead
}

// codeOf is the status, or one word for what kept the request from getting one.
func codeOf(resp *http.Response, err error) string {
	var timeout interface{ Timeout() bool }
	switch {
	case err == nil && http.StatusText(resp.StatusCode) == "":
		return "unknown" // a member may answer with any of a thousand
	case err == nil:
		return strconv.Itoa(resp.StatusCode)
	case errors.Is(err, ErrNotOwner):
		return "fenced"
	case errors.Is(err, ErrBreakerOpen):
		return "breaker"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	}
	return "error"
}

// cacheSeries shows the age and the size of each cache at the time of a scrape.
type cacheSeries struct{ provider *Provider }

var cacheAge = prometheus.NewDesc("plimsoll_member_cache_age_seconds",
	"For how long a cached kind of a member has not been watched; 0 while its watch is open.", []string{"member", "kind"}, nil)

var cacheBytes = prometheus.NewDesc("plimsoll_member_cache_bytes",
	"The approximate memory that a cached kind of a member takes, which clusters.maxCacheMiB and clusters.maxTotalCacheMiB limit.", []string{"member", "kind"}, nil)

// Describe implements prometheus.Collector.
func (c cacheSeries) Describe(to chan<- *prometheus.Desc) {
	to <- cacheAge
	to <- cacheBytes
}

// Collect implements prometheus.Collector.
func (c cacheSeries) Collect(to chan<- prometheus.Metric) {
	for _, member := range c.provider.engagedMembers() {
		for _, kind := range member.kinds {
			warm, _ := kind.get()
			if warm == nil {
				continue
			}
			age := 0.0
			if closed := warm.closedSince(); !closed.IsZero() {
				age = time.Since(closed).Seconds()
			}
			to <- prometheus.MustNewConstMetric(cacheAge, prometheus.GaugeValue, age, member.name, kind.name)
			to <- prometheus.MustNewConstMetric(cacheBytes, prometheus.GaugeValue, float64(warm.budget.Used()), member.name, kind.name)
		}
	}
}
