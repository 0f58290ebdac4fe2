package hub

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/plimsoll-dev/plimsoll/hub/pki"
)

func newTestCA(t *testing.T) *pki.CA {
	t.Helper()
	ca, err := pki.EnsureCA(t.Context(), fake.NewClientBuilder().WithScheme(scheme.Scheme).Build(), "plimsoll-system", CASecret)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// servePeers runs a peer server with a gRPC service and an admission handler, and returns its address.
func servePeers(t *testing.T, ca *pki.CA) string {
	t.Helper()
	between := grpc.NewServer()
	healthv1.RegisterHealthServer(between, health.NewServer())
	admission := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("admitted")) })
	server := &http.Server{
		Handler: peerHandler(between, admission), TLSConfig: ca.PeerServerTLS(),
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- serveHTTP(ctx, server, func() error { return server.ServeTLS(listener, "", "") })
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

func ask(ctx context.Context, p *peers, address string) error {
	conn, err := p.Dial(address)
	if err != nil {
		return err
	}
	_, err = healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{})
	return err
}

func TestReplicasAskEachOtherOverBothProtocolsOnOnePort(t *testing.T) {
	ca := newTestCA(t)
	address := servePeers(t, ca)
	p := newPeers(ca.PeerClientTLS(), slog.New(slog.DiscardHandler))
	defer p.close()
	if err := ask(t.Context(), p, address); err != nil {
		t.Errorf("gRPC: %v", err)
	}
	transport := &http.Transport{TLSClientConfig: ca.PeerClientTLS(), ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Post("https://"+address+"/peer/v1/members/a/pods", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		t.Errorf("admission: %s", response.Status)
	}
}

func TestAPeerOfAnotherHubIsRefusedBothWays(t *testing.T) {
	address := servePeers(t, newTestCA(t))
	p := newPeers(newTestCA(t).PeerClientTLS(), slog.New(slog.DiscardHandler))
	defer p.close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := ask(ctx, p, address); status.Code(err) != codes.Unavailable {
		t.Errorf("got %v", err)
	}
}

func TestAnOwnerThatCannotBeReachedIsAnErrorAtOnce(t *testing.T) {
	ca := newTestCA(t)
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := nobody.Addr().String()
	_ = nobody.Close()
	p := newPeers(ca.PeerClientTLS(), slog.New(slog.DiscardHandler))
	defer p.close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := ask(ctx, p, address); status.Code(err) != codes.Unavailable || ctx.Err() != nil {
		t.Errorf("got %v", err)
	}
}

func TestConnectionsAreKeptForTheOwnerAndClosedAfterAFarewellForOthers(t *testing.T) {
	ca := newTestCA(t)
	synctest.Test(t, func(t *testing.T) {
		p := newPeers(ca.PeerClientTLS(), slog.New(slog.DiscardHandler))
		defer p.close()
		first, err := p.Dial("10.0.0.1:1")
		if err != nil {
			t.Fatal(err)
		}
		p.keep(map[string]bool{"10.0.0.1:1": true})
		time.Sleep(2 * farewell)
		if again, _ := p.Dial("10.0.0.1:1"); again != first {
			t.Error("the owner's connection was not kept")
		}
		p.keep(map[string]bool{"10.0.0.2:1": true})
		time.Sleep(farewell / 2)
		if during, _ := p.Dial("10.0.0.1:1"); during != first {
			t.Error("the connection was closed while calls could still be under way")
		}
		time.Sleep(farewell)
		if after, _ := p.Dial("10.0.0.1:1"); after == first {
			t.Error("the connection of a former owner was never closed")
		}
	})
}

func TestAReplicaThatStopsMakesNoNewConnections(t *testing.T) {
	p := newPeers(newTestCA(t).PeerClientTLS(), slog.New(slog.DiscardHandler))
	p.close()
	if _, err := p.Dial("10.0.0.1:1"); err == nil {
		t.Error("a connection was made after the end")
	}
}

// fixed is an Ownership with fixed answers.
type fixed struct {
	owner  string
	mine   bool
	lapsed bool // the owner's term has ended
}

func (o fixed) Owner(string) (string, time.Time) {
	if o.lapsed {
		return o.owner, time.Now()
	}
	return o.owner, time.Now().Add(time.Hour)
}
func (o fixed) Mine(string) (time.Time, bool) { return time.Time{}, o.mine }
func (o fixed) MineAny() bool                 { return o.mine }
func (o fixed) Subscribe(func())              {}

func TestWhoAnswersForAMember(t *testing.T) {
	const self, other = "10.0.0.1:1", "10.0.0.2:1"
	for name, test := range map[string]struct {
		ownership     fixed
		local         bool   // admissions
		owner         string // of admissions that are not local
		answersItself bool   // questions; orders only where admissions are local
	}{
		"the owner":                     {fixed{self, true, false}, true, "", true},
		"a standby":                     {fixed{other, false, false}, false, other, false},
		"an owner that was lost":        {fixed{other, false, true}, false, "", false},
		"nobody owns it":                {fixed{"", false, true}, false, "", false},
		"an owner that could not renew": {fixed{self, false, true}, false, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			r := routes{ownership: test.ownership, self: self}
			if local, owner := r.Route("m"); local != test.local || owner != test.owner {
				t.Errorf("admissions go to %t %q", local, owner)
			}
			if r.Mine("m") != test.answersItself {
				t.Errorf("it answers questions itself: %t", !test.answersItself)
			}
			if r.Acts("m") != test.local {
				t.Errorf("it takes orders: %t", !test.local)
			}
		})
	}
}

func TestOnlyAFailedCheckMakesAReplicaUnready(t *testing.T) {
	var failure error
	handler := probeHandler([]check{{"stopping", func() error { return failure }}})
	get := func(path string) (int, string) {
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
		return recorder.Code, recorder.Body.String()
	}
	if code, _ := get("/readyz"); code != http.StatusOK {
		t.Errorf("ready: %d", code)
	}
	failure = errors.New("this replica stops")
	if code, body := get("/readyz"); code != http.StatusServiceUnavailable || body != "stopping: this replica stops\n" {
		t.Errorf("not ready: %d %q", code, body)
	}
	if code, _ := get("/healthz"); code != http.StatusOK {
		t.Errorf("healthy: %d", code)
	}
}

// A farewell timer that has fired waits for the lock while the replica closes its connections.
func TestAFarewellThatComesAfterTheEndIsHarmless(t *testing.T) {
	p := newPeers(nil, slog.New(slog.DiscardHandler))
	conn, err := grpc.NewClient("passthrough:///10.0.0.1:1", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	p.conns["10.0.0.1:1"] = conn
	p.keep(map[string]bool{"other": true})
	p.close()
	p.drop("10.0.0.1:1")
	if len(p.conns) != 0 || len(p.leaving) != 0 {
		t.Errorf("%d connections and %d timers are left", len(p.conns), len(p.leaving))
	}
}
