package api

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/limits"
)

const (
	// maxArriving is how many calls may have begun and not arrived, of all callers; nobody has more than half. gRPC asks no interceptor
	// before a call's message is complete, so a stranger could leave 256 of them unfinished on each connection. Each has up to
	// maxHeaders and maxRequest bytes.
	maxArriving = 2048
	// arriveWithin is how long a call may take to arrive.
	arriveWithin = 10 * time.Second
)

// countArrivals counts calls as soon as their headers are there.
func countArrivals(arrivals *limits.Arrivals, metrics *metrics) tap.ServerInHandle {
	return func(ctx context.Context, _ *tap.Info) (context.Context, error) {
		ctx, err := arrivals.Begin(ctx, auth.Origin(ctx))
		if err != nil {
			metrics.requests.WithLabelValues("", status.Code(err).String()).Inc() // a stranger may name any method
		}
		return ctx, err
	}
}

// arrived ends the counting of a call with one message, which is there when its interceptors run.
func arrived(next grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		limits.Arrived(ctx)
		return next(ctx, request, info, handler)
	}
}

// arrivedStream ends the counting of a stream with its first message.
func arrivedStream(next grpc.StreamServerInterceptor) grpc.StreamServerInterceptor {
	return func(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		return next(service, arrivingStream{stream}, info, handler)
	}
}

type arrivingStream struct{ grpc.ServerStream }

// RecvMsg implements [grpc.ServerStream].
func (s arrivingStream) RecvMsg(into any) error {
	err := s.ServerStream.RecvMsg(into)
	limits.Arrived(s.Context())
	return err
}
