package inprocess

import (
	"context"
	"encoding/gob"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// CallCommand is the argument with which this program calls an API and does nothing else.
const CallCommand = "call-api"

// An apiOrder is what another process is to call, and an apiReport what came of it.
type (
	apiOrder struct {
		What       string // get-paced, get, get-rest, list, watch or requeue
		GRPC, REST string // addresses
		Rate       int    // calls a second in all; 0: as many as they can
		For        time.Duration
		Events     int // how many come to each watcher
	}
	apiReport struct {
		Took   []time.Duration
		Late   []time.Duration // by how much calls were sent too late
		Orders []apiRequeue
	}
	// apiRequeue is an order, when it was about to be sent, and when the hub says that it was accepted.
	apiRequeue struct {
		Name           string
		Sent, Accepted time.Time
	}
)

// apiClient is who calls.
type apiClient struct {
	conns []*grpc.ClientConn // one carries 256 streams
	rest  string
	http  *http.Client
	order apiOrder
}

// Call does what an order says.
func Call(in io.Reader, out io.Writer) error {
	c := &apiClient{http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: apiCallers}}}
	if err := gob.NewDecoder(in).Decode(&c.order); err != nil {
		return err
	}
	c.rest = "http://" + c.order.REST
	for range 8 {
		conn, err := grpc.NewClient(c.order.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return err
		}
		c.conns = append(c.conns, conn)
	}
	ctx, report := context.Background(), &apiReport{}
	var err error
	switch reports := gob.NewEncoder(out); c.order.What {
	case "get-paced":
		report.Took, report.Late, err = c.paced(ctx)
	case "get":
		report.Took, err = c.callAll(func(caller, n int) error { return c.get(ctx, caller, n) })
	case "get-rest":
		report.Took, err = c.callAll(func(caller, n int) error { return c.getREST(ctx, caller, n) })
	case "list":
		report.Took, err = c.lists(ctx)
	case "requeue":
		report.Orders, err = c.requeues(ctx)
	case "watch":
		report.Took, err = c.watches(ctx, func() error { return reports.Encode(apiReport{}) })
		if err == nil {
			return reports.Encode(report)
		}
	default:
		err = fmt.Errorf("order %q is not known", c.order.What)
	}
	if err != nil {
		return err
	}
	return gob.NewEncoder(out).Encode(report)
}

// as is a context that calls as a user.
func as(ctx context.Context, user int) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", fmt.Sprintf("Bearer user-%d", user))
}

func (c *apiClient) get(ctx context.Context, caller, n int) error {
	key := apiKey(apiMember(n), n%apiKeys)
	_, err := plimsollv1.NewObjectServiceClient(c.conns[caller%len(c.conns)]).GetObjectState(as(ctx, caller), &plimsollv1.GetObjectStateRequest{
		Cluster: key.Member, Controller: key.Controller, Namespace: key.Namespace, Name: key.Name,
	})
	return err
}

func (c *apiClient) getREST(ctx context.Context, caller, n int) error {
	key := apiKey(apiMember(n), n%apiKeys)
	path := fmt.Sprintf("%s/v1/clusters/%s/controllers/%s/objects/%s/%s", c.rest, key.Member, key.Controller, key.Namespace, key.Name)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", fmt.Sprintf("Bearer user-%d", caller))
	answer, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, answer.Status)
	}
	return nil
}

// callAll has apiCallers call as long as the order says, at the order's rate. It returns how long calls took, from when they were due.
func (c *apiClient) callAll(call func(caller, n int) error) ([]time.Duration, error) {
	var group errgroup.Group
	took := make([][]time.Duration, apiCallers)
	begun := time.Now()
	for caller := range apiCallers {
		group.Go(func() error {
			for n := 0; ; n++ {
				due := time.Now()
				if c.order.Rate > 0 {
					due = begun.Add(time.Duration(n*apiCallers+caller) * time.Second / time.Duration(c.order.Rate))
					time.Sleep(time.Until(due))
				}
				if due.Sub(begun) > c.order.For {
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
	return slices.Concat(took...), err
}

// lists asks for the first page of a filtered list, again and again.
func (c *apiClient) lists(ctx context.Context) (took []time.Duration, err error) {
	for range apiLists {
		begun := time.Now()
		answer, err := plimsollv1.NewWorkloadServiceClient(c.conns[0]).ListWorkloads(as(ctx, 0), &plimsollv1.ListWorkloadsRequest{
			PageSize: 500, Filter: "workload.placement.spot_actual < workload.placement.spot_wanted",
		})
		if err != nil {
			return nil, err
		}
		if got := len(answer.GetWorkloads()); got != 500 {
			return nil, fmt.Errorf("a page of %d workloads", got)
		}
		took = append(took, time.Since(begun))
	}
	return took, nil
}

// watches opens all watches, says so, and takes the events that come to each of them. It returns how old they were.
func (c *apiClient) watches(ctx context.Context, ready func() error) ([]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	var mu sync.Mutex
	var took []time.Duration
	var synced atomic.Int64
	all := make(chan struct{})
	group, ctx := errgroup.WithContext(ctx)
	for n := range apiWatchers {
		stream, err := plimsollv1.NewEventServiceClient(c.conns[n%len(c.conns)]).WatchEvents(as(ctx, n/16), &plimsollv1.WatchEventsRequest{})
		if err != nil {
			return nil, err
		}
		group.Go(func() error {
			mine := make([]time.Duration, 0, c.order.Events)
			for len(mine) < c.order.Events {
				message, err := stream.Recv()
				switch {
				case err != nil:
					return fmt.Errorf("a watcher has %d of %d events: %w", len(mine), c.order.Events, err)
				case message.GetType() == plimsollv1.WatchEventType_WATCH_EVENT_TYPE_SYNCED:
					if synced.Add(1) == apiWatchers {
						close(all)
					}
				case message.GetEvent() != nil:
					mine = append(mine, time.Since(message.GetEvent().GetAt().AsTime()))
				}
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, mine...)
			return nil
		})
	}
	select {
	case <-all:
	case <-ctx.Done():
		return nil, fmt.Errorf("%d of %d watchers are there: %w", synced.Load(), apiWatchers, context.Cause(ctx))
	}
	if err := ready(); err != nil {
		return nil, err
	}
	err := group.Wait()
	return took, err
}

// requeues orders at the order's rate, each time another object.
func (c *apiClient) requeues(ctx context.Context) ([]apiRequeue, error) {
	var mu sync.Mutex
	var all []apiRequeue
	_, err := c.callAll(func(caller, n int) error {
		order := apiRequeue{Name: requeueName(n), Sent: time.Now()}
		answer, err := plimsollv1.NewObjectServiceClient(c.conns[caller%len(c.conns)]).RequeueObject(as(ctx, caller), &plimsollv1.RequeueObjectRequest{
			Cluster: apiMember(0), Controller: requeueController, Namespace: requeueNamespace, Name: order.Name,
		})
		if err != nil {
			return err
		}
		order.Accepted = answer.GetOperation().GetAcceptedAt().AsTime()
		mu.Lock()
		defer mu.Unlock()
		all = append(all, order)
		return nil
	})
	return all, err
}
