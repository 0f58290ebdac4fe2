package clusters

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"

	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
)

// Options configure a [Provider]. Namespace, Scheme, Fence and one of HubConfig and Secrets are required.
type Options struct {
	// Namespace holds the registration Secrets, in the hub cluster. They are of type [KubeconfigType], unless it is HubNamespace.
	Namespace string
	// HubNamespace holds the hub's own keys. A registration there is taken if it is Namespace as well or AlsoHubNamespace is set,
	// and its condition Separate is False. "": nobody asks where registrations are and what type they have.
	HubNamespace string
	// AlsoHubNamespace takes registrations from HubNamespace as well, for names that Namespace does not have.
	AlsoHubNamespace bool
	// HubConfig leads to the hub cluster. The provider makes a client of its own.
	HubConfig *rest.Config
	// Secrets is used instead of HubConfig when it is set.
	Secrets corev1client.SecretsGetter

	// Rules say what a registration may ask of the hub.
	Rules kubeconfig.Rules
	// ReservedNames are names that no member may have.
	ReservedNames []string

	// Kinds are cached in every member; more may be added with [Provider.AddKinds] before Start.
	Kinds []Kind
	// Access is what every member is asked to permit; more may be added with [Provider.AddAccess] before Start.
	Access []Access
	// Scheme knows the kinds.
	Scheme *runtime.Scheme
	// Fence decides about each write to a member.
	Fence Fence

	// QPS and Burst limit the requests to one member, caches and probes left out. Default 200 a second and 400.
	QPS   float64
	Burst int
	// RequestTimeout bounds one request to a member, its whole answer included; watches are excepted. Default 10 s.
	RequestTimeout time.Duration
	// WriteTimeout bounds one write to a member, and must not be longer than what the Fence reckons with. Default
	// RequestTimeout.
	WriteTimeout time.Duration
	// AnswerBytes bounds one answer of a member, after decompression. Caches are filled in pages of 500 objects, or fewer where
	// these have more than an eighth of it. Default 64 MiB.
	AnswerBytes int64
	// EventBytes bounds one event of a watch. Default 4 MiB: API servers store no object of more than 1.5 MiB.
	EventBytes int64
	// CacheBytes bounds what all caches of a member take in memory, about, and CacheObjects the objects of one kind. A kind
	// that exceeds them is no longer cached, and the member is Degraded. Default 256 MiB and 200,000.
	CacheBytes   int64
	CacheObjects int
	// KindBytes bounds what the caches of one kind of a member take in memory, about. Default CacheBytes / 2.
	KindBytes int64
	// FleetCacheBytes bounds what the caches of all members take in memory, about. Where they exceed it, the member whose caches are the
	// largest loses its largest kind, and is Degraded. Default 0: no limit.
	FleetCacheBytes int64
	// WarmTimeout bounds one attempt to fill the cache of one kind, and one list request of it. Default 30 s.
	WarmTimeout time.Duration
	// ProbeInterval is the time between two probes of a healthy member. Default 10 s.
	ProbeInterval time.Duration
	// ProbeTimeout bounds the answer to one request of a probe, from when it was sent. Default 5 s.
	ProbeTimeout time.Duration
	// FailureThreshold is how many probes in a row must fail before a healthy member is Unreachable and its breaker
	// opens, whatever the failure was. Default 3.
	FailureThreshold int
	// StaleLimit is how long a cached kind of a member that answers may be without an open watch before the member is
	// Degraded. Default 1 min.
	StaleLimit time.Duration
	// RetryMin and RetryMax bound the exponential back-off (with jitter) of what is tried again: probes that failed, and
	// kinds that could not be cached. Default 1 s and 30 s. Probes never wait for longer than ProbeInterval and its jitter:
	// all that is held back for a member continues with the first good one.
	RetryMin, RetryMax time.Duration

	// Log takes what happens to members. Default: discarded.
	Log *slog.Logger
	// Registerer takes the metrics. Nil: nobody sees them.
	Registerer prometheus.Registerer
	// Events records what happens to a registration on its Secret. Nil: nothing is recorded.
	Events events.EventRecorder

	// ways builds the ways to a member. Default newTransports; another one needs no network.
	ways func(name string, vetted *kubeconfig.Vetted, o transportOptions) (*transports, error)
}

// withDefaults checks o and fills in what was left out.
func (o Options) withDefaults() (Options, error) {
	switch {
	case o.Namespace == "":
		return o, errors.New("members: Namespace is required")
	case o.AlsoHubNamespace && o.HubNamespace == "":
		return o, errors.New("members: AlsoHubNamespace needs HubNamespace")
	case o.Scheme == nil:
		return o, errors.New("members: Scheme is required")
	case o.Fence == nil:
		return o, errors.New("members: Fence is required")
	case o.HubConfig == nil && o.Secrets == nil:
		return o, errors.New("members: one of HubConfig and Secrets is required")
	}
	setDefault(&o.QPS, 200)
	setDefault(&o.Burst, 400)
	setDefault(&o.FailureThreshold, 3)
	setDefault(&o.RequestTimeout, 10*time.Second)
	setDefault(&o.WriteTimeout, o.RequestTimeout)
	setDefault(&o.WarmTimeout, 30*time.Second)
	setDefault(&o.AnswerBytes, 64<<20)
	setDefault(&o.EventBytes, 4<<20)
	setDefault(&o.CacheBytes, 256<<20)
	setDefault(&o.CacheObjects, 200_000)
	setDefault(&o.KindBytes, o.CacheBytes/2)
	setDefault(&o.ProbeInterval, 10*time.Second)
	setDefault(&o.ProbeTimeout, 5*time.Second)
	setDefault(&o.StaleLimit, time.Minute)
	setDefault(&o.RetryMin, time.Second)
	setDefault(&o.RetryMax, 30*time.Second)
	for _, option := range []struct {
		name  string
		value float64
	}{
		{"QPS", o.QPS}, {"Burst", float64(o.Burst)}, {"FailureThreshold", float64(o.FailureThreshold)},
		{"RequestTimeout", float64(o.RequestTimeout)}, {"WriteTimeout", float64(o.WriteTimeout)}, {"WarmTimeout", float64(o.WarmTimeout)},
		{"ProbeInterval", float64(o.ProbeInterval)}, {"ProbeTimeout", float64(o.ProbeTimeout)}, {"RetryMin", float64(o.RetryMin)},
		{"StaleLimit", float64(o.StaleLimit)}, {"AnswerBytes", float64(o.AnswerBytes)}, {"EventBytes", float64(o.EventBytes)},
		{"CacheBytes", float64(o.CacheBytes)}, {"CacheObjects", float64(o.CacheObjects)}, {"KindBytes", float64(o.KindBytes)},
		{"FleetCacheBytes", float64(o.FleetCacheBytes)},
	} {
		if option.value < 0 {
			return o, fmt.Errorf("members: %s must not be negative", option.name)
		}
	}
	if o.RetryMax < o.RetryMin {
		return o, fmt.Errorf("members: RetryMax %s must not be less than RetryMin %s", o.RetryMax, o.RetryMin)
	}
	if o.ways == nil {
		o.ways = newTransports
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// probeBackoff is the back-off of probes: a member that does not answer is not asked less often than one that does.
func (o Options) probeBackoff() wait.Backoff {
	backoff := o.backoff()
	backoff.Cap = min(backoff.Cap, o.ProbeInterval)
	backoff.Duration = min(backoff.Duration, backoff.Cap)
	return backoff
}

// backoff doubles from RetryMin to RetryMax, each with up to a fifth more.
func (o Options) backoff() wait.Backoff {
	return wait.Backoff{Duration: o.RetryMin, Factor: 2, Jitter: 0.2, Steps: math.MaxInt32, Cap: o.RetryMax}
}

// spacing is a back-off for what costs as much each time as is allowed: its pauses become ten times longer than others (excessPatience), and begin
// anew after a good time of that length.
type spacing struct{ first, now wait.Backoff }

func newSpacing(backoff wait.Backoff) spacing {
	backoff.Cap *= excessPatience
	return spacing{backoff, backoff}
}

// next is the pause before the next attempt.
func (s *spacing) next() time.Duration { return s.now.Step() }

// lasted takes account of a good time.
func (s *spacing) lasted(good time.Duration) {
	if good > s.first.Cap {
		s.now = s.first
	}
}
