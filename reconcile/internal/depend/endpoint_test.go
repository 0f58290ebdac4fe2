package depend

import (
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/members"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// rules are where endpoints may be, and who signs their certificates.
type rules struct {
	ExternalNetworks []netip.Prefix
	ExternalRoots    *x509.CertPool
}

func (r rules) outside() *Outside { return NewOutside(r.ExternalNetworks, r.ExternalRoots) }

// endpointServer is an HTTPS server on loopback, and the options with which it may be called.
func endpointServer(t *testing.T, handler http.HandlerFunc) (server *httptest.Server, allowed rules) {
	t.Helper()
	server = httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return server, rules{ExternalNetworks: loopback, ExternalRoots: roots}
}

func answers(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, canary)
	}
}

func TestAnEndpointIsMetByItsStatus(t *testing.T) {
	for _, tc := range []struct {
		status int
		want   []int
		why    string
	}{
		{status: 200},
		{status: 204},
		{status: 503, why: "it answered 503, not 2xx"},
		{status: 401, want: []int{401, 403}},
		{status: 200, want: []int{403, 401}, why: "it answered 200, not 401 or 403"},
	} {
		server, allowed := endpointServer(t, answers(tc.status))
		if got := allowed.outside().ask(t.Context(), OnEndpoint(server.URL, tc.want...)); got != tc.why {
			t.Errorf("%d for %v: %q, want %q", tc.status, tc.want, got, tc.why)
		}
	}
}

func TestTheHubIsNotLedWhereItMayNotGo(t *testing.T) {
	var asked atomic.Int32
	secret, allowed := endpointServer(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		answers(200)(w, r)
	})
	port := secret.URL[strings.LastIndex(secret.URL, ":"):]
	byDefault := rules{ExternalRoots: allowed.ExternalRoots}
	elsewhere := rules{ExternalRoots: allowed.ExternalRoots, ExternalNetworks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
	t.Setenv("HTTPS_PROXY", secret.URL)
	redirects, _ := endpointServer(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, secret.URL+"/?token="+canary, http.StatusFound)
	})
	both := rules{ExternalRoots: allowed.ExternalRoots.Clone(), ExternalNetworks: loopback}
	both.ExternalRoots.AddCert(redirects.Certificate())
	for name, tc := range map[string]struct {
		url  string
		opts rules
		want string
	}{
		"loopback":            {secret.URL, byDefault, "loopback addresses are not allowed"},
		"a name for loopback": {"https://localhost" + port, byDefault, "loopback addresses are not allowed"},
		"mapped loopback":     {"https://[::ffff:127.0.0.1]" + port, byDefault, "loopback addresses are not allowed"},
		"metadata service":    {"https://169.254.169.254/latest/meta-data", byDefault, "link-local and metadata addresses are not allowed"},
		"unspecified":         {"https://0.0.0.0" + port, byDefault, "unspecified addresses are not allowed"},
		"another network":     {secret.URL, elsewhere, "it is in none of the allowed networks"},
		"another host":        {redirects.URL, both, "it redirects to another host"},
		"untrusted":           {secret.URL, rules{ExternalNetworks: loopback}, "its certificate is not trusted"},
		"http":                {"http://127.0.0.1" + port, allowed, "must begin with https://"},
		"file":                {"file:///etc/passwd", allowed, "not valid"},
		"user":                {"https://me:" + canary + "@127.0.0.1" + port, allowed, "must not hold a user or password"},
		"no URL":              {"https://[" + canary, allowed, "not valid"},
		"too long":            {secret.URL + "/" + strings.Repeat("a", maxURL), allowed, "not valid"},
	} {
		d := OnEndpoint(tc.url)
		got := tc.opts.outside().ask(t.Context(), d)
		if !strings.Contains(got, tc.want) || strings.Contains(got+d.String(), canary) {
			t.Errorf("%s: %s: %q, want %q", name, d, got, tc.want)
		}
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("the server behind all of this was asked %d times", n)
	}
}

func TestAnEndpointThatHangsOrNeverEndsIsGivenUp(t *testing.T) {
	release := make(chan struct{})
	hangs, allowed := endpointServer(t, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	o := allowed.outside()
	o.Client.Timeout = 50 * time.Millisecond
	if got := o.ask(t.Context(), OnEndpoint(hangs.URL)); got != "it does not answer in time" {
		t.Errorf("hangs: %q", got)
	}
	endless, allowed := endpointServer(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 4096)); err != nil {
				return
			}
		}
	})
	if got := allowed.outside().ask(t.Context(), OnEndpoint(endless.URL)); got != "" {
		t.Errorf("endless: %q", got)
	}
	within, allowed := endpointServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/here", http.StatusFound)
		}
	})
	if got := allowed.outside().ask(t.Context(), OnEndpoint(within.URL)); got != "" {
		t.Errorf("redirect within the host: %q", got)
	}
}

// callsOf is an index whose calls of endpoints are counted, and one run of a key.
func callsOf(asked *atomic.Int32) (*Index, *Needs) {
	outside := &Outside{Client: &http.Client{Transport: counting{asked}}}
	ds := NewIndex(&members.Instances{}, outside, slog.New(slog.DiscardHandler))
	return ds, NewNeeds(ds.NewFlow("a", configMapKind.GroupKind(), func(types.NamespacedName) {}), inDefault("one"))
}

// counting answers every request.
type counting struct{ asked *atomic.Int32 }

func (c counting) RoundTrip(*http.Request) (*http.Response, error) {
	c.asked.Add(1)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func TestAnEndpointOnWhichNothingDependsAnyMoreIsNotCalledWhenItsTurnComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		ds, n := callsOf(&asked)
		take := func() {
			for range callsAtOnce {
				ds.calls <- struct{}{}
			}
		}
		give := func() {
			for range callsAtOnce {
				<-ds.calls
			}
			synctest.Wait()
		}
		take()
		if u := n.Require(t.Context(), []Dependency{OnEndpoint("https://example.com/")}); u == nil || !strings.Contains(u.String(), "not answered yet") {
			t.Errorf("%v, want that it has not answered", u)
		}
		n.flow.Forget(n.key)
		give()
		if asked.Load() > 0 || ds.Size() > 0 {
			t.Errorf("asked %d times, and %d things are kept", asked.Load(), ds.Size())
		}
		take()
		n.Require(t.Context(), []Dependency{OnEndpoint("https://example.com/")})
		give()
		if u := n.Require(t.Context(), []Dependency{OnEndpoint("https://example.com/")}); u != nil || asked.Load() != 1 {
			t.Errorf("asked %d times for one that waits: %v", asked.Load(), u)
		}
	})
}

// What was asked for is not met because nobody wants to know any more.
func TestAnEndpointThatIsNotCalledIsNotMet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		ds, n := callsOf(&asked)
		for range callsAtOnce {
			ds.calls <- struct{}{}
		}
		d := OnEndpoint("https://example.com/").of("a", "")
		ds.note(n, d)
		answer := make(chan string)
		go func() { answer <- ds.ask(t.Context(), d) }()
		synctest.Wait() // it waits for its turn
		n.flow.Forget(n.key)
		for range callsAtOnce {
			<-ds.calls
		}
		if why := <-answer; why == "" || asked.Load() > 0 {
			t.Errorf("%q, and asked %d times", why, asked.Load())
		}
	})
}

func TestAnEndpointWhoseURLIsNotValidTakesNoPlaceOfACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		ds, n := callsOf(&asked)
		for url, want := range map[string]string{"http://example.com/": "must begin with https://", "https:///x": "not valid"} {
			if u := n.Require(t.Context(), []Dependency{OnEndpoint(url)}); u == nil || !strings.Contains(u.String(), want) {
				t.Errorf("%s: %v, want %q", url, u, want)
			}
		}
		if ds.Size() > 0 {
			t.Errorf("%d things are kept of it", ds.Size())
		}
	})
}
