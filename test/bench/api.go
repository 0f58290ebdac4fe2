package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"time"

	"github.com/plimsoll-dev/plimsoll/hub/api"
	"github.com/plimsoll-dev/plimsoll/hub/journal"
)

const (
	apiTime     = 5 * time.Second
	apiCallers  = 32
	apiRate     = 5000 // calls a second
	apiLists    = 300
	apiWatchers = 1000
	apiChanges  = 100 // a second
)

// apiRun measures the API behind its own ports, on loopback and without TLS, in front of 200,000 keys and 10,000 workloads in 100
// members that are in memory. Those who call are a process of their own: what they cost is not the hub's, and their collections of
// garbage are not its latency.
func (b *bench) apiRun(ctx context.Context) error {
	backend, events := newAPIBackend(), journal.New(journal.Limits{})
	site, err := newAPISite(ctx, backend, api.Backend{Members: backend, Workloads: backend, Objects: backend, Ownership: backend, Events: events})
	if err != nil {
		return err
	}
	for _, part := range []func(context.Context, *report) error{site.gets, site.lists, func(ctx context.Context, r *report) error { return site.watches(ctx, r, events) }} {
		if err = part(ctx, b.report); err != nil {
			break
		}
	}
	return errors.Join(err, site.stop(), b.requeues(ctx, backend))
}

// apiSite is a running API.
type apiSite struct {
	grpc, rest string // addresses
	stop       func() error
}

// newAPISite serves a backend. Everybody may do everything, as often as they like.
func newAPISite(ctx context.Context, people *apiBackend, backend api.Backend) (*apiSite, error) {
	server, err := api.New(api.Options{
		Backend: backend, Peers: people, Authenticator: people, Authorizer: people, CallsPerSecond: -1, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	var listeners [2]net.Listener
	for i := range listeners {
		if listeners[i], err = (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
			return nil, err
		}
	}
	running, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- server.Run(running, listeners[0], listeners[1]) }()
	return &apiSite{grpc: listeners[0].Addr().String(), rest: listeners[1].Addr().String(), stop: func() error {
		cancel()
		return <-ended
	}}, nil
}

// gets measures GetObjectState: at a rate, and as fast as it goes over gRPC and REST.
func (s *apiSite) gets(ctx context.Context, r *report) error {
	var took [3][]time.Duration
	for i, order := range []apiOrder{{What: "get", Rate: apiRate}, {What: "get"}, {What: "get-rest"}} {
		got, err := s.call(ctx, order)
		if err != nil {
			return err
		}
		took[i] = got.Took
	}
	r.record("api-get-p99-ms", milliseconds(quantile(took[0], 0.99)))
	r.record("api-get-rps", float64(len(took[1]))/apiTime.Seconds())
	r.record("api-rest-ratio", float64(len(took[2]))/float64(len(took[1])))
	return nil
}

// lists measures the first page of a filtered list.
func (s *apiSite) lists(ctx context.Context, r *report) error {
	got, err := s.call(ctx, apiOrder{What: "list"})
	if err != nil {
		return err
	}
	r.record("api-list-p99-ms", milliseconds(quantile(got.Took, 0.99)))
	return nil
}

// watches measures how long events take to all watchers, and what a watcher weighs in the hub: heap and stacks of this process when
// all have come to rest, less what there was before they came. Their eight connections are in it.
func (s *apiSite) watches(ctx context.Context, r *report, events *journal.Journal) error {
	changes := int(apiTime.Seconds()) * apiChanges
	before := inUse()
	callers, err := s.start(ctx, apiOrder{What: "watch", Events: changes})
	if err != nil {
		return err
	}
	defer callers.end()
	if _, err := nextCalls(callers); err != nil { // all watch
		return err
	}
	r.record("api-watcher-kb", float64(inUse()-before)/1000/apiWatchers)
	each := time.NewTicker(time.Second / apiChanges)
	defer each.Stop()
	for n := range changes {
		<-each.C
		events.Add(journal.Event{Type: journal.Move, Member: apiMember(n), Namespace: "shop", Name: "cart", Message: "moved"})
	}
	got, err := nextCalls(callers)
	if err != nil {
		return err
	}
	r.record("api-watch-p99-ms", milliseconds(quantile(got.Took, 0.99)))
	return nil
}

// inUse is the memory of live objects and stacks.
func inUse() uint64 {
	live := heap()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return live + stats.StackInuse
}

// start gives an order to a new process of callers; call waits for its one report as well.
func (s *apiSite) start(ctx context.Context, order apiOrder) (*partner, error) {
	order.GRPC, order.REST = s.grpc, s.rest
	return startPartner(ctx, apiCommand, order)
}

func (s *apiSite) call(ctx context.Context, order apiOrder) (*apiReport, error) {
	callers, err := s.start(ctx, order)
	if err != nil {
		return nil, err
	}
	defer callers.end()
	return nextCalls(callers)
}

// nextCalls waits for a report of callers. The shortest call is the first.
func nextCalls(callers *partner) (*apiReport, error) {
	var report apiReport
	if err := callers.next(&report); err != nil {
		return nil, err
	}
	slices.Sort(report.Took)
	return &report, nil
}
