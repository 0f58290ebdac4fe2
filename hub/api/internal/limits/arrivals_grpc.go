package limits

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/tap"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/internal/shares"
)

// Tap counts the calls of a gRPC server as soon as their headers are there, and calls refused for those that are too many.
func (a *Arrivals) Tap(refused func(error)) tap.ServerInHandle {
	return func(ctx context.Context, _ *tap.Info) (context.Context, error) {
		if p, ok := peer.FromContext(ctx); ok {
			shares.Begun(p.Addr)
		}
		ctx, err := a.Begin(ctx, auth.Origin(ctx))
		if err != nil {
			refused(err)
		}
		return ctx, err
	}
}

// ArrivedCall ends the counting of a call with one message when the call ends, unless it has ended before: a call has arrived when it is
// known whose it is, which the interceptors find out.
func ArrivedCall(next grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		defer Arrived(ctx)
		return next(ctx, request, info, handler)
	}
}

// ArrivedStream ends the counting of a stream with its first message.
func ArrivedStream(next grpc.StreamServerInterceptor) grpc.StreamServerInterceptor {
	return func(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		return next(service, arrivingStream{stream}, info, handler)
	}
}

type arrivingStream struct{ grpc.ServerStream }

// RecvMsg implements [grpc.ServerStream].
func (s arrivingStream) RecvMsg(into any) error {
	err := s.ServerStream.RecvMsg(into)
	Arrived(s.Context())
	return err
}
