package intake

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/sample"
	"github.com/plimsoll-dev/plimsoll/clusters/quantities"
)

func TestARetryAfterIsNotObeyedForLong(t *testing.T) {
	for value, want := range map[string]string{"3600": "5", "2": "2", "": "", "-1": "", "Fri, 31 Dec 2999 23:59:59 GMT": ""} {
		g := NewWithT(t)
		way := Intake{Member: "a"}.Guard(RoundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {value}}, Body: http.NoBody}, nil
		}))
		for _, query := range []string{"", "?watch=true"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://a/api/v1/pods"+query, nil)
			g.Expect(err).NotTo(HaveOccurred())
			resp, err := way.RoundTrip(req)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(resp.Header.Get("Retry-After")).To(Equal(want), value)
			g.Expect(resp.Body.Close()).To(Succeed())
		}
	}
}

func TestAURLThatIsTooLongIsNotSent(t *testing.T) {
	for query, sent := range map[string]bool{"resourceVersion=" + strings.Repeat("1", MaxToken): true, "resourceVersion=" + strings.Repeat("1", maxURL): false} {
		g := NewWithT(t)
		asked := false
		way := Intake{Member: "a"}.Guard(RoundTripper(func(*http.Request) (*http.Response, error) {
			asked = true
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}, nil
		}))
		resp, err := way.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/pods?"+query, nil))
		g.Expect(asked).To(Equal(sent))
		if !sent {
			g.Expect(err).To(MatchError(And(ContainSubstring("member a"), ContainSubstring("URL of a request is too long"))))
			continue
		}
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(resp.Body.Close()).To(Succeed())
	}
}

func TestAWatchEndsFromOurSideWhenItsMemberGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		for query, limit := range map[string]time.Duration{"watch=true&timeoutSeconds=60": time.Minute + watchGrace, "watch=1": longestWatch} {
			endless := RoundTripper(func(r *http.Request) (*http.Response, error) {
				from, to := io.Pipe()
				go func() {
					<-r.Context().Done()
					_ = to.CloseWithError(r.Context().Err())
				}()
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: from}, nil
			})
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://a/api/v1/pods?"+query, nil)
			g.Expect(err).NotTo(HaveOccurred())
			resp, err := Bounded("a", time.Second, 1, endless).RoundTrip(req)
			g.Expect(err).NotTo(HaveOccurred())
			began := time.Now()
			_, err = io.ReadAll(resp.Body)
			g.Expect(err).NotTo(HaveOccurred(), "it ends as if the member had ended it")
			g.Expect(time.Since(began)).To(Equal(limit))
			g.Expect(resp.Body.Close()).To(Succeed())
		}
	})
}

func TestAWatchThatIsNotAnsweredEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		silent := RoundTripper(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://a/api/v1/pods?watch=true", nil)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = Bounded("a", time.Second, 1, silent).RoundTrip(req)
		var timeout *TimeoutError
		g.Expect(errors.As(err, &timeout)).To(BeTrue(), "%v", err)
	})
}

func TestCompressedAnswersAreReadUpToARatio(t *testing.T) {
	g := NewWithT(t)
	bodies := map[string]struct {
		text string
		ok   bool
	}{
		"/small":   {strings.Repeat("a", anyRatio), true},
		"/real":    {sample.Varied(4 << 20), true},
		"/bomb":    {strings.Repeat("a", anyRatio+2<<20), false},
		"/chopped": {"", false},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.Expect(r.Header.Get("Accept-Encoding")).To(Equal("gzip"))
		if r.URL.Path == "/chopped" {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write([]byte{0x1f, 0x8b, 8, 0})
			return
		}
		sample.Zipped(bodies[r.URL.Path].text)(w, r)
	}))
	t.Cleanup(server.Close)
	way := Unzipped(&http.Transport{DisableCompression: true})
	for path, body := range bodies {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		g.Expect(err).NotTo(HaveOccurred())
		resp, err := way.RoundTrip(req)
		g.Expect(err).NotTo(HaveOccurred())
		text, err := io.ReadAll(resp.Body)
		if body.ok {
			g.Expect(err).NotTo(HaveOccurred(), path)
			g.Expect(string(text) == body.text).To(BeTrue(), path)
			g.Expect(resp.Header).NotTo(HaveKey("Content-Encoding"))
		} else {
			g.Expect(err).To(HaveOccurred(), path)
		}
		g.Expect(resp.Body.Close()).To(Succeed())
	}
}

// What a compressed answer stands for may be nothing at all: no limit of decompressed bytes ends such a one.
func TestCompressedAnswersThatStandForNothingAreNotReadOn(t *testing.T) {
	member := []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}
	empty := append(slices.Clone(member), 1, 0, 0, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0) // its one block, checksum and length
	for what, text := range map[string]struct{ begin, again string }{
		"empty blocks":  {string(member), "\x00\x00\x00\xff\xff"},
		"empty members": {"", string(empty)},
	} {
		t.Run(what, func(t *testing.T) {
			g := NewWithT(t)
			endless := &endlessly{text: text.again}
			body := io.NopCloser(io.MultiReader(strings.NewReader(text.begin), endless))
			way := Unzipped(RoundTripper(func(*http.Request) (*http.Response, error) {
				return &http.Response{Header: http.Header{"Content-Encoding": {"gzip"}}, Body: body}, nil
			}))
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://a/api/v1/pods", nil)
			g.Expect(err).NotTo(HaveOccurred())
			resp, err := way.RoundTrip(req)
			g.Expect(err).NotTo(HaveOccurred())
			_, err = io.ReadAll(resp.Body)
			g.Expect(err).To(MatchError(ErrUnreadable))
			g.Expect(endless.read).To(BeNumerically("<=", 256<<10))
			g.Expect(resp.Body.Close()).To(Succeed())
		})
	}
}

func TestLargePartsOfAMemberWaitForEachOther(t *testing.T) {
	g := NewWithT(t)
	of := NewDecodes(2)
	var held []*turn
	for range cap(of) {
		one := &turn{of: of, ctx: t.Context()}
		g.Expect(one.take(smallPart + 1)).To(Succeed())
		g.Expect(one.take(smallPart+1)).To(Succeed(), "it has its place")
		held = append(held, one)
	}
	g.Expect((&turn{of: of, ctx: t.Context()}).take(smallPart)).To(Succeed(), "small parts wait for nobody")
	var waited atomic.Bool
	done := make(chan error)
	go func() {
		next := &turn{of: of, ctx: t.Context()}
		err := next.take(smallPart + 1)
		waited.Store(true)
		next.close()
		done <- err
	}()
	g.Consistently(waited.Load, "50ms").Should(BeFalse())
	held[0].end()
	g.Expect(<-done).To(Succeed())
	held[1].close()
	held[1].close()
	g.Expect(of).To(BeEmpty(), "each place is given back once")
	g.Expect(held[1].take(smallPart + 1)).To(MatchError(http.ErrBodyReadAfterClose))
	g.Expect(of).To(BeEmpty())
}

func TestTheTimeOfAProbeBeginsWhenItIsSent(t *testing.T) {
	for name, test := range map[string]struct {
		queue, answer time.Duration
		ok            bool
	}{
		"the hub is busy":                    {8 * time.Second, 3 * time.Second, true},
		"the member does not answer in time": {0, 6 * time.Second, false},
		"it is never sent":                   {time.Hour, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				probes := BoundedOnceSent("a", 5*time.Second, 20*time.Second, 100, afterQueue(test.queue, test.answer))
				req, err := http.NewRequest(http.MethodGet, "https://a.example/readyz", nil)
				g.Expect(err).NotTo(HaveOccurred())
				resp, err := probes.RoundTrip(req)
				if err == nil {
					_ = resp.Body.Close()
				}
				g.Expect(err == nil).To(Equal(test.ok), "error: %v", err)
				if !test.ok {
					g.Expect(errors.As(err, new(*TimeoutError))).To(BeTrue(), "error: %v", err)
				}
			})
		})
	}
}

// afterQueue is a wire on which a request waits for its turn before it is sent, and then for its answer.
func afterQueue(queue, answer time.Duration) RoundTripper {
	return func(req *http.Request) (*http.Response, error) {
		for _, wait := range []time.Duration{queue, answer} {
			select {
			case <-time.After(wait):
			case <-req.Context().Done():
				return nil, req.Context().Err()
			}
			if trace := httptrace.ContextClientTrace(req.Context()); wait == queue && trace != nil {
				trace.WroteRequest(httptrace.WroteRequestInfo{})
			}
		}
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	}
}

// A client reads such an answer in the format that it asked for, so it has to be what was looked through.
func TestAnAnswerThatDoesNotSayWhatItIsIsJSON(t *testing.T) {
	// A PodList of an empty pod, as protobuf without any byte that would end a word of JSON.
	const pods = "k8s\x00\x8a\x00\x0e\x8a\x00\x02v1\x12\x07PodList\x12\x02\x12\x00"
	for text, readable := range map[string]bool{pods: false, `{"kind":"PodList","apiVersion":"v1","items":[{}]}`: true} {
		for _, query := range []string{"", "?watch=true"} {
			g := NewWithT(t)
			way := Intake{Member: "a", Paths: quantities.NewPaths(scheme.Scheme), Event: 1 << 20}.Of(10, 1<<20).Guard(RoundTripper(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text))}, nil
			}))
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://a/api/v1/pods"+query, nil)
			g.Expect(err).NotTo(HaveOccurred())
			resp, err := way.RoundTrip(req)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(resp.Header.Get("Content-Type")).To(Equal("application/json"))
			read, err := io.ReadAll(resp.Body)
			if readable {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(string(read)).To(Equal(text))
			} else {
				g.Expect(err).To(MatchError(ErrUnreadable))
				g.Expect(read).To(BeEmpty())
			}
			g.Expect(resp.Body.Close()).To(Succeed())
		}
	}
}
