package rest

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// watchSuffix ends the paths of watches.
	watchSuffix = ":watch"
	// eventStream is the content type of Server-Sent Events.
	eventStream = "text/event-stream"
)

// serverSentEvents writes each message of a stream as an event.
type serverSentEvents struct{ runtime.JSONPb }

// Marshal implements [runtime.Marshaler].
func (s *serverSentEvents) Marshal(message any) ([]byte, error) {
	text, err := s.JSONPb.Marshal(message)
	return append([]byte("data: "), text...), err
}

// Delimiter implements [runtime.Delimited].
func (*serverSentEvents) Delimiter() []byte { return []byte("\n\n") }

// ContentType implements [runtime.Marshaler].
func (*serverSentEvents) ContentType(any) string { return eventStream }

// ndjson writes each message of a stream as a line.
type ndjson struct{ runtime.JSONPb }

// StreamContentType implements [runtime.StreamContentType].
func (*ndjson) StreamContentType(any) string { return "application/x-ndjson" }

// openEnded lets watches take longer than other calls, and ends those whose reader takes nothing for as long as patience. Other calls are
// not answered as events.
func openEnded(w http.ResponseWriter, r *http.Request, patience time.Duration) (http.ResponseWriter, *http.Request) {
	if !strings.HasSuffix(r.URL.Path, watchSuffix) {
		if strings.Contains(r.Header.Get("Accept"), eventStream) {
			r.Header.Del("Accept")
		}
		return w, r
	}
	control := http.NewResponseController(w)
	if r.Method == http.MethodGet && r.ContentLength == 0 { // else the body has to come within the server's own time, whoever sends it
		_ = control.SetReadDeadline(time.Time{}) // where that is not known, the server's own holds
	}
	_ = control.SetWriteDeadline(time.Time{}) // the first message may take its time
	ctx, end := context.WithCancelCause(context.WithoutCancel(r.Context()))
	patient := &patientWriter{ResponseWriter: w, control: control, patience: patience, end: end}
	context.AfterFunc(r.Context(), func() { end(patient.why()) })
	return patient, r.WithContext(ctx)
}

// patientWriter gives each message a time of its own, and knows whether its reader took it.
type patientWriter struct {
	http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
	end      context.CancelCauseFunc   // of the call
	begun    atomic.Pointer[time.Time] // when it began to write what the deadline is for; nil: there is no deadline
}

// Write implements [http.ResponseWriter].
func (w *patientWriter) Write(text []byte) (int, error) {
	w.begin()
	n, err := w.ResponseWriter.Write(text)
	if err != nil {
		w.end(w.why())
	}
	return n, err
}

// FlushError is for [http.ResponseController]. It lifts the deadline of what is sent: over HTTP/2 that would end a stream in which nothing
// happens.
func (w *patientWriter) FlushError() error {
	w.begin()
	if err := w.control.Flush(); err != nil {
		w.end(w.why())
		return err
	}
	_ = w.control.SetWriteDeadline(time.Time{})
	w.begun.Store(nil)
	return nil
}

// begin sets the deadline of what is written next; where that is not known, the server's own holds.
func (w *patientWriter) begin() {
	now := time.Now()
	w.begun.Store(&now)
	_ = w.control.SetWriteDeadline(now.Add(w.patience))
}

// why is why a call ended. Over HTTP/2 the server itself says only that it did, and may say it before the write returns.
func (w *patientWriter) why() error {
	if begun := w.begun.Load(); begun != nil && time.Since(*begun) >= w.patience {
		return status.Errorf(codes.Aborted, "its reader has taken nothing for %s", w.patience)
	}
	return context.Canceled // the reader has gone
}

// Unwrap is for [http.ResponseController].
func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
