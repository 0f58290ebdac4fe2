package api

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/rest"
	"github.com/plimsoll-dev/plimsoll/internal/shares"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/inprocess"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/limits"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/wire"
)

const (
	maxRequest = 64 << 10 // bytes; the largest request is a page token with its filters
	maxHeaders = 64 << 10 // bytes; a token may be 16 KiB
	maxAnswer  = 16 << 20 // bytes; a workload with 50,000 pods fits in
	// maxConcurrent is how many calls of a connection are served at a time.
	maxConcurrent = 256
	// maxArriving is how many calls may have begun of which it is not known whose they are, of all callers; no address has more than half.
	// gRPC asks no interceptor before a call's message is complete, so a stranger could leave maxConcurrent of them unfinished on each
	// connection. Each has up to maxHeaders and maxRequest bytes.
	maxArriving = 1024
	// arriveWithin is how long that may take.
	arriveWithin = 10 * time.Second
	// graceful is how long calls that are under way may take to end when the server stops.
	graceful = 5 * time.Second
)

// restCalls are how many calls of REST are served at a time, watches included. A call that has arrived may wait for its token to be
// reviewed, and its answer for a caller who does not read it.
var restCalls = shares.Limits{OfConnection: 64, InFlight: 2048}

// Server is the public side of the API.
type Server struct {
	options Options
	grpc    *grpc.Server
	rest    *http.Server
	health  *health.Server
	stop    context.CancelFunc
}

// New creates the public side. It serves when [Server.Run] is called.
func New(options Options) (*Server, error) {
	o, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	metrics, err := newMetrics(o.Registerer)
	if err != nil {
		return nil, err
	}
	rights := access{authorizer: o.Authorizer, hidden: auth.NewUnlisted(), log: o.Log}
	s := &Server{options: o, health: health.NewServer()}
	stopping, stop := context.WithCancel(context.Background())
	s.stop = stop
	services := newServices(publicCore(stopping, o, rights))
	paces := limits.NewPace(o.CallsPerSecond)
	chain := publicChain(o, rights, metrics, paces)
	streams := newStreams(o, rights, metrics, paces)
	arrivals := limits.NewArrivals(maxArriving, arriveWithin)
	s.grpc = grpc.NewServer(append(connectionLimits(), grpc.InTapHandle(arrivals.Tap(metrics.refusedUnarrived)),
		grpc.UnaryInterceptor(limits.ArrivedCall(exceptHealth(inprocess.Chain(chain)))),
		grpc.StreamInterceptor(limits.ArrivedStream(streams.intercept)), transport(o))...)
	services.register(s.grpc)
	healthv1.RegisterHealthServer(s.grpc, s.health)
	reflection.Register(s.grpc)
	for name := range s.grpc.GetServiceInfo() {
		s.health.SetServingStatus(name, healthv1.HealthCheckResponse_SERVING)
	}
	calls := inprocess.New(chain, streams.intercept)
	services.register(calls)
	handler, err := rest.New(calls, rest.Options{Arrivals: arrivals, Page: o.Page, Loopback: o.Unauthenticated, SameOrigin: o.ClientCAs != nil, MaxRequest: maxRequest, Patience: o.ReaderPatience})
	if err != nil {
		stop()
		return nil, err
	}
	s.rest = rest.Server(handler, rest.ServerOptions{TLS: o.servesREST(), Log: o.Log, MaxCall: maxCall, MaxHeaders: maxHeaders})
	shares.Bound(s.rest, restCalls, func(netip.Addr) { metrics.refusedUnarrived(status.Error(codes.ResourceExhausted, "too many calls")) })
	return s, nil
}

// publicCore is what the services for callers share. All that a caller can have a replica compute is bounded by something in it.
func publicCore(stopping context.Context, o Options, rights access) *core {
	return &core{
		members: o.Members, workloads: o.Workloads, objects: o.Objects, ownership: o.Ownership, events: o.Events, fleet: o.Fleet, batches: o.Batches,
		peers: o.Peers, rights: rights, filters: limits.NewBudgets(limits.FilterRate, limits.FilterBurst),
		watches: limits.NewBudgets(limits.FilterRate, limits.FilterBurst), ordered: shares.NewPlaces(maxOrdered), questions: limits.NewQuestions(),
		timeout: o.OwnerTimeout, stopping: stopping, recheck: o.RecheckEvery, log: o.Log,
	}
}

// Run serves gRPC and REST until ctx ends, then ends both and closes the listeners. Calls that are under way get 5 s; who
// waits for an operation is answered at once. It returns nil when ctx ended it, and may be called once.
func (s *Server) Run(ctx context.Context, grpcListener, restListener net.Listener) error {
	defer s.stop()
	if err := s.options.mayServe(grpcListener.Addr(), restListener.Addr()); err != nil {
		return errors.Join(err, grpcListener.Close(), restListener.Close())
	}
	if s.options.Unauthenticated {
		s.options.Log.Warn("THE API IS UNAUTHENTICATED: everybody who reaches the loopback addresses of this machine has all rights",
			"grpc", grpcListener.Addr().String(), "rest", restListener.Addr().String())
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return wrap("serve gRPC", s.grpc.Serve(grpcListener), grpc.ErrServerStopped) })
	group.Go(func() error { return wrap("serve REST", s.serveREST(restListener), http.ErrServerClosed) })
	group.Go(func() error {
		<-groupCtx.Done()
		s.shutdown()
		return nil
	})
	return group.Wait()
}

func (s *Server) serveREST(listener net.Listener) error {
	if s.rest.TLSConfig == nil {
		return s.rest.Serve(listener)
	}
	return s.rest.ServeTLS(listener, "", "")
}

// shutdown ends both servers, the calls that are under way first.
func (s *Server) shutdown() {
	s.health.Shutdown()
	s.stop()
	ctx, cancel := context.WithTimeout(context.Background(), graceful)
	defer cancel()
	defer context.AfterFunc(ctx, s.grpc.Stop)()
	var both sync.WaitGroup
	both.Go(s.grpc.GracefulStop)
	both.Go(func() {
		if err := s.rest.Shutdown(ctx); err != nil {
			_ = s.rest.Close()
		}
	})
	both.Wait()
}

// mayServe refuses to let strangers in who were not asked for a token, and tokens to travel in plain text.
func (o Options) mayServe(addresses ...net.Addr) error {
	for _, address := range addresses {
		if tcp, ok := address.(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
			continue
		}
		if o.Unauthenticated {
			return fmt.Errorf("API: listen on %s: an unauthenticated API may only listen on loopback addresses", address)
		}
		if o.TLS == nil {
			return fmt.Errorf("API: listen on %s: without TLS the API may only listen on loopback addresses", address)
		}
	}
	return nil
}

// wrap says what failed, unless it only ended as it should.
func wrap(doing string, err, expected error) error {
	if err == nil || errors.Is(err, expected) {
		return nil
	}
	return fmt.Errorf("API: %s: %w", doing, err)
}

// exceptHealth lets load balancers ask for the server's health, which says nothing else, without a token.
func exceptHealth(chain grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		switch info.FullMethod {
		case healthv1.Health_Check_FullMethodName, healthv1.Health_List_FullMethodName:
			return next(ctx, request)
		}
		return chain(ctx, request, info, next)
	}
}

// connectionLimits protect a gRPC server from what callers send.
func connectionLimits() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(wire.Codec()),
		grpc.MaxRecvMsgSize(maxRequest),
		grpc.MaxSendMsgSize(maxAnswer),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.MaxConcurrentStreams(maxConcurrent),
		grpc.ConnectionTimeout(10 * time.Second),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: 15 * time.Minute, Time: time.Minute, Timeout: 20 * time.Second}),
	}
}

// servesREST is what the REST listener serves with; nil: plain text.
func (o Options) servesREST() *tls.Config {
	if o.ClientCAs == nil {
		return o.TLS
	}
	return auth.AskingFor(o.TLS, o.ClientCAs, "h2", "http/1.1")
}

func transport(o Options) grpc.ServerOption {
	if o.TLS == nil {
		return grpc.EmptyServerOption{}
	}
	if o.ClientCAs != nil {
		return grpc.Creds(credentials.NewTLS(auth.AskingFor(o.TLS, o.ClientCAs, "h2")))
	}
	return grpc.Creds(credentials.NewTLS(o.TLS.Clone()))
}

// services are the implementations, for whichever server or connection they are registered with.
type services struct {
	clusters  *clusterService
	workloads *workloadService
	objects   *objectService
	events    *eventService
	fleet     *fleetService
}

func newServices(c *core) *services {
	s := &services{clusters: &clusterService{core: c}, workloads: &workloadService{core: c}, objects: &objectService{core: c, batches: cmp.Or(c.batches, NewBatches())},
		events: &eventService{core: c}, fleet: newFleetService(c)}
	s.clusters.feed = newClusterFeed(s.clusters)
	s.workloads.feed = newFeed(c, nameOfWorkload, func(ctx context.Context, member string, failed *failures) ([]*plimsollv1.Workload, string, bool) {
		return s.workloads.workloadList(&plimsollv1.ListWorkloadsRequest{}, member, "").all(ctx, member, failed)
	})
	s.objects.feed = newFeed(c, nameOfObject, func(ctx context.Context, member string, failed *failures) ([]*plimsollv1.ObjectState, string, bool) {
		return s.objects.objectList(&plimsollv1.ListObjectsRequest{}, member, "", "").all(ctx, member, failed)
	})
	s.objects.feed.version = c.versionHere(c.objects)
	s.events.feed = newFeed(c, nameOfEvent, func(ctx context.Context, member string, failed *failures) ([]*plimsollv1.Event, string, bool) {
		return s.events.eventList(&plimsollv1.ListEventsRequest{}, member, "").all(ctx, member, failed)
	})
	s.events.feed.version = c.versionHere(c.events)
	return s
}

func (s *services) register(with grpc.ServiceRegistrar) {
	plimsollv1.RegisterClusterServiceServer(with, s.clusters)
	plimsollv1.RegisterWorkloadServiceServer(with, s.workloads)
	plimsollv1.RegisterObjectServiceServer(with, s.objects)
	plimsollv1.RegisterEventServiceServer(with, s.events)
	plimsollv1.RegisterFleetServiceServer(with, s.fleet)
}
