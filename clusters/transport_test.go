package clusters

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/intake"
	"github.com/plimsoll-dev/plimsoll/clusters/internal/sample"
	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
	"github.com/plimsoll-dev/plimsoll/clusters/quantities"
)

var testPaths = quantities.NewPaths(scheme.Scheme)

// ways makes the transports to api with short times.
func ways(t *testing.T, api *fakeAPI, edit ...func(*transportOptions)) (*transports, transportOptions) {
	t.Helper()
	g := NewWithT(t)
	vetted, err := kubeconfig.Vet("a", api.kubeconfig(), kubeconfig.Rules{AllowedNetworks: sample.Networks("127.0.0.0/8")})
	g.Expect(err).NotTo(HaveOccurred())
	measures, err := newMetrics(prometheus.NewRegistry())
	g.Expect(err).NotTo(HaveOccurred())
	o := transportOptions{
		qps: 1000, burst: 1000, requestTimeout: 300 * time.Millisecond, listTimeout: 300 * time.Millisecond, probeTimeout: 300 * time.Millisecond,
		answerBytes: 1 << 20, eventBytes: 64 << 10, paths: testPaths,
		fence: FenceFunc(func(string) error { return nil }), metrics: measures,
		breaker: &breaker{member: "a", onChange: func(bool) {}},
	}
	for _, e := range edit {
		e(&o)
	}
	w, err := newTransports("a", vetted, o)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(w.closeIdle)
	return w, o
}

// ask sends a request and reads the whole answer.
func ask(transport http.RoundTripper, method, url string) (int, error) {
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		return 0, err
	}
	resp, err := httpClient(transport).Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

func TestWritesStopAtTheFenceAndReadsAndReviewsPass(t *testing.T) {
	g := NewWithT(t)
	api := newFakeAPI(t, "a")
	w, _ := ways(t, api, func(o *transportOptions) {
		o.fence = FenceFunc(func(string) error { return errors.New("hub-1 owns it") })
	})
	for _, transport := range []http.RoundTripper{w.client, w.informers, w.probes} {
		for _, write := range []string{
			"POST /api/v1/namespaces/default/pods", "PUT /api/v1/namespaces/default/pods/web", "PATCH /api/v1/namespaces/default/pods/web",
			"DELETE /api/v1/namespaces/default/pods/web", "POST /api/v1/namespaces/default/events", "POST /apis/events.k8s.io/v1/namespaces/default/events",
			"POST /api/v1/namespaces/default/pods/web/eviction",
			"POST /apis/authorization.k8s.io/v1/somethingelse", "DELETE /apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
			"POST /apis/evil.io/v1/namespaces/default/authorization.k8s.io", "POST /apis/evil.io/v1/selfsubjectaccessreviews",
		} {
			method, path, _ := strings.Cut(write, " ")
			_, err := ask(transport, method, api.URL+path)
			g.Expect(errors.Is(err, ErrNotOwner)).To(BeTrue(), "%s: %v", write, err)
			g.Expect(err).To(MatchError(ContainSubstring("hub-1 owns it")))
			g.Expect(api.count(write)).To(BeZero())
		}
		_, err := ask(transport, "GET", api.URL+"/api/v1/pods")
		g.Expect(err).NotTo(HaveOccurred())
		for _, review := range []string{"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "/apis/authorization.k8s.io/v1/namespaces/x/localsubjectaccessreviews"} {
			_, err = ask(transport, "POST", api.URL+review)
			g.Expect(err).NotTo(HaveOccurred())
		}
	}
}

func TestARequestThatIsNotAnsweredInTimeEndsAndAWatchGoesOn(t *testing.T) {
	g := NewWithT(t)
	api := newFakeAPI(t, "a")
	w, _ := ways(t, api)
	api.fault("/slow", hangs)
	_, err := ask(w.client, "GET", api.URL+"/slow")
	var timeout interface{ Timeout() bool }
	g.Expect(errors.As(err, &timeout) && timeout.Timeout()).To(BeTrue(), "error: %v", err)

	api.answer("/slow-body", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	_, err = ask(w.client, "GET", api.URL+"/slow-body")
	g.Expect(err).To(MatchError(ContainSubstring("no complete answer")))

	_, err = ask(w.client, "GET", api.URL+"/slow?watch=true")
	g.Expect(err).To(MatchError(ContainSubstring("no complete answer")), "the headers of a watch have to come in time")

	watch := make(chan error, 1)
	go func() {
		_, err := ask(w.client, "GET", api.URL+"/api/v1/pods?watch=true")
		watch <- err
	}()
	g.Eventually(func() int { return api.count("GET /api/v1/pods") }).Should(Equal(1))
	for range 2 { // two time-outs later
		_, err = ask(w.client, "GET", api.URL+"/slow")
		g.Expect(err).To(HaveOccurred())
	}
	g.Expect(watch).NotTo(Receive())
	api.cutAll()
	g.Eventually(watch).Should(Receive(BeNil()))
}

func TestAnAnswerThatWouldFillTheMemoryIsCutOff(t *testing.T) {
	g := NewWithT(t)
	api := newFakeAPI(t, "a")
	w, _ := ways(t, api, func(o *transportOptions) { o.probeTimeout = time.Minute })
	api.answer("/endless", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		chunk := make([]byte, 1<<20)
		for {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	_, err := ask(w.probes, "GET", api.URL+"/endless")
	g.Expect(errors.Is(err, intake.ErrTooLarge)).To(BeTrue(), "error: %v", err)
}

func TestTheBudgetLimitsRequestsOfOneMember(t *testing.T) {
	g := NewWithT(t)
	api := newFakeAPI(t, "a")
	w, _ := ways(t, api, func(o *transportOptions) { o.qps, o.burst = 0.001, 2 })
	for range 2 {
		_, err := ask(w.client, "GET", api.URL+"/readyz")
		g.Expect(err).NotTo(HaveOccurred())
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", api.URL+"/readyz", nil)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = w.client.RoundTrip(req)
	g.Expect(errors.Is(err, errBudget)).To(BeTrue(), "error: %v", err)
	_, err = ask(w.probes, "GET", api.URL+"/readyz")
	g.Expect(err).NotTo(HaveOccurred(), "probes have no budget")
	_, err = ask(w.informers, "GET", api.URL+"/api/v1/pods")
	g.Expect(err).NotTo(HaveOccurred(), "caches have no budget")
}

func TestTheBreakerOpensAfterFailuresAndHoldsInformersUntilAGoodProbe(t *testing.T) {
	g := NewWithT(t)
	api := newFakeAPI(t, "a")
	var changes []bool
	w, o := ways(t, api, func(o *transportOptions) { o.breaker.onChange = func(open bool) { changes = append(changes, open) } })
	api.fault("/slow", hangs)
	for range requestFailuresToOpen {
		g.Expect(o.breaker.isOpen()).To(BeFalse())
		_, err := ask(w.client, "GET", api.URL+"/slow")
		g.Expect(err).To(HaveOccurred())
	}
	g.Expect(o.breaker.isOpen()).To(BeTrue())
	before := api.count("GET /readyz")
	_, err := ask(w.client, "GET", api.URL+"/readyz")
	g.Expect(errors.Is(err, ErrBreakerOpen)).To(BeTrue(), "error: %v", err)
	g.Expect(api.count("GET /readyz")).To(Equal(before))

	held := make(chan error, 1)
	go func() {
		_, err := ask(w.informers, "GET", api.URL+"/api/v1/pods")
		held <- err
	}()
	_, err = ask(w.probes, "GET", api.URL+"/readyz")
	g.Expect(err).NotTo(HaveOccurred(), "probes pass an open breaker")
	g.Expect(held).NotTo(Receive())
	o.breaker.close()
	g.Eventually(held).Should(Receive(BeNil()))
	g.Expect(changes).To(Equal([]bool{true, false}))
}

// An admission webhook in the member that does not answer holds up writes only.
func TestWritesThatTimeOutDoNotOpenTheBreaker(t *testing.T) {
	g := NewWithT(t)
	api := newFakeAPI(t, "a")
	w, o := ways(t, api, func(o *transportOptions) { o.writeTimeout = 20 * time.Millisecond })
	api.fault("/slow", hangs)
	for range 2 * requestFailuresToOpen {
		_, err := ask(w.client, "POST", api.URL+"/slow")
		g.Expect(err).To(MatchError(ContainSubstring("no complete answer")))
	}
	g.Expect(o.breaker.isOpen()).To(BeFalse())
}

func TestAnAnsweredRequestEndsARowOfFailures(t *testing.T) {
	g := NewWithT(t)
	api := newFakeAPI(t, "a")
	w, o := ways(t, api)
	api.fault("/broken", 500)
	api.fault("/slow", hangs)
	for range requestFailuresToOpen {
		_, _ = ask(w.client, "GET", api.URL+"/slow")
		_, err := ask(w.client, "GET", api.URL+"/broken")
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(o.breaker.isOpen()).To(BeFalse())
}

func TestWhatACallerGivesUpSaysNothingAboutTheMember(t *testing.T) {
	g := NewWithT(t)
	api := newFakeAPI(t, "a")
	w, o := ways(t, api)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range requestFailuresToOpen + 1 {
		req, err := http.NewRequestWithContext(ctx, "GET", api.URL+"/readyz", nil)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = w.client.RoundTrip(req)
		g.Expect(err).To(HaveOccurred())
	}
	g.Expect(o.breaker.isOpen()).To(BeFalse())
}

func TestCredentialsGoToTheMembersServerOnly(t *testing.T) {
	g := NewWithT(t)
	api := newFakeAPI(t, "a")
	stolen := make(chan string, 10)
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stolen <- r.Header.Get("Authorization") }))
	t.Cleanup(thief.Close)
	w, _ := ways(t, api)
	api.answer("/redirect", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
	})

	code, err := ask(w.client, "GET", api.URL+"/redirect")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(code).To(Equal(http.StatusTemporaryRedirect), "the member's own client follows no redirect")

	vetted, err := kubeconfig.Vet("a", api.kubeconfig(), kubeconfig.Rules{AllowedNetworks: sample.Networks("127.0.0.0/8")})
	g.Expect(err).NotTo(HaveOccurred())
	foreign, err := rest.HTTPClientFor(restConfig(vetted, w.client))
	g.Expect(err).NotTo(HaveOccurred())
	_, err = foreign.Get(api.URL + "/redirect")
	g.Expect(err).To(MatchError(ContainSubstring("another host")), "nor can a client that others made of its configuration")
	_, err = ask(w.client, "GET", thief.URL)
	g.Expect(err).To(MatchError(ContainSubstring("another host")))
	g.Expect(stolen).To(BeEmpty())
}

func TestTheHandedOutConfigurationHoldsNoCredentials(t *testing.T) {
	g := NewWithT(t)
	api := newFakeAPI(t, "a")
	vetted, err := kubeconfig.Vet("a", api.kubeconfig(), kubeconfig.Rules{AllowedNetworks: sample.Networks("127.0.0.0/8")})
	g.Expect(err).NotTo(HaveOccurred())
	config := restConfig(vetted, http.DefaultTransport)
	g.Expect(config.BearerToken).To(BeEmpty())
	g.Expect(config.TLSClientConfig).To(Equal(rest.TLSClientConfig{}))
	g.Expect(config.QPS).To(BeNumerically("==", -1))
	g.Expect(config.Host).To(Equal(api.URL))
}

func TestANameIsCheckedAfterItWasResolved(t *testing.T) {
	g := NewWithT(t)
	api := newFakeAPI(t, "a")
	_, port, _ := strings.Cut(api.Listener.Addr().String(), ":")
	for rules, allowed := range map[*kubeconfig.Rules]bool{
		{}: false,
		{AllowedNetworks: sample.Networks("10.0.0.0/8")}:             false,
		{AllowedNetworks: sample.Networks("127.0.0.0/8", "::1/128")}: true,
	} {
		vetted, err := kubeconfig.Vet("a", sample.KubeconfigOf("server: https://localhost:"+port, sample.GoodUser), *rules)
		g.Expect(err).NotTo(HaveOccurred(), "a name says nothing yet")
		wire, closeIdle, err := vetted.Transport(0)
		g.Expect(err).NotTo(HaveOccurred())
		defer closeIdle()
		_, err = ask(wire, "GET", "https://localhost:"+port)
		var refused *kubeconfig.AddrError
		g.Expect(errors.As(err, &refused)).To(Equal(!allowed), "rules %v, error: %v", rules.AllowedNetworks, err)
		if !allowed {
			g.Expect(classify(err).reason).To(Equal(kubeconfig.ReasonServerNotAllowed))
		}
	}
}

func TestAProxyIsCheckedLikeAServer(t *testing.T) {
	g := NewWithT(t)
	rules := kubeconfig.Rules{AllowProxy: true}
	vetted, err := kubeconfig.Vet("a", sample.KubeconfigOf(sample.GoodServer+"\nproxy-url: http://127.0.0.1:3128", sample.GoodUser), rules)
	g.Expect(err).NotTo(HaveOccurred())
	wire, closeIdle, err := vetted.Transport(0)
	g.Expect(err).NotTo(HaveOccurred())
	defer closeIdle()
	_, err = ask(wire, "GET", "https://member.example:6443/readyz")
	var refused *kubeconfig.AddrError
	g.Expect(errors.As(err, &refused)).To(BeTrue(), "error: %v", err)
}

func TestAWatchIsToldFromARead(t *testing.T) {
	g := NewWithT(t)
	for raw, want := range map[string]bool{"/api/v1/pods?watch=true": true, "/api/v1/pods?watch=1": true, "/log?follow=true": true, "/api/v1/pods?watch=false": false, "/api/v1/pods": false} {
		u, err := url.Parse(raw)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(intake.IsStream(&http.Request{Method: "GET", URL: u})).To(Equal(want), raw)
		g.Expect(intake.IsStream(&http.Request{Method: "POST", URL: u})).To(BeFalse(), "a write is never a watch")
	}
}

func TestStatusesThatDoNotExistMakeOneSeries(t *testing.T) {
	found := map[string]bool{}
	for status := range 1000 {
		if code := codeOf(&http.Response{StatusCode: status}, nil); http.StatusText(status) == "" {
			found[code] = true
		} else if code != strconv.Itoa(status) {
			t.Errorf("%d is counted as %s", status, code)
		}
	}
	if len(found) != 1 {
		t.Errorf("a member can make %d series of statuses that do not exist", len(found))
	}
}
