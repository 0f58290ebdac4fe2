package rest

import (
	"context"
	"errors"
	"io"
	"math"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
)

// writeError answers with the HTTP status that fits the gRPC code, google.rpc.Status as JSON, and Retry-After where that has a RetryInfo.
func writeError(_ context.Context, _ *runtime.ServeMux, marshaler runtime.Marshaler, w http.ResponseWriter, _ *http.Request, err error) {
	var fixed *runtime.HTTPStatusError
	if errors.As(err, &fixed) {
		err = fixed.Err
	}
	answer := status.Convert(apierror.Explain(err))
	code := runtime.HTTPStatusFromCode(answer.Code())
	if fixed != nil {
		code = fixed.HTTPStatus
	}
	if answer.Code() == codes.Unauthenticated {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if delay := apierror.RetryDelay(answer); delay > 0 { // in whole seconds, and none before the delay is over
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(delay.Seconds()))))
	}
	if events, ok := marshaler.(*serverSentEvents); ok {
		marshaler = &events.JSONPb
	}
	body, err := marshaler.Marshal(answer.Proto())
	if err != nil {
		code, body = http.StatusInternalServerError, []byte(`{"code":13,"message":"internal error","details":[]}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(body) // a caller who has gone is no concern of ours
	_, _ = io.WriteString(w, "\n")
}

// writeRoutingError answers what is not a call of the API.
func writeRoutingError(ctx context.Context, mux *runtime.ServeMux, marshaler runtime.Marshaler, w http.ResponseWriter, r *http.Request, code int) {
	answer := status.New(codes.NotFound, "no such path; "+openAPIPath+" lists all paths")
	switch code {
	case http.StatusMethodNotAllowed:
		answer = status.New(codes.Unimplemented, "this path does not support the method; "+openAPIPath+" lists the methods")
	case http.StatusBadRequest:
		answer = status.New(codes.InvalidArgument, "the path is malformed")
	}
	writeError(ctx, mux, marshaler, w, r, &runtime.HTTPStatusError{HTTPStatus: code, Err: answer.Err()})
}

// onlyJSON refuses bodies that say they are something else than JSON. One that says nothing is treated as JSON.
func onlyJSON(mux *runtime.ServeMux, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 && !saysJSON(r.Header.Get("Content-Type")) {
			_, marshaler := runtime.MarshalerForRequest(mux, r)
			writeError(r.Context(), mux, marshaler, w, r, &runtime.HTTPStatusError{HTTPStatus: http.StatusUnsupportedMediaType,
				Err: status.Error(codes.InvalidArgument, "Content-Type: the body must be application/json")})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// saysJSON reports whether a Content-Type is that of JSON, or says nothing.
func saysJSON(said string) bool {
	if said == "" {
		return true
	}
	kind, _, err := mime.ParseMediaType(said)
	return err == nil && kind == "application/json"
}

// sameMachine guards the unauthenticated mode against web pages: their browser runs on this machine, and would send what
// they ask it to. It sends the page's origin along, and a name that was made to resolve to loopback in Host.
func sameMachine(mux *runtime.ServeMux, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if origin := r.Header.Get("Origin"); !isLoopback(r.Host) || origin != "" && !isOrigin(origin, r.Host) {
			_, marshaler := runtime.MarshalerForRequest(mux, r)
			writeError(r.Context(), mux, marshaler, w, r, status.Error(codes.PermissionDenied,
				"an unauthenticated API serves only calls to a loopback address, and no web pages of other origins"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// sameOrigin refuses what a web page from elsewhere has a browser do: unlike a token, the browser would add its certificate.
func sameOrigin(mux *runtime.ServeMux, next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, marshaler := runtime.MarshalerForRequest(mux, r)
		writeError(r.Context(), mux, marshaler, w, r, status.Error(codes.PermissionDenied, "the API accepts no changes from a web page of another origin"))
	}))
	return protection.Handler(next)
}

// isLoopback reports whether a Host header names this machine.
func isLoopback(host string) bool {
	name := (&url.URL{Host: host}).Hostname()
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

func isOrigin(origin, host string) bool {
	parsed, err := url.Parse(origin)
	return err == nil && parsed.Host == host
}
