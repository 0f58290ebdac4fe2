package api

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/journal"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
)

// manyWorkloads are 100 in each of 100 members, half of which are short of spot replicas.
type manyWorkloads struct {
	Workloads
	of map[string][]report.Workload
}

func (m manyWorkloads) List(member, _ string) []report.Workload {
	return append([]report.Workload(nil), m.of[member]...)
}

// benchmarkFleet is a replica that owns 100 members.
func benchmarkFleet(b *testing.B) *replica {
	b.Helper()
	r := newFleet().replica(b, "10.0.0.1:9444")
	for m := range 100 {
		name := fmt.Sprintf("member-%03d", m)
		r.member(name)
		r.fleet.give(name, r.address)
	}
	return r
}

// dialled serves a backend on loopback without TLS and connects to it.
func dialled(b *testing.B, backend Backend, connections int) (conns []*grpc.ClientConn) {
	b.Helper()
	who := &people{rights: map[string][]auth.Access{}}
	server, err := New(Options{Backend: backend, Peers: newFleet(), Authenticator: who, Authorizer: everything{}, CallsPerSecond: -1, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	grpcListener, restListener := listen(b), listen(b)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx, grpcListener, restListener) }()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	for range connections {
		conn, err := grpc.NewClient(grpcListener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = conn.Close() })
		conns = append(conns, conn)
	}
	return conns
}

// BenchmarkFirstPageOfAFilteredList is one page of 500 of 10,000 workloads.
func BenchmarkFirstPageOfAFilteredList(b *testing.B) {
	r := benchmarkFleet(b)
	all := manyWorkloads{r.lists(), map[string][]report.Workload{}}
	for member := range r.statuses {
		for w := range 100 {
			all.of[member] = append(all.of[member], report.Workload{Member: member, State: plan.StateMoving, Replicas: 10, SpotWanted: 7, OnDemandWanted: 3,
				SpotActual: 6 + w%2, OnDemandActual: 4 - w%2, WorkloadKey: workloadKey("shop", spot.KindDeployment, fmt.Sprintf("w%05d", w)), Planned: time.Now()})
		}
	}
	backend := r.backend()
	backend.Workloads = all
	client := plimsollv1.NewWorkloadServiceClient(dialled(b, backend, 1)[0])
	ctx := metadata.AppendToOutgoingContext(b.Context(), "authorization", "Bearer admin")
	for b.Loop() {
		answer, err := client.ListWorkloads(ctx, &plimsollv1.ListWorkloadsRequest{PageSize: 500, Filter: "workload.placement.spot_actual < workload.placement.spot_wanted"})
		if err != nil || len(answer.GetWorkloads()) != 500 {
			b.Fatal(len(answer.GetWorkloads()), err)
		}
	}
}

// BenchmarkEventToAllWatchers is one event, 100 of which come in a second, to 1,000 watchers.
func BenchmarkEventToAllWatchers(b *testing.B) {
	const watchers = 1000
	r := benchmarkFleet(b)
	conns := dialled(b, r.backend(), 8)
	var synced, got atomic.Int64
	all, done := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	var took time.Duration
	for n := range watchers {
		ctx := metadata.AppendToOutgoingContext(b.Context(), "authorization", fmt.Sprintf("Bearer user-%d", n/16))
		stream, err := plimsollv1.NewEventServiceClient(conns[n%len(conns)]).WatchEvents(ctx, &plimsollv1.WatchEventsRequest{})
		if err != nil {
			b.Fatal(err)
		}
		go func() {
			for {
				message, err := stream.Recv()
				switch {
				case err != nil:
					return
				case message.GetType() == plimsollv1.WatchEventType_WATCH_EVENT_TYPE_SYNCED && synced.Add(1) == watchers:
					close(all)
				case message.GetEvent() != nil:
					mu.Lock()
					took += time.Since(message.GetEvent().GetAt().AsTime())
					mu.Unlock()
					if got.Add(1) == int64(b.N)*watchers {
						close(done)
					}
				}
			}
		}()
	}
	<-all
	b.ResetTimer()
	each := time.NewTicker(10 * time.Millisecond)
	defer each.Stop()
	for n := range b.N {
		<-each.C
		r.journal.Add(journal.Event{Type: journal.Move, Member: fmt.Sprintf("member-%03d", n%100), Namespace: "shop", Name: "cart", Message: "moved"})
	}
	<-done
	b.ReportMetric(float64(took.Microseconds())/1000/float64(b.N*watchers), "ms-late")
}

// BenchmarkGet is one call for the state of an object, of many at a time.
func BenchmarkGet(b *testing.B) {
	r := benchmarkFleet(b)
	r.workload("member-042", "shop", "cart")
	conns := dialled(b, r.backend(), 8)
	ctx := metadata.AppendToOutgoingContext(b.Context(), "authorization", "Bearer admin")
	var next atomic.Int64
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		client := plimsollv1.NewObjectServiceClient(conns[int(next.Add(1))%len(conns)])
		for pb.Next() {
			if _, err := client.GetObjectState(ctx, &plimsollv1.GetObjectStateRequest{
				Cluster: "member-042", Controller: "deployment-spot", Namespace: "shop", Name: "cart",
			}); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
