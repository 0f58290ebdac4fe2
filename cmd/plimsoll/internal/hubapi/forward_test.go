package hubapi

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/streaming/pkg/httpstream"
)

// TestAForwardedPortReportsNothingOnceItIsClosed has a connection through the port fail to write to the pod: before the port is closed, and
// because of it.
func TestAForwardedPortReportsNothingOnceItIsClosed(t *testing.T) {
	for name, broken := range map[string]bool{"closed": false, "broken": true} {
		t.Run(name, func(t *testing.T) {
			reported := recordErrors(t)
			pod := newForwarded(broken)
			address, stop, err := forwardPort(t.Context(), pod, 9090)
			if err != nil {
				t.Fatal(err)
			}
			local, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = local.Close() }()
			if _, err := local.Write([]byte("hello")); err != nil {
				t.Fatal(err)
			}
			<-pod.writes
			if broken {
				<-pod.written
			}
			stop()
			<-pod.written
			if got := reported(); broken != (len(got) > 0) || broken && !strings.Contains(got[0].Error(), errSent.Error()) {
				t.Errorf("reported: %v", got)
			}
		})
	}
}

// recordErrors takes the place of client-go's error handlers.
func recordErrors(t *testing.T) func() []error {
	handlers := utilruntime.ErrorHandlers
	t.Cleanup(func() { utilruntime.ErrorHandlers = handlers })
	var mu sync.Mutex
	var all []error
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(_ context.Context, err error, _ string, _ ...any) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, err)
	}}
	return func() []error {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

var errSent = errors.New("websocket: close sent")

// forwarded is the connection to a pod, its dialer, and each of its streams. A write fails: at once if the connection is broken, else once it
// is closed.
type forwarded struct {
	broken  bool
	closed  chan bool
	writes  chan struct{} // one for each write that has begun
	written chan struct{} // closed once the forwarder is done with writing
	once    *sync.Once
}

func newForwarded(broken bool) *forwarded {
	return &forwarded{broken: broken, closed: make(chan bool), writes: make(chan struct{}, 1), written: make(chan struct{}), once: new(sync.Once)}
}

func (f *forwarded) Dial(...string) (httpstream.Connection, string, error) {
	return connection{f}, "portforward.k8s.io", nil
}

type connection struct{ *forwarded }

func (c connection) CreateStream(headers http.Header) (httpstream.Stream, error) {
	if headers.Get("streamType") != "data" {
		return errorStream{}, nil
	}
	return dataStream(c), nil
}
func (c connection) Close() error                     { c.once.Do(func() { close(c.closed) }); return nil }
func (c connection) CloseChan() <-chan bool           { return c.closed }
func (connection) SetIdleTimeout(time.Duration)       {}
func (connection) RemoveStreams(...httpstream.Stream) {}

type errorStream struct{ dataStream }

func (errorStream) Read([]byte) (int, error) { return 0, io.EOF }
func (errorStream) Close() error             { return nil }

type dataStream struct{ *forwarded }

func (s dataStream) Read([]byte) (int, error) { <-s.closed; return 0, io.EOF }
func (s dataStream) Write([]byte) (int, error) {
	s.writes <- struct{}{}
	if !s.broken {
		<-s.closed
	}
	return 0, errSent
}
func (s dataStream) Close() error       { close(s.written); return nil }
func (dataStream) Reset() error         { return nil }
func (dataStream) Headers() http.Header { return nil }
func (dataStream) Identifier() uint32   { return 0 }
