package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/plimsoll-dev/plimsoll/hub/api"
	"github.com/plimsoll-dev/plimsoll/hub/journal"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
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
// members that are in memory. Those who call are in the same process, so what they cost is measured as well.
func (b *bench) apiRun(ctx context.Context) error {
	site, err := newAPISite(ctx)
	if err != nil {
		return err
	}
	defer site.stop()
	for _, part := range []func(context.Context, *report) error{site.gets, site.lists, site.watches} {
		if err := part(ctx, b.report); err != nil {
			return err
		}
	}
	return nil
}

// apiSite is a running API, and connections to it.
type apiSite struct {
	journal *journal.Journal
	conns   []*grpc.ClientConn // one carries 256 streams
	rest    string
	http    *http.Client
	stop    func()
}

func newAPISite(ctx context.Context) (*apiSite, error) {
	backend, events := newAPIBackend(), journal.New(journal.Limits{})
	server, err := api.New(api.Options{
		Backend: api.Backend{Members: backend, Workloads: backend, Objects: backend, Ownership: backend, Events: events}, Peers: backend,
		Authenticator: backend, Authorizer: backend, CallsPerSecond: -1, Log: slog.New(slog.DiscardHandler),
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
	s := &apiSite{journal: events, rest: "http://" + listeners[1].Addr().String(),
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: apiCallers}}}
	s.stop = func() {
		for _, conn := range s.conns {
			_ = conn.Close()
		}
		s.http.CloseIdleConnections()
		cancel()
		<-ended //nolint:errcheck // it was asked to end
	}
	for range 8 {
		conn, err := grpc.NewClient(listeners[0].Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			s.stop()
			return nil, err
		}
		s.conns = append(s.conns, conn)
	}
	return s, nil
}

// as is a context that calls as a user.
func as(ctx context.Context, user int) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", fmt.Sprintf("Bearer user-%d", user))
}

// gets measures GetObjectState: at a rate, and as fast as it goes over gRPC and REST.
func (s *apiSite) gets(ctx context.Context, r *report) error {
	get := func(caller, n int) error {
		key := apiKey(fmt.Sprintf("member-%03d", n%apiMembers), n%apiKeys)
		_, err := plimsollv1.NewObjectServiceClient(s.conns[caller%len(s.conns)]).GetObjectState(as(ctx, caller), &plimsollv1.GetObjectStateRequest{
			Cluster: key.Member, Controller: key.Controller, Namespace: key.Namespace, Name: key.Name,
		})
		return err
	}
	getREST := func(caller, n int) error {
		key := apiKey(fmt.Sprintf("member-%03d", n%apiMembers), n%apiKeys)
		path := fmt.Sprintf("%s/v1/clusters/%s/controllers/%s/objects/%s/%s", s.rest, key.Member, key.Controller, key.Namespace, key.Name)
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", fmt.Sprintf("Bearer user-%d", caller))
		answer, err := s.http.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = answer.Body.Close() }()
		if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s, %w", path, answer.Status, err)
		}
		return nil
	}
	paced, err := callAll(apiRate, get)
	if err != nil {
		return err
	}
	fast, err := callAll(0, get)
	if err != nil {
		return err
	}
	rest, err := callAll(0, getREST)
	if err != nil {
		return err
	}
	r.record("api-get-p99-ms", milliseconds(quantile(paced, 0.99)))
	r.record("api-get-rps", float64(len(fast))/apiTime.Seconds())
	r.record("api-rest-ratio", float64(len(rest))/float64(len(fast)))
	return nil
}

// callAll has apiCallers call for apiTime, all together so often a second; 0: as often as they can. It returns how long calls took,
// from when they were due.
func callAll(perSecond int, call func(caller, n int) error) ([]time.Duration, error) {
	var group errgroup.Group
	took := make([][]time.Duration, apiCallers)
	begun := time.Now()
	for caller := range apiCallers {
		group.Go(func() error {
			for n := 0; ; n++ {
				due := time.Now()
				if perSecond > 0 {
					due = begun.Add(time.Duration(n*apiCallers+caller) * time.Second / time.Duration(perSecond))
					time.Sleep(time.Until(due))
				}
				if due.Sub(begun) > apiTime {
					return nil
				}
				if err := call(caller, n*apiCallers+caller); err != nil {
					return err
				}
				took[caller] = append(took[caller], time.Since(due))
			}
		})
	}
	err := group.Wait()
	all := slices.Concat(took...)
	slices.Sort(all)
	return all, err
}

// lists measures the first page of a filtered list.
func (s *apiSite) lists(ctx context.Context, r *report) error {
	var took []time.Duration
	for range apiLists {
		begun := time.Now()
		answer, err := plimsollv1.NewWorkloadServiceClient(s.conns[0]).ListWorkloads(as(ctx, 0), &plimsollv1.ListWorkloadsRequest{
			PageSize: 500, Filter: "workload.placement.spot_actual < workload.placement.spot_wanted",
		})
		if err != nil {
			return err
		}
		if got := len(answer.GetWorkloads()); got != 500 {
			return fmt.Errorf("a page of %d workloads", got)
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	r.record("api-list-p99-ms", milliseconds(quantile(took, 0.99)))
	return nil
}

// watches measures how long events take to all watchers, and what a watcher weighs: heap and stacks, those of its client included.
func (s *apiSite) watches(ctx context.Context, r *report) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	before := inUse()
	var mu sync.Mutex
	var took []time.Duration
	var synced, arrived atomic.Int64
	var group errgroup.Group
	for n := range apiWatchers {
		stream, err := plimsollv1.NewEventServiceClient(s.conns[n%len(s.conns)]).WatchEvents(as(ctx, n/16), &plimsollv1.WatchEventsRequest{})
		if err != nil {
			return err
		}
		group.Go(func() error {
			var mine []time.Duration
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				took = append(took, mine...)
			}()
			for {
				message, err := stream.Recv()
				switch {
				case ctx.Err() != nil:
					return nil
				case err != nil:
					return err
				case message.GetType() == plimsollv1.WatchEventType_WATCH_EVENT_TYPE_SYNCED:
					synced.Add(1)
				case message.GetEvent() != nil:
					arrived.Add(1)
					mine = append(mine, time.Since(message.GetEvent().GetAt().AsTime()))
				}
			}
		})
	}
	for deadline := time.Now().Add(time.Minute); synced.Load() < apiWatchers; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d watchers are there after a minute", synced.Load(), apiWatchers)
		}
	}
	weight := float64(inUse()-before) / 1000 / apiWatchers
	each := time.NewTicker(time.Second / apiChanges)
	defer each.Stop()
	changes := int(apiTime.Seconds()) * apiChanges
	for n := range changes {
		<-each.C
		s.journal.Add(journal.Event{Type: journal.Move, Member: fmt.Sprintf("member-%03d", n%apiMembers), Namespace: "shop", Name: "cart", Message: "moved"})
	}
	for deadline := time.Now().Add(time.Minute); arrived.Load() < int64(changes*apiWatchers) && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	err := group.Wait()
	if len(took) < changes*apiWatchers {
		err = errors.Join(err, fmt.Errorf("%d of %d events arrived within a minute", len(took), changes*apiWatchers))
	}
	slices.Sort(took)
	r.record("api-watch-p99-ms", milliseconds(quantile(took, 0.99)))
	r.record("api-watcher-kb", weight)
	return err
}

// inUse is the memory of live objects and stacks.
func inUse() uint64 {
	live := heap()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return live + stats.StackInuse
}
