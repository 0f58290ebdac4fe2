package webhook

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Outcomes of admission calls that the webhook itself decides; the others are the placer's.
const (
	outcomeForwarded = "forwarded" // sent to the owner, which counts the outcome
	outcomeNoOwner   = "no_owner"  // no replica owns the member, or the owner could not be reached: let through
	outcomeIgnored   = "ignored"   // not the creation of a pod: let through
	outcomeDryRun    = "dry_run"   // answered like any other, and nothing reserved
	outcomeTimeout   = "timeout"   // no answer in time: let through
	outcomeError     = "error"     // the placer failed: let through
)

// Metrics counts admission calls. Series of a member appear with its first call and go with [Metrics.Forget].
type Metrics struct {
	admissions *prometheus.CounterVec
	duration   *prometheus.HistogramVec
	rejected   *prometheus.CounterVec
	members    sync.Map // name → *memberMetrics
	reading    atomic.Int64
}

// memberMetrics are the series of one member, looked up once.
type memberMetrics struct {
	large    largeCalls
	duration prometheus.Observer
	reading  atomic.Int64 // bytes of calls that are being read
	outcomes sync.Map     // outcome → prometheus.Counter
}

// NewMetrics registers the metrics of admission.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		admissions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plimsoll_admissions_total",
			Help: "Admission calls of members by outcome. A call that was forwarded is counted by the owner as well.",
		}, []string{"member", "outcome"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "plimsoll_admission_duration_seconds",
			Help:    "Time from the head of an admission call to its answer.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2},
		}, []string{"member"}),
		rejected: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plimsoll_admission_rejected_total",
			Help: "Calls that were rejected before they were read as admission calls of a member: unknown member or wrong token (not_found), wrong content type (content_type), too large (too_large), without a length (no_length), too many bytes at a time (busy), too many calls at a time or too fast (too_many, once for each connection, which is ended or which its caller gave up), unreadable (unreadable), without the client certificate that webhook.clientCA requires (no_certificate).",
		}, []string{"reason"}),
	}
	for _, collector := range []prometheus.Collector{m.admissions, m.duration, m.rejected} {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("admission metrics: %w", err)
		}
	}
	return m, nil
}

// Forget removes the series of a member that was unregistered.
func (m *Metrics) Forget(member string) {
	m.members.Delete(member)
	labels := prometheus.Labels{"member": member}
	m.admissions.DeletePartialMatch(labels)
	m.duration.DeletePartialMatch(labels)
}

// of returns the series of a member.
func (m *Metrics) of(member string) *memberMetrics {
	found, ok := m.members.Load(member)
	if !ok {
		found, _ = m.members.LoadOrStore(member, &memberMetrics{duration: m.duration.WithLabelValues(member)})
	}
	return found.(*memberMetrics)
}

func (m *Metrics) count(member, outcome string, took time.Duration) {
	series := m.of(member)
	series.duration.Observe(took.Seconds())
	counter, ok := series.outcomes.Load(outcome)
	if !ok {
		counter, _ = series.outcomes.LoadOrStore(outcome, m.admissions.WithLabelValues(member, outcome))
	}
	counter.(prometheus.Counter).Inc()
}

// errMemberBusy says that a member has too many bytes of calls under way, errAllBusy that all members together have.
var errMemberBusy, errAllBusy = errors.New("too many bytes of the member's calls"), errors.New("too many bytes of all calls")

// begin reckons with the bytes of a call while it is read, unless there are too many. What was begun must be ended.
func (m *Metrics) begin(member string, bytes int64) (of *memberMetrics, err error) {
	of = m.of(member)
	if !of.large.allow(bytes) || !reserve(&of.reading, bytes, maxPodBytesOfMember) {
		return nil, errMemberBusy
	}
	if !reserve(&m.reading, bytes, maxPodBytes) {
		of.reading.Add(-bytes)
		return nil, errAllBusy
	}
	return of, nil
}

func (m *Metrics) end(of *memberMetrics, bytes int64) {
	of.reading.Add(-bytes)
	m.reading.Add(-bytes)
}
