package rest

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/limits"
	"github.com/plimsoll-dev/plimsoll/internal/shares"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// connectionBuffer and streamBuffer are how many bytes the server keeps of the calls of a connection over HTTP/2, and of one of them,
// that nobody has read.
const connectionBuffer, streamBuffer = 256 << 10, 64 << 10

// Page is a web page beside the methods. Safe for concurrent use.
type Page interface {
	http.Handler
	// Serves reports whether a request is for the page and for no method.
	Serves(r *http.Request) bool
}

// Options of the REST side.
type Options struct {
	// Arrivals bounds the calls whose bodies have not arrived.
	Arrivals *limits.Arrivals
	// Page is served before the methods; nil: there is none.
	Page Page
	// Loopback lets only callers of this machine in, and no web page from elsewhere.
	Loopback bool
	// SameOrigin refuses orders that a browser says come from a web page of another origin.
	SameOrigin bool
	// MaxRequest is how many bytes a body may have.
	MaxRequest int64
	// Patience is how long the reader of a watch may take nothing.
	Patience time.Duration
}

// New serves the methods behind conn as REST.
func New(conn grpc.ClientConnInterface, o Options) (http.Handler, error) {
	format := runtime.JSONPb{
		MarshalOptions:   protojson.MarshalOptions{EmitDefaultValues: true},
		UnmarshalOptions: protojson.UnmarshalOptions{}, // a field that we do not know is a mistake, not a detail
	}
	mux := runtime.NewServeMux(
		runtime.WithMarshalerOption(runtime.MIMEWildcard, &ndjson{format}),
		runtime.WithMarshalerOption(eventStream, &serverSentEvents{format}),
		// The gateway hands the Authorization header on by itself. Nothing else of a caller's headers has a meaning here.
		runtime.WithIncomingHeaderMatcher(noHeader),
		runtime.WithOutgoingHeaderMatcher(noHeader),
		runtime.WithOutgoingTrailerMatcher(noHeader),
		runtime.WithDisablePathLengthFallback(),
		runtime.WithDisableHTTPMethodOverride(),
		runtime.WithErrorHandler(writeError),
		runtime.WithRoutingErrorHandler(writeRoutingError),
		runtime.WithMiddlewares(knownParameters(queryParameters())),
	)
	ctx := context.Background()
	for _, err := range []error{
		plimsollv1.RegisterClusterServiceHandlerClient(ctx, mux, plimsollv1.NewClusterServiceClient(conn)),
		plimsollv1.RegisterWorkloadServiceHandlerClient(ctx, mux, plimsollv1.NewWorkloadServiceClient(conn)),
		plimsollv1.RegisterObjectServiceHandlerClient(ctx, mux, plimsollv1.NewObjectServiceClient(conn)),
		plimsollv1.RegisterEventServiceHandlerClient(ctx, mux, plimsollv1.NewEventServiceClient(conn)),
		plimsollv1.RegisterFleetServiceHandlerClient(ctx, mux, plimsollv1.NewFleetServiceClient(conn)),
	} {
		if err != nil {
			return nil, fmt.Errorf("API: register the REST calls: %w", err)
		}
	}
	described, err := openAPI()
	if err != nil {
		return nil, fmt.Errorf("API: OpenAPI documents: %w", err)
	}
	handler := http.Handler(front(described, onlyJSON(mux, complete(mux, o.Arrivals, mux)), o))
	if o.Loopback {
		handler = sameMachine(mux, handler)
	}
	if o.SameOrigin {
		handler = sameOrigin(mux, handler)
	}
	return http.MaxBytesHandler(handler, o.MaxRequest), nil
}

func noHeader(string) (string, bool) { return "", false }

// front serves what is no method, and passes who calls to the methods.
func front(described documents, methods http.Handler, o Options) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		if described.serves(r) {
			described.ServeHTTP(toAnybody(w, r), r)
			return
		}
		if o.Page != nil && o.Page.Serves(r) {
			o.Page.ServeHTTP(toAnybody(w, r), r)
			return
		}
		// How long the answer may take is ours to say.
		r.Header.Del("Grpc-Timeout")
		w, r = openEnded(w, r, o.Patience)
		methods.ServeHTTP(w, r.WithContext(peer.NewContext(r.Context(), caller(r))))
	}
}

// caller is where a request comes from, as gRPC says it.
func caller(r *http.Request) *peer.Peer {
	from := &peer.Peer{Addr: From(r)}
	if r.TLS != nil {
		from.AuthInfo = credentials.TLSInfo{State: *r.TLS}
	}
	return from
}

// From is the address of whoever sends a request.
func From(r *http.Request) net.Addr {
	if from := shares.Caller(r.Context()); from != nil {
		return from
	}
	return Address(r.RemoteAddr)
}

// Address is a host and port as a net.Addr.
type Address string

// Network implements [net.Addr].
func (Address) Network() string { return "tcp" }

// String implements [net.Addr].
func (a Address) String() string { return string(a) }

// ServerOptions are the limits of the REST listener.
type ServerOptions struct {
	TLS        *tls.Config   // nil: plain text
	Log        *slog.Logger  // gets what the HTTP server has to say, at debug
	MaxCall    time.Duration // of a call that is no watch
	MaxHeaders int           // bytes
}

// Server serves handler within limits.
func Server(handler http.Handler, o ServerOptions) *http.Server {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      o.MaxCall + 15*time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    o.MaxHeaders,
		HTTP2:             &http.HTTP2Config{MaxReceiveBufferPerConnection: connectionBuffer, MaxReceiveBufferPerStream: streamBuffer},
		ErrorLog:          slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	if o.TLS != nil {
		server.TLSConfig = o.TLS.Clone()
	}
	return server
}
