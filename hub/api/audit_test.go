package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile"
)

// names lets in whoever has a token, which is their name, and lets only operators order.
type names struct{}

func (names) Authenticate(_ context.Context, token string) (auth.Identity, error) {
	if token == "forged" {
		return auth.Identity{}, auth.ErrBadToken
	}
	return auth.Identity{User: token}, nil
}

func (names) Allowed(_ context.Context, who auth.Identity, _ auth.Access) (bool, error) {
	return who.User == "operator", nil
}

// silent is the ledger of a replica whose member does not answer.
type silent struct{ ledger }

func (silent) Closed(member string, hold reconcile.Hold) (string, bool) {
	return "it does not answer", member == "prod" && hold == reconcile.HoldBreaker
}

func (silent) RequeueFor(key reconcile.Key, caller string) (reconcile.Operation, error) {
	return reconcile.Operation{ID: "id", Key: key, Caller: caller}, nil
}

// auditLog keeps the lines of orders. Safe for concurrent use.
type auditLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *auditLog) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

// orders are the lines since the last call.
func (l *auditLog) orders(t *testing.T) (lines []map[string]any) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for all := bufio.NewScanner(&l.text); all.Scan(); {
		line := map[string]any{}
		if err := json.Unmarshal(all.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if line["msg"] == "API order" {
			lines = append(lines, line)
		}
	}
	l.text.Reset()
	return lines
}

// dialed remembers from which address the last connection was made.
type dialed struct{ from atomic.Value }

func (d *dialed) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err == nil {
		d.from.Store(conn.LocalAddr().String())
	}
	return conn, err
}

// ordering makes orders about the same workload over gRPC and REST; each reports its outcome and the address that it came from.
func ordering(t *testing.T, grpcAddress, restAddress string) map[string]func(token, body string) (code codes.Code, from string) {
	t.Helper()
	direct, web := &dialed{}, &dialed{}
	conn, err := grpc.NewClient("passthrough:///"+grpcAddress, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(direct.dial))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	transport := &http.Transport{DialContext: func(ctx context.Context, _, address string) (net.Conn, error) { return web.dial(ctx, address) }}
	t.Cleanup(transport.CloseIdleConnections)
	return map[string]func(string, string) (codes.Code, string){
		"gRPC": func(token, body string) (codes.Code, string) {
			ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token, "x-forwarded-for", "192.0.2.1")
			_, err := plimsollv1.NewWorkloadServiceClient(conn).RequeueWorkload(ctx, &plimsollv1.RequeueWorkloadRequest{
				Cluster: "prod", Namespace: "shop", Kind: "Deployment", Name: "cart", Force: strings.Contains(body, "force"),
			})
			return status.Code(err), direct.from.Load().(string)
		},
		"REST": func(token, body string) (codes.Code, string) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
				"http://"+restAddress+"/v1/clusters/prod/namespaces/shop/workloads/Deployment/cart:requeue", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			request.Header = http.Header{"Authorization": {"Bearer " + token}, "X-Forwarded-For": {"192.0.2.1"}}
			answer, err := (&http.Client{Transport: transport}).Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = answer.Body.Close() }()
			var failure struct{ Code codes.Code }
			if err := json.NewDecoder(answer.Body).Decode(&failure); err != nil {
				t.Fatal(err)
			}
			return failure.Code, web.from.Load().(string)
		},
	}
}

// An audit reads who wanted what and from where, also of orders that were refused.
func TestEveryOrderHasALineForAuditsWhateverComesOfIt(t *testing.T) {
	log := &auditLog{}
	o := options()
	o.Unauthenticated, o.Authenticator, o.Authorizer, o.Objects = false, names{}, names{}, silent{}
	o.Log = slog.New(slog.NewJSONHandler(log, nil))
	grpcAddress, restAddress := serve(t, o)
	for by, order := range ordering(t, grpcAddress, restAddress) {
		for name, c := range map[string]struct {
			token, body string
			user        string
			want        codes.Code
		}{
			"accepted":               {"operator", `{"force":true}`, "operator", codes.OK},
			"no right":               {"reader", `{}`, "reader", codes.PermissionDenied},
			"the breaker is open":    {"operator", `{}`, "operator", codes.FailedPrecondition},
			"a token of nobody":      {"forged", `{}`, "", codes.Unauthenticated},
			"no right, though force": {"reader", `{"force":true}`, "reader", codes.PermissionDenied},
		} {
			t.Run(by+": "+name, func(t *testing.T) {
				code, from := order(c.token, c.body)
				if code != c.want {
					t.Fatalf("%s, want %s", code, c.want)
				}
				lines := log.orders(t)
				if len(lines) != 1 {
					t.Fatalf("%d lines, want one: %v", len(lines), lines)
				}
				for field, want := range map[string]any{
					"level": "INFO", "method": plimsollv1.WorkloadService_RequeueWorkload_FullMethodName, "code": c.want.String(), "user": c.user, "remote": from,
					"member": "prod", "namespace": "shop", "kind": "Deployment", "name": "cart",
				} {
					if lines[0][field] != want {
						t.Errorf("%s: %v, want %v", field, lines[0][field], want)
					}
				}
				if forced := lines[0]["force"] == true; forced != strings.Contains(c.body, "force") {
					t.Errorf("force: %v", lines[0]["force"])
				}
			})
		}
	}
}
