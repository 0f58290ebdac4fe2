package inprocess

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"time"

	"github.com/plimsoll-dev/plimsoll/hub/api"
	"github.com/plimsoll-dev/plimsoll/hub/journal"
	"github.com/plimsoll-dev/plimsoll/test/bench/internal/figures"
	"github.com/plimsoll-dev/plimsoll/test/bench/internal/partner"
)

const (
	apiTime     = 5 * time.Second
	apiCallers  = 32
	apiRate     = 5000 // calls a second
	apiLists    = 300
	apiWatchers = 1000
	apiChanges  = 100 // a second
	apiPairs    = 5
	apiTurn     = 2 * time.Second

	apiPacedTurns = 3
)

// API measures the API behind its own ports, on loopback and without TLS, in front of 200,000 keys and 10,000 workloads in 100
// members that are in memory, in a process that is set as a hub's is. Those who call are a process of their own: what they cost is not the hub's, and their collections of
// garbage are not its latency.
func API(ctx context.Context, b Bench) error {
	defer likeAHub()()
	backend, events := newAPIBackend(), journal.New(journal.Limits{})
	site, err := newAPISite(ctx, backend, api.Backend{Members: backend, Workloads: backend, Objects: backend, Ownership: backend, Events: events})
	if err != nil {
		return err
	}
	for _, part := range []func(context.Context, *figures.Report) error{site.gets, site.lists, func(ctx context.Context, r *figures.Report) error { return site.watches(ctx, r, events) }} {
		if err = part(ctx, b.Report); err != nil {
			break
		}
	}
	return errors.Join(err, site.stop(), requeues(ctx, b, backend))
}

// apiSite is a running API.
type apiSite struct {
	grpc, rest string // addresses
	calls      *callTimes
	stop       func() error
}

// newAPISite serves a backend. Everybody may do everything, as often as they like.
func newAPISite(ctx context.Context, people *apiBackend, backend api.Backend) (*apiSite, error) {
	calls := &callTimes{}
	server, err := api.New(api.Options{
		Backend: backend, Peers: people, Authenticator: people, Authorizer: people, CallsPerSecond: -1, Log: slog.New(calls),
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
	return &apiSite{grpc: listeners[0].Addr().String(), rest: listeners[1].Addr().String(), calls: calls, stop: func() error {
		cancel()
		return <-ended
	}}, nil
}

// gets measures GetObjectState: at a rate, and as fast as it goes over gRPC and REST. At the rate, a bare gRPC server takes turns with the API:
// where that is as slow, it is the transport and the machine that are waited for.
func (s *apiSite) gets(ctx context.Context, r *figures.Report) error {
	bare, err := newBareSite(ctx)
	if err != nil {
		return err
	}
	var ours, theirs apiReport
	var inside []time.Duration
	for range apiPacedTurns {
		ended := s.calls.during()
		err = errors.Join(s.paced(ctx, &ours), bare.paced(ctx, &theirs))
		inside = append(inside, ended()...)
		if err != nil {
			return errors.Join(err, bare.stop())
		}
	}
	if err := bare.stop(); err != nil {
		return err
	}
	r.Record("api-get-p99-ms", figures.Milliseconds(figures.Quantile(ascending(ours.Took), 0.99)))
	r.Record("api-get-bare-p99-ms", figures.Milliseconds(figures.Quantile(ascending(theirs.Took), 0.99)))
	r.Note("api: at %d calls a second p50, p99 and p99.9 are %s ms from when a call was due to its answer; they were sent late by %s ms, and the hub's interceptors and service took %s ms; a bare gRPC server, in turns with it, answers in %s ms",
		apiRate, spread(ours.Took), spread(ascending(ours.Late)), spread(ascending(inside)), spread(theirs.Took))
	return s.throughput(ctx, r)
}

// paced adds a turn of calls at the rate.
func (s *apiSite) paced(ctx context.Context, to *apiReport) error {
	got, err := s.call(ctx, apiOrder{What: "get-paced", Rate: apiRate, For: apiTime})
	if err != nil {
		return err
	}
	to.Took, to.Late = append(to.Took, got.Took...), append(to.Late, got.Late...)
	return nil
}

func ascending(times []time.Duration) []time.Duration {
	slices.Sort(times)
	return times
}

// spread is a distribution in few words.
func spread(sorted []time.Duration) string {
	return fmt.Sprintf("%.2f, %.2f and %.2f", figures.Milliseconds(figures.Quantile(sorted, 0.5)), figures.Milliseconds(figures.Quantile(sorted, 0.99)), figures.Milliseconds(figures.Quantile(sorted, 0.999)))
}

// throughput measures gRPC and REST in turns, because what else the machine does changes from second to second: the ratio is the median of
// the pairs.
func (s *apiSite) throughput(ctx context.Context, r *figures.Report) error {
	var answered int
	var ratios []float64
	for range apiPairs {
		var calls [2]int
		for i, what := range []string{"get", "get-rest"} {
			got, err := s.call(ctx, apiOrder{What: what, For: apiTurn})
			if err != nil {
				return err
			}
			calls[i] = len(got.Took)
		}
		answered += calls[0]
		ratios = append(ratios, float64(calls[1])/float64(calls[0]))
	}
	slices.Sort(ratios)
	r.Record("api-get-rps", float64(answered)/(apiPairs*apiTurn).Seconds())
	r.Record("api-rest-ratio", ratios[apiPairs/2])
	r.Note("api: the ratios of REST to gRPC in %d pairs are %.2f to %.2f", apiPairs, ratios[0], ratios[apiPairs-1])
	return nil
}

// lists measures the first page of a filtered list.
func (s *apiSite) lists(ctx context.Context, r *figures.Report) error {
	got, err := s.call(ctx, apiOrder{What: "list"})
	if err != nil {
		return err
	}
	r.Record("api-list-p99-ms", figures.Milliseconds(figures.Quantile(got.Took, 0.99)))
	return nil
}

// watches measures how long events take to all watchers, and what a watcher weighs in the hub: heap and stacks of this process when
// all have come to rest, less what there was before they came. Their eight connections are in it.
func (s *apiSite) watches(ctx context.Context, r *figures.Report, events *journal.Journal) error {
	changes := int(apiTime.Seconds()) * apiChanges
	before := inUse()
	callers, err := s.start(ctx, apiOrder{What: "watch", Events: changes})
	if err != nil {
		return err
	}
	defer callers.End()
	if _, err := nextCalls(callers); err != nil { // all watch
		return err
	}
	r.Record("api-watcher-kb", float64(inUse()-before)/1000/apiWatchers)
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
	r.Record("api-watch-p99-ms", figures.Milliseconds(figures.Quantile(got.Took, 0.99)))
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
func (s *apiSite) start(ctx context.Context, order apiOrder) (*partner.Partner, error) {
	order.GRPC, order.REST = s.grpc, s.rest
	return partner.Start(ctx, CallCommand, order)
}

func (s *apiSite) call(ctx context.Context, order apiOrder) (*apiReport, error) {
	callers, err := s.start(ctx, order)
	if err != nil {
		return nil, err
	}
	defer callers.End()
	return nextCalls(callers)
}

// nextCalls waits for a report of callers. The shortest call is the first.
func nextCalls(callers *partner.Partner) (*apiReport, error) {
	var report apiReport
	if err := callers.Next(&report); err != nil {
		return nil, err
	}
	slices.Sort(report.Took)
	return &report, nil
}
