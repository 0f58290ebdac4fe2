package webhook

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/hub/pki"
	"github.com/plimsoll-dev/plimsoll/internal/tlstest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
)

// standby makes h a replica that takes owner for the owner of every member.
func standby(t *testing.T, h *hub, ca *pki.CA, owner string) {
	t.Helper()
	h.options.Router = routerFunc(func(string) (bool, string) { return false, owner })
	h.options.Forwarder = NewForwarder(ca.PeerClientTLS())
	t.Cleanup(h.options.Forwarder.Close)
}

// servePeers serves other replicas and returns the address.
func servePeers(t *testing.T, config *tls.Config, handler http.Handler) (address string) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = discardLog
	server.EnableHTTP2 = true
	config.NextProtos = []string{"h2", "http/1.1"}
	server.TLS = config
	server.Listener = tls.NewListener(server.Listener, config)
	server.Start()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func TestACallReachesTheOwnerThroughAnyReplica(t *testing.T) {
	g := NewWithT(t)
	ca := newCA(t)
	owner, other := newHub(t, toSpot), newHub(t, func(context.Context, string, *spot.PodRequest) spot.Placement {
		t.Error("a replica that does not own the member placed its pod")
		return spot.Placement{}
	})
	var paths []string
	address := servePeers(t, ca.PeerServerTLS(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths = append(paths, r.URL.String())
		owner.Peer().ServeHTTP(w, r)
	}))
	standby(t, other, ca, address)
	for range 2 {
		g.Expect(allowed(g, other.call(other.path(), recordedReview(t)), recordedUID)).To(Equal(spotPatch))
	}
	g.Expect(paths).To(Equal([]string{"/peer/v1/members/eu/pods", "/peer/v1/members/eu/pods"}), "the token stays here")
	g.Expect(owner.counted("spot")).To(Equal(2.0))
	g.Expect(other.counted(outcomeForwarded)).To(Equal(2.0))
}

func TestReplicasThatTakeEachOtherForTheOwnerDoNotPlayBall(t *testing.T) {
	g := NewWithT(t)
	ca := newCA(t)
	a, b := newHub(t, toSpot), newHub(t, toSpot)
	calls := atomic.Int32{}
	count := func(h *hub) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			calls.Add(1)
			h.Peer().ServeHTTP(w, r)
		})
	}
	standby(t, a, ca, servePeers(t, ca.PeerServerTLS(), count(b)))
	standby(t, b, ca, servePeers(t, ca.PeerServerTLS(), count(a)))
	g.Expect(allowed(g, a.call(a.path(), recordedReview(t)), recordedUID)).To(BeEmpty())
	g.Expect(calls.Load()).To(Equal(int32(1)))
	g.Expect(b.counted(outcomeNoOwner)).To(Equal(1.0))
}

func TestAnOwnerThatDoesNotAnswerCostsAPlacementAndNoPod(t *testing.T) {
	ca := newCA(t)
	answering := func(handler http.HandlerFunc) string { return servePeers(t, ca.PeerServerTLS(), handler) }
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, owner := range map[string]string{
		"nobody":        "",
		"a port closed": gone.Listener.Addr().String(),
		"no address":    "not an address",
		"an error":      answering(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }),
		"a redirect": answering(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusPermanentRedirect)
		}),
		"an endless text": answering(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("x", maxAnswer+1))
		}),
		"a cut connection": answering(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
		"another hub":      servePeers(t, newCA(t).PeerServerTLS(), newHub(t, toSpot).Peer()),
		"no peer":          servePeers(t, ca.ServerTLS([]string{"hub.example"}, nil), newHub(t, toSpot).Peer()),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			h := newHub(t, toSpot)
			standby(t, h, ca, owner)
			g.Expect(allowed(g, h.call(h.path(), recordedReview(t)), recordedUID)).To(BeEmpty())
			g.Expect(h.counted(outcomeNoOwner)).To(Equal(1.0))
		})
	}
}

type hangingTransport struct{}

func (hangingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestAnOwnerThatHangsCostsAPlacementAndNoPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		h := newHub(t, toSpot)
		h.options.Router = routerFunc(func(string) (bool, string) { return false, "192.0.2.1:9444" })
		h.options.Forwarder = &Forwarder{client: &http.Client{Transport: hangingTransport{}}}
		g.Expect(allowed(g, h.call(h.path(), recordedReview(t)), recordedUID)).To(BeEmpty())
		g.Expect(h.counted(outcomeNoOwner)).To(Equal(1.0))
	})
}

func TestATokenIsInNoLogAndNoMetricWhateverHappens(t *testing.T) {
	g := NewWithT(t)
	ca := newCA(t)
	h := newHub(t, func(context.Context, string, *spot.PodRequest) spot.Placement { panic("a bug") })
	const canary = "canary-31ce"
	h.call(h.path(), reviewOf("1", `,"object":{"metadata":{"annotations":{"a":"`+canary+`"}}}`))
	h.call(h.path(), []byte(canary))
	h.call("/webhook/v1/members/eu/"+canary+"/pods", nil)
	h.call("/webhook/v1/members/"+canary+"/"+h.token+"/pods", nil)
	standby(t, h, ca, "127.0.0.1:1")
	h.call(h.path(), recordedReview(t))

	server, err := Listen("webhook", "127.0.0.1:0", ca.ServerTLS(nil, nil), h, h.options.Metrics, slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	g.Expect(err).NotTo(HaveOccurred())
	url, stop := start(t, server)
	g.Expect(tlstest.Get(t, url+h.path(), tlstest.Trusting(newCA(t).Bundle()))).NotTo(Succeed())
	stop()

	text := h.log.String()
	g.Expect(text).To(And(ContainSubstring("a bug"), ContainSubstring("owner did not answer"), ContainSubstring("TLS handshake error")))
	families, err := h.metrics.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		text += family.String()
	}
	g.Expect(text).To(ContainSubstring("plimsoll_admissions_total"))
	g.Expect(text).NotTo(Or(ContainSubstring(h.token), ContainSubstring(canary)))
}
