package clusters

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/intake"
)

// A page of a cache's list may have a part of the bytes that an answer to a client may have, and each so many objects.
func TestEachWayToAMemberHasALimitOfItsOwn(t *testing.T) {
	text := func(bytes int) string { return `{"kind":"PodList","x":"` + strings.Repeat("a", bytes) + `"}` }
	objects := func(n int) string { return podListOf(strings.Repeat("{},", n-1) + "{}") }
	const mib, plenty = 1 << 20, 256 << 20 // plenty is enough for the bytes of all these objects and for their memory
	for name, c := range map[string]struct {
		most int64 // bytes of an answer
		way  func(*transports) http.RoundTripper
		body string
		fits bool
		path string // default /large
	}{
		"a page":                  {16 * mib, ofCaches, text(1 * mib), true, ""},
		"a page of many bytes":    {16 * mib, ofCaches, text(3 * mib), false, ""},
		"an answer":               {16 * mib, ofClients, text(3 * mib), true, ""},
		"an answer of many bytes": {4 * mib, ofClients, text(5 * mib), false, ""},
		"a page of objects":       {plenty, ofCaches, objects(intake.MaxPage), true, ""},
		"a page of many objects":  {plenty, ofCaches, objects(intake.MaxPage + 1), false, ""},
		"an answer of as many":    {plenty, ofClients, objects(intake.MaxPage + 1), true, ""},
		"an answer of very many":  {plenty, ofClients, objects(intake.MaxListed + 1), false, ""},
		"an object":               {16 * mib, ofClients, text(3 * mib), true, "/api/v1/namespaces/a/pods/b"},
		"an object of many bytes": {16 * mib, ofClients, text(5 * mib), false, "/api/v1/namespaces/a/pods/b"},
		"a list":                  {16 * mib, ofClients, text(5 * mib), true, "/api/v1/namespaces/a/pods"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			api := newFakeAPI(t, "a")
			w, _ := ways(t, api, func(o *transportOptions) {
				o.answerBytes, o.requestTimeout, o.listTimeout = c.most, time.Minute, time.Minute
			})
			path := cmp.Or(c.path, "/large")
			api.answer(path, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, c.body)
			})
			_, err := ask(c.way(w), http.MethodGet, api.URL+path)
			if c.fits {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(errors.Is(err, intake.ErrTooLarge)).To(BeTrue(), "error: %v", err)
			}
		})
	}
}

func TestOnlyListsThatAreNotInPagesMayBeLarge(t *testing.T) {
	for request, whole := range map[string]bool{
		"GET /api/v1/pods": true, "GET /api/v1/namespaces": true, "GET /api/v1/namespaces/a/pods?labelSelector=b": true,
		"GET /apis/apps/v1/deployments": true, "GET /apis/apps/v1/namespaces/a/deployments": true,
		"GET /api/v1/pods?limit=500&resourceVersion=0": true, "GET /openapi/v2": true, "GET /api": true, "GET /apis/apps/v1": true, "GET /": true, " /api/v1/pods": true,
		"GET /api/v1/pods?limit=500": false, "GET /api/v1/namespaces/a/pods?limit=500": false,
		"GET /api/v1/nodes/a": false, "GET /api/v1/namespaces/a": false, "GET /api/v1/namespaces/a/pods/b": false, "GET /api/v1/namespaces/a/pods/b/log": false,
		"GET /apis/apps/v1/namespaces/a/deployments/b/scale": false, "PATCH /api/v1/nodes/a": false, "POST /api/v1/namespaces/a/pods": false, "DELETE /api/v1/pods": false,
	} {
		method, at, _ := strings.Cut(request, " ")
		for _, root := range []string{"", "/k8s/clusters/api"} {
			req, err := http.NewRequest("GET", "https://a"+root+at, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Method = method
			if got := listsWhole(req, root); got != whole {
				t.Errorf("%q below %q: %v", request, root, got)
			}
		}
	}
}

func ofCaches(w *transports) http.RoundTripper  { return w.informers }
func ofClients(w *transports) http.RoundTripper { return w.client }

// held is the rest of a body that comes when the channel is closed.
type held <-chan struct{}

func (h held) Read([]byte) (int, error) {
	<-h
	return 0, io.EOF
}

// waysOver are the transports to a member without a network: its answers are the texts of paths, one after the other.
func waysOver(t *testing.T, answers map[string]func() io.Reader) *transports {
	t.Helper()
	measures, err := newMetrics(prometheus.NewRegistry())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	wire := intake.RoundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: -1, Body: io.NopCloser(answers[r.URL.Path]()),
		}, nil
	})
	return transportsOver("a", wire, func() {}, transportOptions{
		qps: 1000, burst: 1000, requestTimeout: time.Minute, listTimeout: time.Minute, probeTimeout: time.Minute, answerBytes: 8 << 20, eventBytes: 1 << 20, paths: testPaths,
		fence: FenceFunc(func(string) error { return nil }), metrics: measures, breaker: &breaker{member: "a", onChange: func(bool) {}},
	})
}

// A large answer waits for the one that is being read, whoever reads it. Small ones do not wait, nor do those of another member.
func TestLargeAnswersOfAMemberAreReadOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		large, rest := `{"x":"`+strings.Repeat("a", 300<<10)+`"}`, make(chan struct{})
		goOn := sync.OnceFunc(func() { close(rest) })
		defer goOn()
		answers := map[string]func() io.Reader{
			"/small": func() io.Reader { return strings.NewReader(`{"x":"a"}`) },
			"/large": func() io.Reader { return strings.NewReader(large) },
			"/held":  func() io.Reader { return io.MultiReader(strings.NewReader(large), held(rest)) },
		}
		w, others := waysOver(t, answers), waysOver(t, answers)
		page, answer := begin(w.informers, "https://a/held"), begin(w.client, "https://a/large")
		g.Expect(page).NotTo(Receive(), "its end has not come yet")
		g.Expect(answer).NotTo(Receive(), "it waits for the page of a cache")
		for _, way := range []http.RoundTripper{w.client, w.informers, w.probes} {
			g.Expect(begin(way, "https://a/small")).To(Receive(BeNil()))
		}
		g.Expect(begin(others.client, "https://b/large")).To(Receive(BeNil()), "another member's")
		goOn()
		synctest.Wait()
		g.Expect(page).To(Receive(BeNil()))
		g.Expect(answer).To(Receive(BeNil()))
	})
}

// An event that is being decoded holds large answers up. One that has been decoded does not, however long the next one takes.
func TestAWatchGivesItsPlaceBackBetweenLargeEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		large := `{"type":"ADDED","object":{"x":"` + strings.Repeat("a", 300<<10) + `"}}`
		over := make(chan struct{})
		end := sync.OnceFunc(func() { close(over) })
		defer end()
		w := waysOver(t, map[string]func() io.Reader{
			"/large":   func() io.Reader { return strings.NewReader(large) },
			"/watched": func() io.Reader { return io.MultiReader(strings.NewReader(large+"\n"), held(over)) },
		})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://a/watched?watch=true", nil)
		g.Expect(err).NotTo(HaveOccurred())
		resp, err := w.informers.RoundTrip(req)
		g.Expect(err).NotTo(HaveOccurred())
		defer func() { _ = resp.Body.Close() }()
		_, err = io.CopyN(io.Discard, resp.Body, int64(len(large)))
		g.Expect(err).NotTo(HaveOccurred())
		answer := begin(w.client, "https://a/large")
		g.Expect(answer).NotTo(Receive(), "the event is being decoded")
		next := make(chan error, 1)
		go func() {
			_, err := resp.Body.Read(make([]byte, 1))
			next <- err
		}()
		synctest.Wait()
		g.Expect(next).NotTo(Receive(), "there is none yet")
		g.Expect(answer).To(Receive(BeNil()))
		end()
		g.Expect(<-next).To(HaveOccurred())
	})
}

// begin sends a request and reads the whole answer, as far as that goes without something else happening first.
func begin(way http.RoundTripper, url string) <-chan error {
	ended := make(chan error, 1)
	go func() {
		_, err := ask(way, http.MethodGet, url)
		ended <- err
	}()
	synctest.Wait()
	return ended
}
