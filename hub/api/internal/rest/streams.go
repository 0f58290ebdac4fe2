package rest

import (
	"net/http"
	"strings"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
)

const (
	// watchSuffix ends the paths of watches.
	watchSuffix = ":watch"
	// eventStream is the content type of Server-Sent Events.
	eventStream = "text/event-stream"
	// patience is how long a reader of a stream may take nothing.
	patience = 30 * time.Second
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

// openEnded lets watches take longer than other calls, and ends those whose reader takes nothing. Other calls are not answered as
// events.
func openEnded(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	if !strings.HasSuffix(r.URL.Path, watchSuffix) {
		if strings.Contains(r.Header.Get("Accept"), eventStream) {
			r.Header.Del("Accept")
		}
		return w
	}
	control := http.NewResponseController(w)
	if r.Method == http.MethodGet && r.ContentLength == 0 { // else the body has to come within the server's own time, whoever sends it
		_ = control.SetReadDeadline(time.Time{}) // where that is not known, the server's own holds
	}
	return &patientWriter{w, control}
}

// patientWriter gives each write a time of its own.
type patientWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

// Write implements [http.ResponseWriter].
func (w *patientWriter) Write(text []byte) (int, error) {
	_ = w.control.SetWriteDeadline(time.Now().Add(patience)) // where that is not known, the server's own holds
	return w.ResponseWriter.Write(text)
}

// Unwrap is for [http.ResponseController].
func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
