package api

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/limits"
)

// NewPeer creates the internal side: the same services for the other replicas, answered here or not at all, for callers that
// those replicas have authorized. It lets in whoever config lets in, so config must verify client certificates, and accept
// those of replicas only. The caller serves and stops it, and may register more services with it before. Who waits for a
// operation is answered at once when stopping ends.
func NewPeer(stopping context.Context, backend Backend, config *tls.Config, log *slog.Logger) (*grpc.Server, error) {
	if err := backend.check(); err != nil {
		return nil, err
	}
	if config == nil || config.ClientAuth != tls.RequireAndVerifyClientCert {
		return nil, errors.New("API: between replicas client certificates must be required and verified")
	}
	return newPeer(stopping, backend, log, grpc.Creds(credentials.NewTLS(config.Clone()))), nil
}

func newPeer(stopping context.Context, backend Backend, log *slog.Logger, options ...grpc.ServerOption) *grpc.Server {
	options = append(append(connectionLimits(), grpc.ChainUnaryInterceptor(peerChain(log)...), grpc.StreamInterceptor(noStreams)), options...)
	server := grpc.NewServer(options...)
	newServices(peerCore(stopping, backend, log)).register(server)
	return server
}

// peerCore is what the services for other replicas share: these have authorized their callers, have limited how many lists in an order there
// are at a time, and serve the watches. What lists, their filters and what-ifs may cost here is bounded for each caller, not for each replica.
func peerCore(stopping context.Context, backend Backend, log *slog.Logger) *core {
	return &core{
		members: backend.Members, workloads: backend.Workloads, objects: backend.Objects, ownership: backend.Ownership, events: backend.Events, fleet: backend.Fleet, batches: backend.Batches,
		rights: access{authorizer: everything{}, log: log}, filters: limits.NewBudgets(limits.FilterRate, limits.FilterBurst), questions: limits.NewQuestions(), stopping: stopping, log: log,
	}
}

// noStreams: replicas ask each other questions, and each serves its own watches.
func noStreams(any, grpc.ServerStream, *grpc.StreamServerInfo, grpc.StreamHandler) error {
	return status.Error(codes.Unimplemented, "replicas serve each other no streams")
}
