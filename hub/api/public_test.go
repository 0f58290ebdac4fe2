package api_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/hub/api"
	"github.com/plimsoll-dev/plimsoll/hub/journal"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
)

// replica is a hub of one replica that knows one member with one workload, and answers for it.
type replica struct{}

func (replica) Statuses() []clusters.Status {
	return []clusters.Status{{Name: "prod", State: clusters.StateReady, Version: "v1.34.0"}}
}

func (r replica) Status(name string) (clusters.Status, bool) { return r.Statuses()[0], name == "prod" }
func (replica) Synced() bool                                 { return true }
func (replica) Owner(string) string                          { return "" }
func (replica) Mine(string) bool                             { return true }
func (replica) Acts(string) bool                             { return true }

func (replica) Dial(string) (grpc.ClientConnInterface, error) {
	return nil, status.Error(codes.Unavailable, "there is no other replica")
}

// workloads are those of the replica; what no test asks is not there.
type workloads struct{ api.Workloads }

func cart() report.Workload {
	return report.Workload{Member: "prod", WorkloadKey: policy.WorkloadKey{Kind: "Deployment", NamespacedName: types.NamespacedName{Namespace: "shop", Name: "cart"}},
		Replicas: 10, SpotWanted: 7, OnDemandWanted: 3, SpotActual: 6, OnDemandActual: 4}
}

func (workloads) List(string, string) []report.Workload { return []report.Workload{cart()} }
func (workloads) Get(_, kind, namespace, name string) (report.Workload, bool) {
	return cart(), kind == "Deployment" && namespace == "shop" && name == "cart"
}
func (workloads) Controller(kind string) (string, bool) {
	return "deployment-spot", kind == "Deployment"
}
func (workloads) Placed() []spot.PlacedKind {
	return []spot.PlacedKind{{Name: "Deployment", Controller: "deployment-spot"}}
}

// ledger is that of the replica, with nothing in it.
type ledger struct{ api.Objects }

func (ledger) Lookup(reconcile.Key) (reconcile.Record, bool)         { return reconcile.Record{}, false }
func (ledger) RecordsIn(reconcile.Filter) ([]reconcile.Record, bool) { return nil, false }
func (ledger) Version(string) uint64                                 { return 1 }

func options() api.Options {
	return api.Options{
		Backend: api.Backend{Members: replica{}, Workloads: workloads{}, Objects: ledger{}, Ownership: replica{}, Events: journal.New(journal.Limits{})},
		Peers:   replica{}, Unauthenticated: true, Log: slog.New(slog.DiscardHandler),
	}
}

// serve runs the API on loopback and returns where.
func serve(t *testing.T, o api.Options) (grpcAddress, restAddress string) {
	t.Helper()
	server, err := api.New(o)
	if err != nil {
		t.Fatal(err)
	}
	listeners := [2]net.Listener{}
	for i := range listeners {
		if listeners[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx, listeners[0], listeners[1]) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return listeners[0].Addr().String(), listeners[1].Addr().String()
}

func TestBothSidesOfTheAPIAnswerTheSame(t *testing.T) {
	grpcAddress, restAddress := serve(t, options())
	conn, err := grpc.NewClient(grpcAddress, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	clustersOf, workloadsOf := plimsollv1.NewClusterServiceClient(conn), plimsollv1.NewWorkloadServiceClient(conn)

	all, err := clustersOf.ListClusters(t.Context(), &plimsollv1.ListClustersRequest{})
	if err != nil || len(all.GetClusters()) != 1 || all.GetClusters()[0].GetName() != "prod" {
		t.Errorf("clusters: %v, %v", all, err)
	}
	one, err := workloadsOf.GetWorkload(t.Context(), &plimsollv1.GetWorkloadRequest{Cluster: "prod", Kind: "Deployment", Namespace: "shop", Name: "cart"})
	if err != nil {
		t.Fatal(err)
	}
	placement := one.GetWorkload().GetPlacement()
	for count, got := range map[string][2]int32{
		"wanted on spot": {placement.GetSpotWanted(), 7}, "on spot": {placement.GetSpotActual(), 6},
		"wanted on-demand": {placement.GetOnDemandWanted(), 3}, "on-demand": {placement.GetOnDemandActual(), 4},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %d, want %d", count, got[0], got[1])
		}
	}
	var same plimsollv1.GetWorkloadResponse
	body := get(t, "http://"+restAddress+"/v1/clusters/prod/namespaces/shop/workloads/Deployment/cart", http.StatusOK)
	if err := protojson.Unmarshal(body, &same); err != nil || !proto.Equal(one.GetWorkload().GetPlacement(), same.GetWorkload().GetPlacement()) {
		t.Errorf("gRPC says %v, and REST %s: %v", one, body, err)
	}
}

func TestAnUnknownMemberIsNotFound(t *testing.T) {
	_, address := serve(t, options())
	var answer struct {
		Code    codes.Code `json:"code"`
		Message string     `json:"message"`
	}
	body := get(t, "http://"+address+"/v1/clusters/nowhere", http.StatusNotFound)
	if err := json.Unmarshal(body, &answer); err != nil || answer.Code != codes.NotFound || answer.Message == "" {
		t.Errorf("%s: %v", body, err)
	}
}

// get returns the answer to a call, which has a status.
func get(t *testing.T, url string, want int) []byte {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != want {
		t.Fatalf("%s: status %d, %v: %s", url, answer.StatusCode, err, body)
	}
	return body
}

func TestAnAPIThatCannotWorkIsNotMade(t *testing.T) {
	for name, change := range map[string]func(*api.Options){
		"nobody says who calls": func(o *api.Options) { o.Unauthenticated = false },
		"no other replicas":     func(o *api.Options) { o.Peers = nil },
		"no members":            func(o *api.Options) { o.Members = nil },
		"no log":                func(o *api.Options) { o.Log = nil },
	} {
		o := options()
		change(&o)
		if _, err := api.New(o); err == nil {
			t.Errorf("%s: it is made", name)
		}
	}
}
