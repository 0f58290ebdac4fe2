package cli

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/connection"
	"github.com/plimsoll-dev/plimsoll/hub/page"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// maxDashboardRequest is the largest request of the page, in bytes.
const maxDashboardRequest = 64 << 10

func dashboardCommand(env Environment) *cobra.Command {
	conn := connection.New(env.Getenv)
	var listen string
	command := &cobra.Command{
		Use:   "dashboard",
		Short: "Serve the hub's web page on this machine, signed in as you",
		Long: `Serve the hub's web page on this machine, signed in as you, until interrupted.

The command forwards the calls of the page with its token, which never reaches the browser. It prints an address that opens the page once, in
one tab. Run the command again to open another tab.`,
		Example: `  # Print an address, and open it in a browser
  plimsoll dashboard`,
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			listener, err := listenLocally(listen)
			if err != nil {
				return usage(c, err)
			}
			api, err := conn.Open(c.Context())
			if err != nil {
				_ = listener.Close()
				return err
			}
			defer api.Close()
			// A page that can show nothing would say less than this does.
			if err := mayCall(c.Context(), api); err != nil {
				_ = listener.Close()
				return err
			}
			return serveDashboard(c.Context(), env, api, listener)
		},
	}
	conn.AddFlags(command)
	command.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "loopback address to listen on; port 0 selects a free port")
	return command
}

// mayCall asks the API something, to see that it answers and accepts the token. Not to be allowed to list clusters is no reason.
func mayCall(ctx context.Context, api *connection.Client) error {
	call, cancel := api.CallContext(ctx, 0)
	defer cancel()
	_, err := plimsollv1.NewClusterServiceClient(api).ListClusters(call, &plimsollv1.ListClustersRequest{PageSize: 1})
	if status.Code(err) == codes.PermissionDenied {
		return nil
	}
	return err
}

// listenLocally refuses addresses that others reach: whoever does could act in the caller's name.
func listenLocally(address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("--listen %q: must be the IP address of a loopback interface and a port, such as 127.0.0.1:0", address)
	}
	return net.Listen("tcp", address)
}

// hostOf is how a browser names an address of http: it leaves out the port that http has anyway.
func hostOf(address string) string {
	host, port, err := net.SplitHostPort(address)
	switch {
	case err != nil || port != "80":
		return address
	case strings.Contains(host, ":"):
		return "[" + host + "]"
	}
	return host
}

// serveDashboard serves until ctx ends.
func serveDashboard(ctx context.Context, env Environment, api *connection.Client, listener net.Listener) error {
	d, err := newDashboard(hostOf(listener.Addr().String()), api)
	if err != nil {
		_ = listener.Close()
		return err
	}
	server := &http.Server{
		Handler: http.MaxBytesHandler(d, maxDashboardRequest), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	fmt.Fprintf(env.Out, "http://%s%s#once=%s\n", d.host, page.Path, d.secret)
	fmt.Fprintln(env.Err, "Open this address in a browser; it works once. Press Ctrl-C to stop.")
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("dashboard: %w", err)
	}
	return nil
}

// dashboard is the page with the API behind it. The one-time secret in the address, which browsers keep to themselves behind its #, is
// exchanged for a session that is good for nothing but this dashboard.
type dashboard struct {
	host  string // that requests are for; another one is a name that somebody made to resolve to this machine
	page  *page.Handler
	calls http.Handler
	token string

	mu              sync.Mutex
	secret, session string // session is empty until the secret was exchanged
}

func newDashboard(host string, api *connection.Client) (*dashboard, error) {
	served, err := page.New()
	if err != nil {
		return nil, err
	}
	none := func(string) (string, bool) { return "", false }
	mux := runtime.NewServeMux(
		runtime.WithMarshalerOption(runtime.MIMEWildcard, &runtime.JSONPb{MarshalOptions: protojson.MarshalOptions{EmitDefaultValues: true}}),
		runtime.WithIncomingHeaderMatcher(none), runtime.WithOutgoingHeaderMatcher(none), runtime.WithOutgoingTrailerMatcher(none),
		runtime.WithDisablePathLengthFallback(), runtime.WithDisableHTTPMethodOverride())
	ctx := context.Background()
	err = errors.Join(plimsollv1.RegisterClusterServiceHandlerClient(ctx, mux, plimsollv1.NewClusterServiceClient(api)),
		plimsollv1.RegisterWorkloadServiceHandlerClient(ctx, mux, plimsollv1.NewWorkloadServiceClient(api)),
		plimsollv1.RegisterObjectServiceHandlerClient(ctx, mux, plimsollv1.NewObjectServiceClient(api)),
		plimsollv1.RegisterEventServiceHandlerClient(ctx, mux, plimsollv1.NewEventServiceClient(api)),
		plimsollv1.RegisterFleetServiceHandlerClient(ctx, mux, plimsollv1.NewFleetServiceClient(api)))
	if err != nil {
		return nil, fmt.Errorf("dashboard: %w", err)
	}
	return &dashboard{host: host, page: served, calls: mux, token: api.Token(), secret: rand.Text()}, nil
}

// ServeHTTP implements [http.Handler].
func (d *dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if origin := r.Header.Get("Origin"); r.Host != d.host || origin != "" && origin != "http://"+d.host {
		refuseCall(w, codes.PermissionDenied, "this dashboard answers its own page only, at http://"+d.host)
		return
	}
	switch {
	case d.page.Serves(r):
		d.page.ServeHTTP(w, r)
	case r.URL.Path == "/dashboard/session" && r.Method == http.MethodPost:
		d.exchange(w, r)
	case !strings.HasPrefix(r.URL.Path, "/v1/"):
		refuseCall(w, codes.NotFound, "there is no such path")
	case !d.isSignedIn(r):
		refuseCall(w, codes.Unauthenticated, "this is not the tab that was opened by plimsoll dashboard: run it again")
	default:
		d.forward(w, r)
	}
}

// exchange makes a session of the secret, once.
func (d *dashboard) exchange(w http.ResponseWriter, r *http.Request) {
	var sent struct{ Secret string }
	err := json.NewDecoder(r.Body).Decode(&sent)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil || d.session != "" || subtle.ConstantTimeCompare([]byte(sent.Secret), []byte(d.secret)) != 1 {
		refuseCall(w, codes.Unauthenticated, "the address was used already, or is another dashboard's")
		return
	}
	d.session = rand.Text()
	answer(w, http.StatusOK, map[string]any{"token": d.session})
}

func (d *dashboard) isSignedIn(r *http.Request) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	shown, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && d.session != "" && subtle.ConstantTimeCompare([]byte(shown), []byte(d.session)) == 1
}

// forward calls the API with the token of the command.
func (d *dashboard) forward(w http.ResponseWriter, r *http.Request) {
	r.Header.Del("Authorization")
	if d.token != "" {
		r.Header.Set("Authorization", "Bearer "+d.token)
	}
	r.Header.Del("Grpc-Timeout")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	d.calls.ServeHTTP(w, r)
}

// refuseCall answers as the API does.
func refuseCall(w http.ResponseWriter, code codes.Code, message string) {
	answer(w, runtime.HTTPStatusFromCode(code), map[string]any{"code": code, "message": message, "details": []string{}})
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // a browser that has gone is no concern of ours
}
