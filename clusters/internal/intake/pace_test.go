package intake

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/time/rate"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/plimsoll-dev/plimsoll/clusters/quantities"
)

// TestEventsWithoutEndAreReadAtAPace reads events of a member that sends as fast as it can.
func TestEventsWithoutEndAreReadAtAPace(t *testing.T) {
	readEventsWithoutEnd(t, sleep, eventRate)
}

// TestEventsWithoutEndLeaveBusyProcessorsToOthers reads them where whoever waits runs late.
func TestEventsWithoutEndLeaveBusyProcessorsToOthers(t *testing.T) {
	readEventsWithoutEnd(t, func(ctx context.Context, d time.Duration) error { return sleep(ctx, d+2*wakeUp) }, eventShare)
}

func TestAMembersRateOfEventsFollowsWhetherProcessorsAreFree(t *testing.T) {
	g := NewWithT(t)
	p, now := newEventPace(sleep, func(time.Duration) {}), time.Now()
	after := func(d, late time.Duration) rate.Limit {
		now = now.Add(d)
		p.woken(now, late)
		return p.limiter.Limit()
	}
	after(0, 0) // the first period begins
	for range 100 {
		after(eventPeriod, wakeUp)
	}
	g.Expect(p.limiter.Limit()).To(BeEquivalentTo(eventRate), "timers are a little late on a machine that has nothing to do")
	g.Expect(after(eventPeriod/2, time.Second)).To(BeEquivalentTo(eventRate), "one that is late counts once in a period")
	g.Expect(after(eventPeriod/2, 0)).To(BeEquivalentTo(eventRate / 2))
	for range 100 {
		after(eventPeriod, 2*wakeUp)
	}
	g.Expect(p.limiter.Limit()).To(BeEquivalentTo(eventShare), "its share, however busy the others are")
	g.Expect(after(eventPeriod, 0)).To(BeEquivalentTo(eventShare + eventStep))
}

// counted is a pace, and how long it has let something wait.
func counted() (Pace, *time.Duration) {
	waited := new(time.Duration)
	return NewPace(func(d time.Duration) { *waited += d }), waited
}

// readEventsWithoutEnd expects so many events a second, with a sleep for those that wait.
func readEventsWithoutEnd(t *testing.T, sleep func(context.Context, time.Duration) error, perSecond int) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		pace, waited := counted()
		waits := 0
		pace.events.sleep = func(ctx context.Context, d time.Duration) error {
			waits++
			return sleep(ctx, d)
		}
		const seconds = 10
		burst, more := eventBurst, seconds*perSecond
		event := `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1"}}`
		took := Intake{Member: "a", Paths: quantities.NewPaths(scheme.Scheme), Event: 1 << 20, objects: 10, Pace: pace}
		way := took.Guard(RoundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(strings.Repeat(event, burst+more)))}, nil
		}))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://a/api/v1/pods?watch=true", nil)
		g.Expect(err).NotTo(HaveOccurred())
		resp, err := way.RoundTrip(req)
		g.Expect(err).NotTo(HaveOccurred())
		began := time.Now()
		_, err = io.CopyN(io.Discard, resp.Body, int64(burst*len(event)))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(time.Since(began)).To(BeZero(), "what a busy member sends at once does not wait")
		_, err = io.Copy(io.Discard, resp.Body)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(time.Since(began)).To(BeNumerically("~", seconds*time.Second, time.Second))
		g.Expect(*waited).To(Equal(time.Since(began)), "all of that time is waiting, and is counted")
		g.Expect(waits).To(BeNumerically("<=", more/eventTurn+eventTurn), "a wait is for a turn")
		g.Expect(resp.Body.Close()).To(Succeed())
	})
}

// TestAWatchThatStopsGivesItsTurnBack: the watch that waits with it is not held up for events that nobody reads.
func TestAWatchThatStopsGivesItsTurnBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		pace, _ := counted()
		began := time.Now()
		stopped, stop := context.WithCancel(t.Context())
		first, second := watchPace{Pace: pace}, watchPace{Pace: pace}
		for range eventBurst {
			g.Expect(first.wait(stopped, 1)).To(Succeed())
		}
		stop()
		g.Expect(first.wait(stopped, 1)).To(MatchError(context.Canceled))
		for range eventTurn {
			g.Expect(second.wait(t.Context(), 1)).To(Succeed())
		}
		g.Expect(time.Since(began)).To(BeNumerically("<=", (eventTurn+1)*time.Second/eventShare))
	})
}

// TestWatchesOfAMemberShareItsRate reads two at once.
func TestWatchesOfAMemberShareItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		pace := NewPace(func(time.Duration) {})
		pace.events.sleep = func(ctx context.Context, d time.Duration) error { return sleep(ctx, d+2*wakeUp) }
		read, done := [2]int{}, make(chan error)
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		for i := range read {
			go func() {
				watch := watchPace{Pace: pace}
				var err error
				for err == nil {
					read[i]++
					err = watch.wait(ctx, 1)
				}
				done <- err
			}()
		}
		for range read {
			g.Expect(<-done).To(MatchError(context.DeadlineExceeded))
		}
		g.Expect(read[0] + read[1]).To(BeNumerically("~", 10*eventShare, 100))
		g.Expect(read[0]).To(BeNumerically("~", read[1], 100), "each its half")
	})
}

// TestLargeAnswersWithoutEndAreReadAtAPace asks again and again for a list that is large, or larger than allowed.
func TestLargeAnswersWithoutEndAreReadAtAPace(t *testing.T) {
	const size, allowed = 4 << 20, paceBurst / (4 << 20)
	for what, limit := range map[string]int64{"allowed": size + 1<<10, "too large": size / 2} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				pace, waited := counted()
				took := Intake{
					Member: "a", Paths: quantities.NewPaths(scheme.Scheme), answer: limit, objects: 10, Pace: pace, Decodes: NewDecodes(1),
				}
				list := `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a","annotations":{"a":"` + strings.Repeat("b", size) + `"}}}]}`
				way := took.Guard(Bounded("a", time.Hour, limit, RoundTripper(func(*http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(list)), ContentLength: -1}, nil
				})))
				ask := func() {
					req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://a/api/v1/pods", nil)
					g.Expect(err).NotTo(HaveOccurred())
					resp, err := way.RoundTrip(req)
					g.Expect(err).NotTo(HaveOccurred())
					_, _ = io.Copy(io.Discard, resp.Body)
					g.Expect(resp.Body.Close()).To(Succeed())
				}
				began := time.Now()
				for range allowed / 2 {
					ask()
				}
				g.Expect(time.Since(began)).To(BeZero(), "caches that are filled do not wait")
				for range 4 * allowed {
					ask()
				}
				g.Expect(time.Since(began)).To(BeNumerically(">", 4*time.Second), "some seconds for hundreds of megabytes")
				g.Expect(*waited).To(Equal(time.Since(began)), "all of that time is waiting, and is counted")
			})
		})
	}
}

// TestEventsThatAreTooLargeAreReadAtAPace opens a watch again and again on which one event is begun that does not end.
func TestEventsThatAreTooLargeAreReadAtAPace(t *testing.T) {
	const size = 4 << 20
	const allowed = paceBurst / (memoryPerByte * size)
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		pace, waited := counted()
		took := Intake{Member: "a", Paths: quantities.NewPaths(scheme.Scheme), Event: size, objects: 10, Pace: pace, Decodes: NewDecodes(1)}
		event := `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"` + strings.Repeat("a", size)
		way := took.Guard(RoundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(event))}, nil
		}))
		watch := func() {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://a/api/v1/pods?watch=true", nil)
			g.Expect(err).NotTo(HaveOccurred())
			resp, err := way.RoundTrip(req)
			g.Expect(err).NotTo(HaveOccurred())
			_, err = io.Copy(io.Discard, resp.Body)
			g.Expect(err).To(MatchError(ErrTooLarge))
			g.Expect(resp.Body.Close()).To(Succeed())
		}
		began := time.Now()
		for range allowed {
			watch()
		}
		g.Expect(time.Since(began)).To(BeZero(), "some events that are too large for nobody's fault")
		for range 4 * allowed {
			watch()
		}
		g.Expect(time.Since(began)).To(BeNumerically(">=", 10*time.Second))
		g.Expect(*waited).To(Equal(time.Since(began)), "all of that time is waiting, and is counted")
	})
}

func TestFewBytesThatBecomeManyArePacedAsMany(t *testing.T) {
	text := `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"spec":{"containers":[` + strings.Repeat("{},", 10_000) + `{}]}}}`
	list := `{"kind":"PodList","apiVersion":"v1","items":[{"spec":{"containers":[` + strings.Repeat("{},", 10_000) + `{}]}}]}`
	for query, text := range map[string]string{"?watch=true": text, "": list} {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			const parts = 60 // of 30 KB, each of which takes more than 4 MB
			var waited time.Duration
			way := Intake{Member: "a", Paths: quantities.NewPaths(scheme.Scheme), Event: 4 << 20, Pace: NewPace(func(d time.Duration) { waited += d })}.Of(10, 4<<20)
			guarded := way.Guard(RoundTripper(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text))}, nil
			}))
			for range parts {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://a/api/v1/pods"+query, nil)
				g.Expect(err).NotTo(HaveOccurred())
				resp, err := guarded.RoundTrip(req)
				g.Expect(err).NotTo(HaveOccurred())
				_, err = io.ReadAll(resp.Body)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(resp.Body.Close()).To(Succeed())
			}
			g.Expect(waited).To(BeNumerically(">", time.Second), "their bytes alone are not even a burst")
		})
	}
}
