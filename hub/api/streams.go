package api

import (
	"context"
	"log/slog"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

const (
	// maxStreams is how many streams of callers are open at a time, maxHealthStreams how many of those that ask for the server's
	// health without a token.
	maxStreams, maxHealthStreams = 64, 64
)

// streams let callers have those that gRPC itself offers: reflection, and health. The API's own methods are none.
type streams struct {
	who            identify
	metrics        *metrics
	log            *slog.Logger
	places, health chan struct{}
}

func newStreams(o Options, metrics *metrics) *streams {
	return &streams{
		who: callers(o), metrics: metrics, log: o.Log,
		places: make(chan struct{}, maxStreams), health: make(chan struct{}, maxHealthStreams),
	}
}

// intercept counts streams, bounds their number and their time, and asks for a token where it is not health that they tell.
func (s *streams) intercept(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	err := asStatus(s.serve(service, stream, info, next))
	s.metrics.requests.WithLabelValues(info.FullMethod, status.Code(err).String()).Inc()
	return err
}

func (s *streams) serve(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	places, health := s.places, info.FullMethod == healthv1.Health_Watch_FullMethodName
	if health {
		places = s.health
	}
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	default:
		return status.Error(codes.ResourceExhausted, "too many streams are open")
	}
	if health {
		return next(service, stream)
	}
	ctx, cancel := context.WithTimeout(stream.Context(), maxCall)
	defer cancel()
	who, err := s.who(ctx)
	if err != nil {
		return err
	}
	if who.User == "" {
		return errBadToken()
	}
	s.log.Debug("API stream", "method", info.FullMethod, "user", who.User, "remote", remote(ctx))
	return next(service, boundedStream{stream, ctx})
}

// boundedStream ends with a context of ours.
type boundedStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements [grpc.ServerStream].
func (s boundedStream) Context() context.Context { return s.ctx }

// RecvMsg implements [grpc.ServerStream]. It returns when the stream's time is over, whatever the caller does: a message that
// comes later ends with the stream.
func (s boundedStream) RecvMsg(into any) error {
	received := make(chan error, 1)
	go func() { received <- s.ServerStream.RecvMsg(into) }()
	select {
	case err := <-received:
		return err
	case <-s.ctx.Done():
		return status.FromContextError(s.ctx.Err()).Err()
	}
}
