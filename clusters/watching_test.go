package clusters

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/intake"
)

// watchServer answers watches, or fails in one of several ways.
type watchServer struct {
	mu    sync.Mutex
	fault string
	opens int
	open  []*io.PipeWriter
}

func (s *watchServer) RoundTrip(*http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opens++
	switch s.fault {
	case "error":
		return nil, errors.New("connection reset")
	case "unavailable":
		return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: http.NoBody}, nil
	case "ends at once":
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	case "gone":
		return &http.Response{StatusCode: http.StatusGone, Body: http.NoBody}, nil
	}
	from, to := io.Pipe()
	s.open = append(s.open, to)
	return &http.Response{StatusCode: http.StatusOK, Body: from}, nil
}

// set makes further watches fail in this way, and ends those that are open.
func (s *watchServer) set(fault string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
	for _, to := range s.open {
		_ = to.CloseWithError(io.ErrUnexpectedEOF)
	}
	s.open = nil
}

func (s *watchServer) opened() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opens
}

func (s *watchServer) tell(event string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, to := range s.open {
		_, _ = to.Write([]byte(event))
	}
}

func watchRequest(ctx context.Context, t *testing.T) *http.Request {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://a.example/api/v1/pods?watch=true&resourceVersion=5", nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func TestAWatchIsOpenedAgainWithinASecondOnceTheMemberAnswers(t *testing.T) {
	for _, fault := range []string{"error", "unavailable", "ends at once"} {
		t.Run(fault, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				server := &watchServer{}
				w := &watching{next: server, state: newWatchState(func() {})}
				resp, err := w.RoundTrip(watchRequest(t.Context(), t))
				g.Expect(err).NotTo(HaveOccurred())
				time.Sleep(watchRetryMax - 1)
				synctest.Wait()
				g.Expect(w.state.closedSince()).NotTo(BeZero(), "headers alone do not show that it stays")
				time.Sleep(time.Minute)
				g.Expect(w.state.closedSince()).To(BeZero())
				heard := make(chan string, 1)
				go func() {
					p := make([]byte, 100)
					n, _ := resp.Body.Read(p)
					heard <- string(p[:n])
				}()
				synctest.Wait()
				server.set(fault)
				time.Sleep(10 * time.Minute)
				g.Expect(server.opened()).To(BeNumerically("<", 700), "a member in trouble is not asked more than about once a second")
				g.Expect(time.Since(w.state.closedSince())).To(Equal(10 * time.Minute))
				server.set("")
				time.Sleep(2*watchRetryMax + watchRetryMax/4) // one to try, one to last
				g.Expect(w.state.closedSince()).To(BeZero())
				server.tell("event")
				g.Expect(<-heard).To(Equal("event"))
				g.Expect(resp.Body.Close()).To(Succeed())
				g.Expect(w.state.closedSince()).NotTo(BeZero())
			})
		})
	}
}

func TestAWatchThatTheMemberRefusesOrThatHasToldSomethingIsItsReflectorsBusiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		server := &watchServer{fault: "gone"}
		w := &watching{next: server, state: newWatchState(func() {})}
		resp, err := w.RoundTrip(watchRequest(t.Context(), t))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(resp.StatusCode).To(Equal(http.StatusGone))
		g.Expect(w.state.closedSince()).NotTo(BeZero())

		server.set("")
		resp, err = w.RoundTrip(watchRequest(t.Context(), t))
		g.Expect(err).NotTo(HaveOccurred())
		go server.tell("event")
		p := make([]byte, 100)
		_, err = resp.Body.Read(p)
		g.Expect(err).NotTo(HaveOccurred())
		server.set("")
		_, err = resp.Body.Read(p)
		g.Expect(err).To(MatchError(io.ErrUnexpectedEOF), "another watch from the same version would send it again")
	})
}

// A member that is overloaded says when to come back; the transport has shortened what it may say.
func TestAWatchIsNotOpenedAgainBeforeTheMemberSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		opens := 0
		w := &watching{state: newWatchState(func() {}), next: intake.RoundTripper(func(*http.Request) (*http.Response, error) {
			opens++
			return &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"5"}}, Body: http.NoBody}, nil
		})}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		_, _ = w.RoundTrip(watchRequest(ctx, t))
		g.Expect(opens).To(BeNumerically("~", 10*60/5, 3))
	})
}

// The transport shortens what a member may say, and what opens watches again obeys that: neither is of use without the other.
func TestAWatchThatItsMemberPutsOffForAnHourIsOpenedAgainSoon(t *testing.T) {
	t.Parallel()
	f, api := newFleet(t), newFakeAPI(t, "a")
	f.secrets.put("a", api.kubeconfig())
	f.awaitReady("a")
	var refused, opened atomic.Int32
	api.answer("/api/v1/pods", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !intake.IsStream(r), r.URL.Query().Get("sendInitialEvents") == "true":
		case refused.CompareAndSwap(0, 1):
			w.Header().Set("Retry-After", "3600")
			fail(w, http.StatusServiceUnavailable)
			return
		default:
			opened.Add(1)
		}
		api.route(w, r, nil)
	})
	api.cutAll()
	f.g.Eventually(refused.Load).Should(BeNumerically("==", 1))
	f.g.Eventually(opened.Load, time.Minute).Should(BeNumerically(">", 0))
}

func TestThatAWatchIsClosedForLongIsAnnouncedOnceAndThatItIsOpenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var announced atomic.Int32 // by timers, in goroutines of their own
		s := newWatchState(func() { announced.Add(1) })
		after := func(d time.Duration) int {
			time.Sleep(d)
			synctest.Wait()
			return int(announced.Load())
		}
		s.opened()
		s.closed()
		g.Expect(after(staleAfter-1)).To(BeZero(), "each watch ends now and then")
		s.closed() // as by its body, which ends and is closed
		g.Expect(after(1)).To(Equal(1))
		g.Expect(after(time.Hour)).To(Equal(1))
		s.opened()
		g.Expect(after(0)).To(Equal(2))
		s.closed()
		g.Expect(after(staleAfter / 2)).To(Equal(2))
		s.opened()
		g.Expect(after(time.Hour)).To(Equal(2), "it was opened again in time")
	})
}

func TestTheAgeOfAKindIsThatOfItsOldestPart(t *testing.T) {
	g := NewWithT(t)
	now := time.Unix(1000, 0)
	age := func(closed ...time.Time) time.Time {
		w := &warmCache{}
		for _, at := range closed {
			w.watches = append(w.watches, &watchState{open: at.IsZero(), closedAt: at})
		}
		return w.closedSince()
	}
	g.Expect(age(time.Time{}, time.Time{})).To(BeZero())
	for _, all := range [][]time.Time{{now, now.Add(time.Second), {}}, {{}, now.Add(time.Second), now}} {
		g.Expect(age(all...)).To(Equal(now))
	}
}

// Whatever a member does to a watch: it is open soon after the member answers, and the state says whether it is.
func TestAWatchIsOpenSoonAfterEveryFault(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			server := &watchServer{}
			w := &watching{next: server, state: newWatchState(func() {})}
			ctx, cancel := context.WithCancel(t.Context())
			go func() { // the reflector
				for ctx.Err() == nil {
					resp, err := w.RoundTrip(watchRequest(ctx, t))
					if err != nil {
						continue
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			}()
			for range 30 {
				server.set([]string{"error", "unavailable", "ends at once"}[random.IntN(3)])
				time.Sleep(time.Duration(random.Int64N(int64(time.Minute))))
				server.set("")
				time.Sleep(3 * watchRetryMax)
				if random.IntN(2) == 0 {
					server.tell("event")
				}
				if since := w.state.closedSince(); !since.IsZero() {
					t.Errorf("seed %d: closed for %s", seed, time.Since(since))
				}
			}
			cancel()
			server.set("error")
		})
	}
}

func TestAWatchThatIsCutOffGoesOnFromItsLastEvent(t *testing.T) {
	g := NewWithT(t)
	for _, cut := range []error{errors.New("stream error: stream ID 5; INTERNAL_ERROR"), errors.New("http2: client connection lost"), io.ErrUnexpectedEOF} {
		g.Expect(streamEnd(cut)).To(Equal(io.ErrUnexpectedEOF), "client-go takes other errors for a reason to list again")
	}
	for _, known := range []error{io.EOF, intake.ErrTooLarge, intake.ErrUnreadable, context.Canceled} {
		g.Expect(streamEnd(known)).To(Equal(known))
	}
}

// One second after a stream with events was reset the kind is watched again, and nothing was listed for it.
func TestAWatchThatIsCutOffIsNotListedAgain(t *testing.T) {
	f, api := newFleet(t), newFakeAPI(t, "a")
	cut := make(chan struct{})
	var lists, resumed atomic.Int32
	api.answer("/api/v1/pods", func(w http.ResponseWriter, r *http.Request) {
		switch query := r.URL.Query(); {
		case !intake.IsStream(r), query.Get("sendInitialEvents") == "true":
			lists.Add(1)
			api.route(w, r, nil)
			return
		case query.Get("resourceVersion") == "11":
			resumed.Add(1)
		}
		w.Header().Set("Content-Type", "application/json")
		write(w, map[string]any{"type": "BOOKMARK", "object": map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]string{"resourceVersion": "11"},
		}})
		w.(http.Flusher).Flush()
		select {
		case <-cut:
			panic(http.ErrAbortHandler)
		case <-r.Context().Done():
		}
	})
	f.secrets.put("a", api.kubeconfig())
	f.awaitReady("a")
	before := lists.Load()
	close(cut)
	f.g.Eventually(resumed.Load).Should(BeNumerically(">", 1))
	f.g.Expect(lists.Load()).To(Equal(before), "lists")
}

func TestAMemberWhoseCachesAreTooOldIsDegraded(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	now := time.Unix(1000, 0)
	shown := func(age time.Duration) string {
		s := assess(view{staleLimit: time.Minute, member: healthy(func(r *report) { r.kinds[0].closed = now.Add(-age) })}, Status{}, now)
		return string(s.State) + "/" + s.Reason + ": " + s.Message
	}
	g.Expect(shown(59 * time.Second)).To(HavePrefix("Ready/"))
	g.Expect(shown(time.Minute)).To(Equal("Degraded/NotWatched: cached and not watched for more than 1m0s: v1 Pod (since 1970-01-01T00:15:40Z)"))

	f, api := newFleet(t, func(o *Options) { o.StaleLimit = time.Second }), newFakeAPI(t, "a")
	f.secrets.put("a", api.kubeconfig())
	f.awaitReady("a")
	refuse := func(w http.ResponseWriter, r *http.Request) {
		if intake.IsStream(r) {
			fail(w, http.StatusServiceUnavailable)
			return
		}
		api.route(w, r, nil)
	}
	api.answer("/api/v1/pods", refuse)
	api.cutAll()
	f.g.Eventually(f.state("a")).Should(Equal("Degraded/NotWatched"))
	api.answer("/api/v1/pods", nil)
	f.g.Eventually(f.state("a")).Should(Equal("Ready/Ready"))
}

func TestACacheThatIsNotWatchedIsShown(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	now := time.Unix(1000, 0)
	shown := func(closed time.Time) string {
		s := assess(view{staleLimit: time.Hour, member: healthy(func(r *report) { r.kinds[0].closed = closed })}, Status{}, now)
		c := meta.FindStatusCondition(s.Conditions, ConditionCurrent)
		return string(c.Status) + "/" + c.Reason + ": " + c.Message
	}
	g.Expect(shown(time.Time{})).To(Equal("True/Watched: every cached kind is watched"))
	g.Expect(shown(now.Add(-staleAfter + 1))).To(HavePrefix("True/"))
	g.Expect(shown(now.Add(-staleAfter))).To(HavePrefix("False/"))
	g.Expect(shown(now.Add(-time.Minute))).To(Equal("False/NotWatched: cached and not watched now: v1 Pod (since 1970-01-01T00:15:40Z)"))

	f, api := newFleet(t), newFakeAPI(t, "a")
	api.addPod("web")
	f.secrets.put("a", api.kubeconfig())
	f.awaitReady("a")
	f.g.Eventually(func() bool {
		age, ok := gathered(f.g, f.metrics)["plimsoll_member_cache_age_seconds{kind=v1 Pod,member=a}"]
		return ok && age == 0
	}).Should(BeTrue())
	f.g.Expect(f.metric("plimsoll_member_cache_bytes{kind=v1 Pod,member=a}")()).To(BeNumerically(">", 0))
	api.answer("/api/v1/pods", func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.RawQuery, "watch") {
			fail(w, http.StatusServiceUnavailable)
			return
		}
		api.route(w, r, nil)
	})
	api.cutAll()
	age := f.metric("plimsoll_member_cache_age_seconds{kind=v1 Pod,member=a}")
	f.g.Eventually(age).Should(BeNumerically(">", 0))
	f.g.Eventually(age).Should(BeNumerically(">", age()), "it grows")
	f.g.Expect(f.state("a")()).To(Equal("Ready/Ready"))
}
