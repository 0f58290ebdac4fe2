package clusters

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/intake"
	"github.com/plimsoll-dev/plimsoll/clusters/internal/sample"
	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
)

// Caches are of one cluster. A server that refuses once to say which it is must not hide that another one answers afterwards.
func TestAnotherClusterIsNoticedAlsoAfterARefusalToSayWhichItIs(t *testing.T) {
	g := NewWithT(t)
	h := &health{breaker: &breaker{member: "a", onChange: func(bool) {}}}
	h.succeeded(identity{uid: "A"}, 0)
	h.succeeded(identity{}, 0)
	g.Expect(h.report().stranger).To(BeFalse())
	g.Expect(h.report().identity.uid).To(Equal("A"))
	h.succeeded(identity{uid: "B"}, 0)
	g.Expect(h.report().stranger).To(BeTrue())
	g.Expect(h.report().reachable).To(BeFalse())
}

// unwired has a provider reach all members through a handler, without a network. Watches stay open without events.
func unwired(serve http.HandlerFunc) func(*Options) {
	wire := intake.RoundTripper(func(r *http.Request) (*http.Response, error) {
		if intake.IsStream(r) && r.URL.Query().Get("sendInitialEvents") == "" {
			body, end := io.Pipe()
			context.AfterFunc(r.Context(), func() { _ = end.CloseWithError(context.Cause(r.Context())) })
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Request: r}, nil
		}
		w := httptest.NewRecorder()
		serve(w, r)
		return w.Result(), nil
	})
	return func(o *Options) {
		o.ways = func(name string, _ *kubeconfig.Vetted, t transportOptions) (*transports, error) {
			return transportsOver(name, wire, func() {}, t), nil
		}
	}
}

// A server that says after each failed probe that it is yet another cluster has all kinds read anew each time.
func TestAServerThatAlwaysBecomesAnotherClusterIsStartedLessAndLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var probes atomic.Int64
		api := &fakeAPI{cut: make(chan struct{}), answers: map[string]http.HandlerFunc{
			"/readyz": func(w http.ResponseWriter, _ *http.Request) {
				if probes.Add(1)%2 == 0 {
					fail(w, http.StatusInternalServerError)
				}
			},
			"/api/v1/namespaces/kube-system": func(w http.ResponseWriter, _ *http.Request) {
				write(w, map[string]any{"metadata": map[string]string{"uid": "cluster-" + strconv.FormatInt(probes.Load()/2, 10)}})
			},
		}}
		f := newFleet(t, unwired(func(w http.ResponseWriter, r *http.Request) {
			r = r.Clone(r.Context())
			r.Header.Set("Authorization", "Bearer ")
			api.serve(w, r)
		}), func(o *Options) {
			o.ProbeInterval, o.ProbeTimeout, o.RequestTimeout, o.WarmTimeout, o.RetryMin, o.RetryMax = 0, 0, 0, 0, 0, 0 // the defaults
		})
		f.secrets.put("a", sample.KubeconfigOf("server: https://127.0.0.1:1", sample.GoodUser))
		time.Sleep(5 * time.Minute)
		f.g.Expect(api.count("GET /version")).To(BeNumerically(">=", 6), "it is %s, and may have been rebuilt a few times", f.state("a")())
		time.Sleep(5 * time.Minute)
		// A start asks twice which cluster it is: when it begins, and before it ends.
		starts := api.count("GET /version") / 2
		f.g.Expect(starts).To(BeNumerically("<=", 11))
		f.g.Expect(api.count("GET /api/v1/pods")).To(BeNumerically("<=", 3*(starts+1)), "a list of one, and one for the cache, first as a watch")
		f.g.Eventually(f.state("a")).Should(Equal("Unreachable/" + ReasonOtherCluster))

		lists := api.count("GET /api/v1/pods")
		time.Sleep(time.Hour)
		f.g.Expect(api.count("GET /api/v1/pods")-lists).To(And(BeNumerically(">=", 3*8), BeNumerically("<=", 3*13)), "it is tried every five or six minutes")
		f.stop()
	})
}

func TestPausesBeginAnewAfterALongGoodTime(t *testing.T) {
	g := NewWithT(t)
	s := newSpacing(wait.Backoff{Duration: time.Second, Factor: 2, Steps: 100, Cap: 4 * time.Second})
	grow := func() (pauses []time.Duration) {
		for range 8 {
			pauses = append(pauses, s.next()/time.Second)
			s.lasted(39 * time.Second)
		}
		return pauses
	}
	want := []time.Duration{1, 2, 4, 8, 16, 32, 40, 40}
	g.Expect(grow()).To(Equal(want))
	s.lasted(41 * time.Second)
	g.Expect(grow()).To(Equal(want))
}
