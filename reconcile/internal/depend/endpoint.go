package depend

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
)

const (
	// answerTime bounds one call of an endpoint, and answerBody what is read of its answer, in bytes.
	answerTime = 5 * time.Second
	answerBody = 64 << 10
	// answerWait is how long a reconcile waits for an endpoint; the answer that comes later wakes the object.
	answerWait = 500 * time.Millisecond
	// callsAtOnce bounds the calls of endpoints that are under way.
	callsAtOnce = 16
	// maxURL bounds the length of an endpoint's URL, in bytes.
	maxURL = 2048
)

// An endpoint is an HTTPS server outside the fleet that something depends on. Guarded by Index.mu.
type endpoint struct {
	dependents map[*dependent]struct{}
	why        string // in what it is not met, by the last answer
	answered   time.Time
	call       chan struct{} // of the call that is under way; closed when it has ended
}

// endpointOf finds or makes an endpoint. The lock is held.
func (ds *Index) endpointOf(d Dependency) *endpoint {
	p := ds.endpoints[d]
	if p == nil {
		p = &endpoint{dependents: map[*dependent]struct{}{}}
		ds.endpoints[d] = p
	}
	return p
}

// ask says in what an endpoint does not meet a dependency; empty: it does. It is called at most once in retryOutside,
// whoever asks; until a new answer comes, the last one counts.
func (ds *Index) ask(ctx context.Context, d Dependency) string {
	ds.mu.Lock()
	p := ds.endpoints[d]
	if p == nil { // the key's member has left
		ds.mu.Unlock()
		return "it has not been asked"
	}
	if p.call == nil && (p.answered.IsZero() || time.Since(p.answered) >= retryOutside) {
		p.call = make(chan struct{})
		go ds.call(d, p)
	}
	call := p.call
	ds.mu.Unlock()
	if call != nil {
		wait := time.NewTimer(answerWait)
		defer wait.Stop()
		select {
		case <-call:
		case <-wait.C:
		case <-ctx.Done():
		}
	}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if p.answered.IsZero() {
		return "it has not answered yet"
	}
	return p.why
}

// call asks an endpoint and wakes whom its answer concerns.
func (ds *Index) call(d Dependency, p *endpoint) {
	ds.calls <- struct{}{}
	why := "it has not been asked"
	if ds.wants(p) { // it may have waited for long
		why = ds.Outside.ask(context.Background(), d)
	}
	<-ds.calls
	ds.mu.Lock()
	var concerned []wakeUp
	if p.answered.IsZero() || p.why != why {
		for one := range p.dependents {
			concerned = append(concerned, wakeUp{one.flow, one.key})
		}
	}
	p.why, p.answered = why, time.Now()
	close(p.call)
	p.call = nil
	ds.mu.Unlock()
	wakeAll(concerned)
}

// wants reports whether anything depends on the endpoint still. Once nothing does, it is forgotten, and its answer with it.
func (ds *Index) wants(p *endpoint) bool {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	return len(p.dependents) > 0
}

// Outside calls endpoints. It connects only where the rules for members' servers would let it: the address is checked
// between resolving and connecting, no proxy is used, and no redirect leads to another host.
type Outside struct {
	Client *http.Client
}

// NewOutside creates the caller of endpoints in these networks, whose certificates roots have signed; see reconcile.Options.
func NewOutside(networks []netip.Prefix, roots *x509.CertPool) *Outside {
	connections := &http.Transport{
		DialContext:         kubeconfig.Rules{AllowedNetworks: networks}.DialContext(),
		TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: answerTime, ResponseHeaderTimeout: answerTime, MaxResponseHeaderBytes: answerBody,
		ForceAttemptHTTP2: true, DisableKeepAlives: true,
	}
	return &Outside{Client: &http.Client{Transport: connections, Timeout: answerTime, CheckRedirect: stayThere}}
}

var errElsewhere = errors.New("redirect to another host")

// stayThere lets an endpoint redirect within itself, a few times.
func stayThere(to *http.Request, via []*http.Request) error {
	if first := via[0].URL; to.URL.Scheme != first.Scheme || to.URL.Host != first.Host {
		return errElsewhere
	}
	if len(via) > 3 {
		return errors.New("too many redirects")
	}
	return nil
}

const notURL = "the URL is not valid"

// invalidURL says why a URL is never called; empty: it may be.
func invalidURL(raw string) string {
	if len(raw) > maxURL {
		return notURL
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil, u.Host == "":
		return notURL
	case u.Scheme != "https":
		return "the URL must begin with https://"
	case u.User != nil:
		return "the URL must not hold a user or password"
	}
	return ""
}

// ask calls an endpoint once. What it says in return holds nothing that the endpoint sent but its status.
func (o *Outside) ask(ctx context.Context, d Dependency) string {
	if why := invalidURL(d.url); why != "" {
		return why
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url, nil)
	if err != nil {
		return notURL
	}
	request.Header.Set("User-Agent", "plimsoll-hub")
	answer, err := o.Client.Do(request)
	if err != nil {
		return whyNoAnswer(err)
	}
	_, _ = io.CopyN(io.Discard, answer.Body, answerBody) // what it says does not matter
	_ = answer.Body.Close()
	if expected(answer.StatusCode, d.statuses) {
		return ""
	}
	return fmt.Sprintf("it answered %d, not %s", answer.StatusCode, cmp.Or(strings.ReplaceAll(d.statuses, ",", " or "), "2xx"))
}

func expected(status int, statuses string) bool {
	if statuses == "" {
		return status/100 == 2
	}
	return slices.Contains(split(statuses), strconv.Itoa(status))
}

// whyNoAnswer says why a call failed, in words of ours: an error of the network may hold what the other side sent.
func whyNoAnswer(err error) string {
	var refused interface{ Refusal() string }
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.As(err, &refused):
		return refused.Refusal()
	case errors.Is(err, errElsewhere):
		return "it redirects to another host, which does not count"
	case errors.As(err, &untrusted):
		return "its certificate is not trusted"
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return "it does not answer in time"
	}
	return "it cannot be reached"
}

func isTimeout(err error) bool {
	var slow interface{ Timeout() bool }
	return errors.As(err, &slow) && slow.Timeout()
}
