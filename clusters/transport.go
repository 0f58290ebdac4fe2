package clusters

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/intake"
	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
	"github.com/plimsoll-dev/plimsoll/clusters/quantities"
)

const (
	// connectPatience is how long a probe may wait for its turn and its connection before its own time begins. A name that
	// must be resolved, a connection and its TLS handshake may take dialTimeout each.
	connectPatience = 3 * kubeconfig.DialTimeout

	// A health check, a discovery of one group and version, or an access review has small answers: of the largest groups some dozens of kB.
	maxProbeBody = 512 << 10

	// A page of a cache's list may have this part of what an answer may, for pages can be made smaller; and as much as some
	// of the largest objects at least.
	pageShare    = 8
	minPageBytes = 1 << 20
	// minPartBytes is what one object, and a page that a client asks for, may have at least: more than etcd stores of an object.
	minPartBytes = 4 << 20
)

var errBudget = errors.New("waiting for the client budget")

// transports are the ways to one member. All share the connections, the credentials and the fence.
type transports struct {
	// client carries what reconcilers do: metrics, breaker, budget, fence, time-out.
	client http.RoundTripper
	// informers carries caches: no budget, and requests wait while the breaker is open.
	informers http.RoundTripper
	// probes carries health checks, discovery and access reviews: no budget, no breaker, small answers only.
	probes http.RoundTripper
	// closeIdle closes the connections that are not in use.
	closeIdle func()
}

// transportOptions are the limits of one member.
type transportOptions struct {
	qps            float64
	burst          int
	requestTimeout time.Duration
	writeTimeout   time.Duration // 0: requestTimeout
	listTimeout    time.Duration
	probeTimeout   time.Duration
	root           string // path of the API server's URL, without a slash at its end
	answerBytes    int64  // of one answer
	eventBytes     int64  // of one event of a watch
	paths          *quantities.Paths
	pace           intake.Pace // of all that the member sends
	fence          Fence
	metrics        *metrics
	breaker        *breaker
}

// newTransports builds the ways to the member name.
func newTransports(name string, vetted *kubeconfig.Vetted, o transportOptions) (*transports, error) {
	wire, closeIdle, err := vetted.Transport(cmp.Or(o.writeTimeout, o.requestTimeout))
	if err != nil {
		return nil, err
	}
	if vetted.Compresses() {
		wire = intake.Unzipped(wire)
	}
	if host, err := url.Parse(vetted.Host()); err == nil {
		o.root = strings.TrimSuffix(host.Path, "/")
	}
	return transportsOver(name, wire, closeIdle, o), nil
}

// transportsOver builds the ways to the member name over what carries all of them.
func transportsOver(name string, wire http.RoundTripper, closeIdle func(), o transportOptions) *transports {
	writeTimeout := cmp.Or(o.writeTimeout, o.requestTimeout)
	limiter := rate.NewLimiter(rate.Limit(o.qps), o.burst)
	took := intake.Intake{Member: name, Paths: o.paths, Event: o.eventBytes, Decodes: intake.NewDecodes(intake.DecodesAtOnce), Pace: o.pace}
	page, small := max(o.answerBytes/pageShare, minPageBytes), min(maxProbeBody, o.answerBytes)
	whole := took.Of(intake.MaxListed, o.answerBytes).Guard(intake.Bounded(name, o.requestTimeout, o.answerBytes, wire))
	part := max(page, min(minPartBytes, o.answerBytes))
	parts := took.Of(intake.MaxPage, part).Guard(limited(name, o, part, wire))
	client := fenced(name, o.fence, writeTimeout, intake.RoundTripper(func(req *http.Request) (*http.Response, error) {
		if listsWhole(req, o.root) {
			return whole.RoundTrip(req)
		}
		return parts.RoundTrip(req)
	}))
	informers := fenced(name, o.fence, writeTimeout, took.Of(intake.MaxPage, page).Paced().Guard(intake.Bounded(name, o.listTimeout, page, wire)))
	probes := fenced(name, o.fence, writeTimeout, took.Of(intake.MaxPage, small).Typed().Guard(intake.BoundedOnceSent(name, o.probeTimeout, o.probeTimeout+connectPatience, small, wire)))
	return &transports{
		client:    o.metrics.instrument(name, o.breaker.guard(budgeted(name, limiter, client))),
		informers: o.metrics.instrument(name, o.breaker.hold(informers)),
		probes:    o.metrics.instrument(name, probes),
		closeIdle: closeIdle,
	}
}

// limited bounds reads, and writes by a time of their own: the fence reckons with it.
func limited(member string, o transportOptions, answer int64, next http.RoundTripper) http.RoundTripper {
	reads := intake.Bounded(member, o.requestTimeout, answer, next)
	writes := intake.Bounded(member, cmp.Or(o.writeTimeout, o.requestTimeout), answer, next)
	return intake.RoundTripper(func(req *http.Request) (*http.Response, error) {
		if isWrite(req) {
			return writes.RoundTrip(req)
		}
		return reads.RoundTrip(req)
	})
}

// listsWhole reports whether a request may ask for a list that is not in pages, or for something else that may be large, such as
// the API's description. All others are about one object or one page. API servers do not heed the limit of a list of version 0.
func listsWhole(req *http.Request, root string) bool {
	query := req.URL.Query()
	if (req.Method != "" && req.Method != http.MethodGet) || (query.Get("limit") != "" && query.Get("resourceVersion") != "0") {
		return false
	}
	path := strings.Split(strings.Trim(strings.TrimPrefix(req.URL.Path, root), "/"), "/")
	switch { // what is before the resource
	case path[0] == "api" && len(path) > 2:
		path = path[2:]
	case path[0] == "apis" && len(path) > 3:
		path = path[3:]
	default:
		return true
	}
	if path[0] == "namespaces" && len(path) > 2 {
		path = path[2:]
	}
	return len(path) == 1
}

// budgeted lets requests wait for their turn.
func budgeted(member string, limiter *rate.Limiter, next http.RoundTripper) http.RoundTripper {
	return intake.RoundTripper(func(req *http.Request) (*http.Response, error) {
		if err := limiter.Wait(req.Context()); err != nil {
			return nil, fmt.Errorf("member %s: %w: %w", member, errBudget, err)
		}
		return next.RoundTrip(req)
	})
}

// httpClient makes a client of a transport that follows no redirect.
func httpClient(transport http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// restConfig is what clients get to see of a member: where it is, and how to get there. The credentials stay in the
// transport. Warnings that a member's server sends are dropped, for they may hold anything.
func restConfig(vetted *kubeconfig.Vetted, transport http.RoundTripper) *rest.Config {
	return &rest.Config{
		Host:                      vetted.Host(),
		Transport:                 transport,
		UserAgent:                 kubeconfig.UserAgent,
		QPS:                       -1,
		WarningHandlerWithContext: rest.NoWarnings{},
	}
}
