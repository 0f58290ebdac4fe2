package rest

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	. "github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/limits"
)

// protocols are those of the REST listener: deadlines are of a connection over one, and of a call over the other.
var protocols = map[string]bool{"HTTP/1": false, "HTTP/2": true}

// arriving is a REST listener whose calls are answered by next when they have arrived.
type arriving struct {
	*httptest.Server
	slow     atomic.Bool // the body of the slow call is being read
	together atomic.Bool // another one was read at the same time
}

func serveArriving(t *testing.T, http2 bool, patience time.Duration, next http.HandlerFunc) *arriving {
	t.Helper()
	s := &arriving{}
	arrivals := limits.NewArrivals(2, patience) // one of an address
	completed := complete(runtime.NewServeMux(), arrivals, next)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = &arrivingBody{ReadCloser: r.Body, of: s, slow: r.URL.Path == "/slow"}
		completed.ServeHTTP(w, r)
	})
	s.Server = httptest.NewUnstartedServer(nil)
	s.Config = Server(handler, ServerOptions{Log: slog.New(slog.DiscardHandler), MaxCall: time.Minute, MaxHeaders: 1 << 16})
	s.EnableHTTP2 = http2
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// arrivingBody is a body that is read while its call has a place.
type arrivingBody struct {
	io.ReadCloser
	of   *arriving
	slow bool
}

// Read implements [io.Reader].
func (b *arrivingBody) Read(into []byte) (int, error) {
	if b.slow {
		b.of.slow.Store(true)
	} else if b.of.slow.Load() {
		b.of.together.Store(true)
	}
	n, err := b.ReadCloser.Read(into)
	if err != nil && b.slow {
		b.of.slow.Store(false)
	}
	return n, err
}

// post returns the status and the text of an answer.
func (s *arriving) post(ctx context.Context, path string, body io.Reader) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+path, body)
	if err != nil {
		return 0, "", err
	}
	response, err := s.Client().Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// drip posts a body that never ends, byte by byte, until it finds a place, and returns how that is answered.
func (s *arriving) drip(ctx context.Context) (int, string, error) {
	for {
		body, sent := io.Pipe()
		go func() {
			for {
				if _, err := io.WriteString(sent, " "); err != nil {
					return
				}
				time.Sleep(time.Millisecond)
			}
		}()
		status, text, err := s.post(ctx, "/slow", body)
		_ = body.Close()
		if status != http.StatusTooManyRequests {
			return status, text, err
		}
	}
}

// What is being read takes memory, so as many bodies are read as have a place.
func TestABodyThatDripsHasItsPlaceUntilNothingMoreIsRead(t *testing.T) {
	for name, http2 := range protocols {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := serveArriving(t, http2, 200*time.Millisecond, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			type answer struct {
				status int
				text   string
				err    error
			}
			slow := make(chan answer, 1)
			go func() {
				status, text, err := s.drip(ctx)
				slow <- answer{status, text, err}
			}()
			var got answer
			for over := false; !over && !s.together.Load(); {
				status, _, err := s.post(ctx, "/", strings.NewReader("{}"))
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(status).To(Or(Equal(http.StatusNoContent), Equal(http.StatusTooManyRequests)))
				select {
				case got = <-slow:
					over = true
				default:
				}
			}
			g.Expect(s.together.Load()).To(BeFalse(), "another body is read while the slow one is, which has given its place back")
			g.Expect(got.err).NotTo(HaveOccurred())
			g.Expect(got.status).To(Equal(http.StatusRequestTimeout))
			g.Expect(got.text).To(And(ContainSubstring("the body did not arrive within 200ms"), ContainSubstring("DEADLINE_EXCEEDED")))
			status, _, err := s.post(ctx, "/", strings.NewReader("{}"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(status).To(Equal(http.StatusNoContent), "its place is free")
		})
	}
}

// How long a body may arrive does not bound the call.
func TestACallMayTakeLongerThanItsBodyAndItsConnectionIsUsedAgain(t *testing.T) {
	for name, http2 := range protocols {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			const patience = 500 * time.Millisecond
			s := serveArriving(t, http2, patience, func(w http.ResponseWriter, r *http.Request) {
				select {
				case <-time.After(2 * patience):
					w.WriteHeader(http.StatusNoContent)
				case <-r.Context().Done():
				}
			})
			var reused atomic.Bool
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused.Store(info.Reused) }})
			for range 2 {
				status, _, err := s.post(ctx, "/", strings.NewReader("{}"))
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(status).To(Equal(http.StatusNoContent))
			}
			g.Expect(reused.Load()).To(BeTrue())
		})
	}
}
