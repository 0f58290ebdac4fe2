package inprocess

import (
	"context"
	"net"

	"google.golang.org/grpc"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// bareObjects answers GetObjectState with the key that was asked for, and looks nothing up.
type bareObjects struct {
	plimsollv1.UnimplementedObjectServiceServer
}

// GetObjectState implements [plimsollv1.ObjectServiceServer].
func (bareObjects) GetObjectState(_ context.Context, request *plimsollv1.GetObjectStateRequest) (*plimsollv1.GetObjectStateResponse, error) {
	return &plimsollv1.GetObjectStateResponse{Object: &plimsollv1.ObjectState{Key: &plimsollv1.ObjectKey{
		Cluster: request.GetCluster(), Controller: request.GetController(), Namespace: request.GetNamespace(), Name: request.GetName(),
	}}}, nil
}

// newBareSite is the least that a gRPC server can be: no interceptors, no limits, nothing behind it. It runs in this process, with the same
// settings of the runtime as the API that it is compared with.
func newBareSite(ctx context.Context) (*apiSite, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer()
	plimsollv1.RegisterObjectServiceServer(server, bareObjects{})
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	return &apiSite{grpc: listener.Addr().String(), calls: &callTimes{}, stop: func() error {
		server.Stop()
		return <-ended
	}}, nil
}
