package rest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/limits"
)

// complete reads the body of a call before the method is called, and counts the call among those that arrive until then: nobody has
// looked at its token yet.
func complete(mux *runtime.ServeMux, arrivals *limits.Arrivals, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 {
			next.ServeHTTP(w, r)
			return
		}
		refuse := func(err error) {
			_, marshaler := runtime.MarshalerForRequest(mux, r)
			writeError(r.Context(), mux, marshaler, w, r, err)
		}
		leave, err := arrivals.Enter(auth.Origin(r.Context()))
		if err != nil {
			refuse(err)
			return
		}
		body, err := readWithin(arrivals.Patience(), w, r.Body)
		leave()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			refuse(&runtime.HTTPStatusError{HTTPStatus: http.StatusRequestTimeout,
				Err: status.Errorf(codes.DeadlineExceeded, "the body did not arrive within %s", arrivals.Patience())})
			return
		}
		r.Body = &arrivedBody{Reader: bytes.NewReader(body), failed: err, Closer: r.Body}
		next.ServeHTTP(w, r)
	})
}

// readWithin reads a body to its end, for no longer than patience; where w cannot bound that, the server's own deadline holds. The deadline
// ends nothing else: over HTTP/1 the server lifts it with the end of the body, and over HTTP/2 it is the body's alone.
func readWithin(patience time.Duration, w http.ResponseWriter, body io.Reader) ([]byte, error) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(patience))
	return io.ReadAll(body)
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
