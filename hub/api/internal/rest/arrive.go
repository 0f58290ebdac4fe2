package rest

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/limits"
)

// complete reads the body of a call before the method is called, and counts the call among those that arrive until then: nobody has
// looked at its token yet. The server's own deadlines end bodies that are slow.
func complete(mux *runtime.ServeMux, arrivals *limits.Arrivals, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 {
			next.ServeHTTP(w, r)
			return
		}
		arriving, err := arrivals.Begin(r.Context(), auth.Origin(r.Context()))
		if err != nil {
			_, marshaler := runtime.MarshalerForRequest(mux, r)
			writeError(r.Context(), mux, marshaler, w, r, err)
			return
		}
		body, err := io.ReadAll(r.Body)
		limits.Arrived(arriving)
		r.Body = &arrivedBody{Reader: bytes.NewReader(body), failed: err, Closer: r.Body}
		next.ServeHTTP(w, r)
	})
}

// arrivedBody is a body that has been read, with the error that reading it ended with.
type arrivedBody struct {
	*bytes.Reader
	io.Closer
	failed error
}

// Read implements [io.Reader].
func (b *arrivedBody) Read(into []byte) (int, error) {
	n, err := b.Reader.Read(into)
	if errors.Is(err, io.EOF) && b.failed != nil {
		err = b.failed
	}
	return n, err
}
