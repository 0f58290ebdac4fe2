package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// callTimeout bounds one call to the hub.
const callTimeout = 5 * time.Second

// api asks the hub what it knows, as anybody with a token may.
type api struct {
	connection *grpc.ClientConn
	token      string
}

// newAPI makes a client of the hub at an address. It does not connect yet.
func newAPI(address string, ca []byte, token string) (*api, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("connect to the hub: its CA holds no certificate")
	}
	security := credentials.NewTLS(&tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12})
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(security), grpc.WithNoProxy())
	if err != nil {
		return nil, fmt.Errorf("connect to the hub: %w", err)
	}
	return &api{connection: connection, token: token}, nil
}

func (a *api) close() { _ = a.connection.Close() } // nothing is in flight by then

func (a *api) context(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+a.token), cancel
}

// clusters are all members.
func (a *api) clusters(ctx context.Context) ([]*plimsollv1.Cluster, error) {
	ctx, cancel := a.context(ctx)
	defer cancel()
	client := plimsollv1.NewClusterServiceClient(a.connection)
	var all []*plimsollv1.Cluster
	for page := ""; ; {
		answer, err := client.ListClusters(ctx, &plimsollv1.ListClustersRequest{PageToken: page})
		if err != nil {
			return nil, fmt.Errorf("list clusters: %w", err)
		}
		all = append(all, answer.GetClusters()...)
		if page = answer.GetNextPageToken(); page == "" {
			return all, nil
		}
	}
}

// placements are the workloads that are placed over the fleet.
func (a *api) placements(ctx context.Context) ([]*plimsollv1.FleetPlacement, error) {
	ctx, cancel := a.context(ctx)
	defer cancel()
	answer, err := plimsollv1.NewFleetServiceClient(a.connection).ListFleetPlacements(ctx, &plimsollv1.ListFleetPlacementsRequest{})
	if err != nil {
		return nil, fmt.Errorf("list fleet placements: %w", err)
	}
	return answer.GetPlacements(), nil
}

// workloads are those of all members, and the members that are missing from the list.
func (a *api) workloads(ctx context.Context) ([]*plimsollv1.Workload, []*plimsollv1.UnreachableMember, error) {
	ctx, cancel := a.context(ctx)
	defer cancel()
	client := plimsollv1.NewWorkloadServiceClient(a.connection)
	var all []*plimsollv1.Workload
	for page := ""; ; {
		answer, err := client.ListWorkloads(ctx, &plimsollv1.ListWorkloadsRequest{PageToken: page})
		if err != nil {
			return nil, nil, fmt.Errorf("list workloads: %w", err)
		}
		all = append(all, answer.GetWorkloads()...)
		if page = answer.GetNextPageToken(); page == "" {
			return all, answer.GetUnreachable(), nil
		}
	}
}
