package api

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/limits"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// options are good ones.
func options(t *testing.T) Options {
	r := shop(t)
	p := &people{}
	return Options{Backend: r.backend(), Peers: r.fleet, Authenticator: p, Authorizer: p, Log: testLog(t)}
}

func TestAnAPIThatCouldLetStrangersInIsNotMade(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"no authenticator":        func(o *Options) { o.Authenticator = nil },
		"no authorizer":           func(o *Options) { o.Authorizer = nil },
		"both and none":           func(o *Options) { o.Unauthenticated = true },
		"nothing to read from":    func(o *Options) { o.Members = nil },
		"no other replicas":       func(o *Options) { o.Peers = nil },
		"nobody who would log it": func(o *Options) { o.Log = nil },
	} {
		o := options(t)
		change(&o)
		if _, err := New(o); err == nil {
			t.Errorf("%s: it was made", name)
		}
	}
	r := shop(t)
	for name, config := range map[string]*tls.Config{
		"no TLS":                   nil,
		"no client certificates":   {},
		"certificates of anybody":  {ClientAuth: tls.RequireAnyClientCert},
		"certificates if you like": {ClientAuth: tls.VerifyClientCertIfGiven},
	} {
		if _, err := NewPeer(t.Context(), r.backend(), config, testLog(t)); err == nil {
			t.Errorf("peers with %s: it was made", name)
		}
	}
}

// A budget that is missing bounds nothing, and tests of one budget set it themselves.
func TestCallersOfAServerHaveAllBudgets(t *testing.T) {
	c := publicCore(t.Context(), options(t), access{})
	for range 2 {
		c.filters.Owe("a caller", limits.FilterBurst)
	}
	if err := c.filters.MayList("a caller", 0); err == nil {
		t.Error("lists and their filters have no budget")
	}
	if c.watches.Owe("a caller", limits.FilterBurst) > 0 {
		t.Error("filters of watches have the budget of lists")
	}
	if c.watches.Owe("a caller", limits.FilterBurst) == 0 {
		t.Error("filters of watches have no budget")
	}
	if c.ordered == nil || c.questions == nil {
		t.Errorf("lists in an order: %v, what-ifs: %v: one is unlimited", c.ordered, c.questions)
	}
}

func TestCallersOfOtherReplicasHaveBudgetsOfTheirOwn(t *testing.T) {
	c := peerCore(t.Context(), options(t).Backend, testLog(t))
	for range 2 + limits.PeerDebt {
		c.filters.Owe("a caller", limits.FilterBurst)
	}
	of := func(caller string) context.Context { return context.WithValue(t.Context(), behalfKey{}, caller) }
	if err := c.mayList(of("a caller")); err == nil {
		t.Error("lists that other replicas pass on have no budget")
	}
	if err := c.mayList(of("another caller")); err != nil {
		t.Errorf("a caller pays for what another one has spent: %v", err)
	}
	if c.questions == nil {
		t.Error("what-ifs that other replicas pass on have no turns")
	}
}

// notLoopback is a listener that says that it listens for everybody.
type notLoopback struct{ net.Listener }

func (notLoopback) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4zero, Port: 1} }

func TestOnlyLoopbackMayGoWithoutAuthenticationOrTLS(t *testing.T) {
	certificate, _ := selfSigned(t)
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13}
	for name, change := range map[string]func(*Options){
		"unauthenticated may only": func(o *Options) { o.Authenticator, o.Authorizer, o.Unauthenticated, o.TLS = nil, nil, true, config },
		"without TLS the API may":  func(*Options) {},
	} {
		for i, outside := range [][2]bool{{true, false}, {false, true}} {
			o := options(t)
			change(&o)
			server, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			listeners := [2]net.Listener{listen(t), listen(t)}
			if outside[0] {
				listeners[0] = notLoopback{listeners[0]}
			}
			if outside[1] {
				listeners[1] = notLoopback{listeners[1]}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			err = server.Run(ctx, listeners[0], listeners[1])
			cancel()
			if err == nil || !strings.Contains(err.Error(), "0.0.0.0:1") || !strings.Contains(err.Error(), strings.Fields(name)[0]) {
				t.Errorf("%s, listener %d: %v", name, i, err)
			}
			if _, err := listeners[0].Accept(); err == nil {
				t.Errorf("%s: a listener is still open", name)
			}
		}
	}
}

func TestTheUnauthenticatedModeSaysSoLoudly(t *testing.T) {
	s := serve(t, shop(t), func(o *Options) { o.Authenticator, o.Authorizer, o.Unauthenticated = nil, nil, true })
	for method, call := range everyCall(s) {
		if err := call(t.Context()); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
	if !strings.Contains(s.log.String(), `"WARN","msg":"THE API IS UNAUTHENTICATED`) {
		t.Errorf("the log does not say so:\n%s", s.log)
	}
}

func TestHealthNeedsNoTokenAndReflectionDoes(t *testing.T) {
	registry := prometheus.NewRegistry()
	s := serve(t, shop(t), func(o *Options) { o.Registerer = registry })
	for _, service := range []string{"", "plimsoll.v1.WorkloadService"} {
		answer, err := healthv1.NewHealthClient(s.conn).Check(t.Context(), &healthv1.HealthCheckRequest{Service: service})
		if err != nil || answer.GetStatus() != healthv1.HealthCheckResponse_SERVING {
			t.Errorf("health of %q: %v, %v", service, answer, err)
		}
	}
	for token, want := range map[string]codes.Code{"": codes.Unauthenticated, "impostor": codes.Unauthenticated, "nameless": codes.Unauthenticated} {
		ctx := t.Context()
		if token != "" {
			ctx = as(t, token)
		}
		stream, err := reflectionv1.NewServerReflectionClient(s.conn).ServerReflectionInfo(ctx)
		if err == nil {
			_, err = stream.Recv()
		}
		if status.Code(err) != want {
			t.Errorf("reflection with token %q: %v", token, err)
		}
	}
	if n, err := testutil.GatherAndCount(registry, "plimsoll_api_requests_total"); err != nil || n != 1 {
		t.Errorf("refused streams have %d series: %v", n, err)
	}
	stream, err := reflectionv1.NewServerReflectionClient(s.conn).ServerReflectionInfo(as(t, "nobody"))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil || !strings.Contains(answer.String(), "plimsoll.v1.ClusterService") {
		t.Errorf("reflection: %v, %v", answer, err)
	}
	_ = stream.CloseSend()
}

func TestRequestsAreBounded(t *testing.T) {
	s := serve(t, shop(t), nil)
	_, err := s.clusters().GetCluster(as(t, "admin"), &plimsollv1.GetClusterRequest{Cluster: strings.Repeat("x", maxRequest)})
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a request of %d bytes: %v", maxRequest, err)
	}
}

func TestWhoWaitsForAnOperationIsAnsweredWhenTheServerStops(t *testing.T) {
	r := shop(t)
	certificate, roots := selfSigned(t)
	o := options(t)
	o.Backend, o.Authenticator, o.Authorizer, o.Unauthenticated = r.backend(), nil, nil, true
	o.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13}
	server, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	listener := listen(t)
	ctx, stop := context.WithCancel(t.Context())
	ended, answered := make(chan error, 1), make(chan error, 1)
	go func() { ended <- server.Run(ctx, listener, listen(t)) }()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS13})))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	r.calls.Store(0)
	go func() {
		_, err := plimsollv1.NewObjectServiceClient(conn).GetOperation(t.Context(), &plimsollv1.GetOperationRequest{Operation: "w.prod.shop.id-0", Wait: durationpb.New(30 * time.Second)})
		answered <- err
	}()
	for waiting := false; !waiting; time.Sleep(time.Millisecond) {
		waiting = r.calls.Load() > 0
	}
	stop()
	if err := <-answered; err != nil {
		t.Errorf("who waited got %v, want the operation as it is", err)
	}
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestPeersLetInOnlyWhoHasTheRightCertificate(t *testing.T) {
	r := shop(t)
	certificate, roots := selfSigned(t)
	stranger, _ := selfSigned(t)
	server, err := NewPeer(t.Context(), r.backend(), &tls.Config{
		Certificates: []tls.Certificate{certificate}, ClientCAs: roots, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
	}, testLog(t))
	if err != nil {
		t.Fatal(err)
	}
	listener := listen(t)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	for name, c := range map[string]struct {
		certificates []tls.Certificate
		want         codes.Code
	}{
		"none":             {nil, codes.Unavailable},
		"that of another":  {[]tls.Certificate{stranger}, codes.Unavailable},
		"that of the peer": {[]tls.Certificate{certificate}, codes.OK},
	} {
		conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
			RootCAs: roots, ServerName: "localhost", Certificates: c.certificates, MinVersion: tls.VersionTLS13,
		})))
		if err != nil {
			t.Fatal(err)
		}
		_, err = plimsollv1.NewClusterServiceClient(conn).GetCluster(t.Context(), &plimsollv1.GetClusterRequest{Cluster: "prod"})
		if status.Code(err) != c.want {
			t.Errorf("certificate %s: %v, want %s", name, err, c.want)
		}
		_ = conn.Close()
	}
}

func TestCallsAreCountedByMethodAndCode(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	s := serve(t, shop(t), func(o *Options) { o.Registerer = registry })
	for _, who := range []string{"admin", "admin", "nobody"} {
		_ = everyCall(s)[plimsollv1.ClusterService_GetCluster_FullMethodName](as(t, who))
	}
	s.call(t, "GET", "/v1/clusters/prod", "", nil)
	want := `
# HELP plimsoll_api_requests_total API calls that were answered, by method and gRPC code; REST calls included. Without a method: refused before they had arrived.
# TYPE plimsoll_api_requests_total counter
plimsoll_api_requests_total{code="OK",method="/plimsoll.v1.ClusterService/GetCluster"} 2
plimsoll_api_requests_total{code="PermissionDenied",method="/plimsoll.v1.ClusterService/GetCluster"} 1
plimsoll_api_requests_total{code="Unauthenticated",method="/plimsoll.v1.ClusterService/GetCluster"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "plimsoll_api_requests_total"); err != nil {
		t.Error(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	timed := map[string]uint64{}
	for _, family := range families {
		for _, series := range family.GetMetric() {
			if family.GetName() == "plimsoll_api_request_duration_seconds" {
				timed[series.GetLabel()[0].GetValue()] = series.GetHistogram().GetSampleCount()
			}
		}
	}
	if len(timed) != 1 || timed[plimsollv1.ClusterService_GetCluster_FullMethodName] != 4 {
		t.Errorf("how long calls take is counted of %v", timed)
	}
	if _, err := New(func() Options { o := options(t); o.Registerer = registry; return o }()); err == nil {
		t.Error("metrics were registered twice without an error")
	}
}

func TestTheLogTellsWhoOrderedWhatAndNoReadsUnlessAsked(t *testing.T) {
	s := serve(t, shop(t), nil)
	for _, call := range everyCall(s) {
		_ = call(as(t, "admin"))
	}
	orders := 0
	for line := range strings.Lines(s.log.String()) {
		if strings.Contains(line, `"API call"`) && strings.Contains(line, slog.LevelInfo.String()) {
			orders++
			if !strings.Contains(line, "Requeue") && !strings.Contains(line, "CancelOperation") || !strings.Contains(line, `"user":"admin"`) || !strings.Contains(line, `"remote":"127.0.0.1:`) {
				t.Errorf("at info: %s", line)
			}
		}
	}
	if orders != 4 {
		t.Errorf("%d lines at info, want one for each of the four orders", orders)
	}
	if audited := strings.Count(s.log.String(), `"msg":"API order"`); audited != 4 {
		t.Errorf("%d lines for audits, want one for each of the four orders", audited)
	}
}

// lastOrder is the newest line for audits.
func (s *served) lastOrder(t *testing.T) (last map[string]any) {
	t.Helper()
	for line := range strings.Lines(s.log.String()) {
		if !strings.Contains(line, `"msg":"API order"`) {
			continue
		}
		last = map[string]any{}
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			t.Fatal(err)
		}
	}
	return last
}

// Whoever reads an audit does not have to guess what was ordered, and finds the operations that came of it.
func TestALineForAuditsHasAllThatMakesAnOrderWhatItIs(t *testing.T) {
	s := serve(t, shop(t), nil)
	has := func(what string, want map[string]any) {
		t.Helper()
		got := s.lastOrder(t)
		for field, value := range want {
			if got[field] != value {
				t.Errorf("%s: %s is %v, want %v", what, field, got[field], value)
			}
		}
	}
	object := &plimsollv1.RequeueObjectRequest{Cluster: "prod", Controller: "deployment-spot", Namespace: "shop", Name: "cart"}
	ordered, err := s.objects().RequeueObject(as(t, "admin"), object)
	if err != nil {
		t.Fatal(err)
	}
	id := ordered.GetOperation().GetId()
	has("an order of one object", map[string]any{
		"member": "prod", "controller": "deployment-spot", "namespace": "shop", "name": "cart", "operation": id, "user": "admin", "code": "OK",
	})
	if _, err := s.objects().CancelOperation(as(t, "admin"), &plimsollv1.CancelOperationRequest{Operation: id}); err != nil {
		t.Fatal(err)
	}
	has("a cancellation", map[string]any{"operation": id, "user": "admin", "code": "OK"})
	many := &plimsollv1.RequeueMatchingRequest{Controller: "deployment-spot", Namespace: "shop", Filter: "object.attempts >= 0"}
	want := map[string]any{
		"controller": "deployment-spot", "namespace": "shop", "filter": "object.attempts >= 0", "matched": 1.0, "user": "admin", "code": "OK",
	}
	for _, dry := range []bool{true, false} {
		many.ValidateOnly, want["validate_only"] = dry, dry
		many.PerSecond, want["per_second"] = 1000, 1000.0
		if !dry { // the pace is that of whoever asks for none
			many.PerSecond, want["per_second"] = 0, 50.0
		}
		answer, err := s.objects().RequeueMatching(as(t, "admin"), many)
		if err != nil {
			t.Fatal(err)
		}
		if want["operations"] = nil; !dry {
			want["operations"] = answer.GetOperations()[0]
		}
		has("an order of many objects", want)
	}
}
