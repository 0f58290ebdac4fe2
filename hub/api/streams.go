package api

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"buf.build/go/protovalidate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/limits"
	"github.com/plimsoll-dev/plimsoll/internal/shares"
)

const (
	// maxHealthWatch is how long a stream that asks for the server's health keeps its place: there may be more who want one than places.
	maxHealthWatch = time.Hour
	// maxStreams is how many streams of callers are open at a time that gRPC itself offers, maxHealthStreams how many of those
	// that ask for the server's health without a token.
	maxStreams, maxHealthStreams = 64, 64
	// maxWatches is how many watches are open at a time, maxWatchesOfUser how many of one caller.
	maxWatches, maxWatchesOfUser = 4096, 32
)

// streams let callers have those that gRPC itself offers, reflection and health, and watches.
type streams struct {
	who            auth.Identifier
	rights         access
	paces          *limits.Pace
	metrics        *metrics
	log            *slog.Logger
	places, health *shares.Places
	recheck        time.Duration // see [Options.RecheckEvery]

	mu      sync.Mutex
	watches int
	ofUser  map[string]int
}

func newStreams(o Options, rights access, metrics *metrics, paces *limits.Pace) *streams {
	return &streams{
		who: callers(o), rights: rights, paces: paces, metrics: metrics, log: o.Log, recheck: o.RecheckEvery, ofUser: map[string]int{},
		places: shares.NewPlaces(maxStreams), health: shares.NewPlaces(maxHealthStreams),
	}
}

// intercept counts streams, bounds their number and their time, and asks for a token where they do not serve health.
func (s *streams) intercept(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			s.log.Error("an API stream panicked", "method", info.FullMethod, "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
			err = apierror.Internal()
		}
		err = apierror.AsStatus(err)
		s.metrics.requests.WithLabelValues(info.FullMethod, status.Code(err).String()).Inc()
	}()
	if _, watch := rules[info.FullMethod]; watch {
		return s.watch(service, stream, info, next)
	}
	return s.serve(service, stream, info, next)
}

// identified is who opens a stream.
func (s *streams) identified(ctx context.Context) (auth.Identity, error) {
	who, err := s.who(ctx)
	if err == nil && who.User == "" {
		err = auth.BadToken()
	}
	return who, err
}

// watch serves a stream of the API's own, as long as its token is accepted.
func (s *streams) watch(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	who, err := s.identified(stream.Context())
	if err != nil {
		return err
	}
	if err := s.paces.Allow(who); err != nil {
		return err
	}
	leave, err := s.enter(who)
	if err != nil {
		return err
	}
	defer leave()
	ctx, end := context.WithCancelCause(context.WithValue(stream.Context(), identityKey{}, who))
	defer end(nil)
	defer repeat(ctx, s.recheck, s.reauthentication(ctx, who, end))()
	begun := time.Now()
	err = apierror.AsStatus(next(service, checkedStream{stream, ctx, info.FullMethod, s.rights}))
	s.log.Log(ctx, levelOf(info.FullMethod, status.Code(err)), "API stream ended", "method", info.FullMethod, "code", status.Code(err).String(),
		"reason", status.Convert(err).Message(), "user", who.User, "remote", auth.Remote(ctx), "duration", time.Since(begun))
	return err
}

// reauthentication is a check that ends a stream whose token is accepted no more, or stands for other groups than before: what the caller
// may see is asked for the groups with which the stream began.
func (s *streams) reauthentication(ctx context.Context, who auth.Identity, end context.CancelCauseFunc) (check func() (again bool)) {
	certain := time.Now()
	return func() bool {
		again, err := s.identified(ctx)
		switch {
		case status.Code(err) == codes.Unavailable && time.Since(certain) < 2*s.recheck:
			return true // the hub cluster may answer the next time
		case err == nil && (again.User != who.User || again.UID != who.UID):
			err = auth.BadToken()
		case err == nil && !again.SameRights(who):
			err = status.Error(codes.Aborted, "the groups of the token's user have changed: open the watch again")
		}
		if err != nil {
			end(err)
			return false
		}
		certain = time.Now()
		return true
	}
}

// enter counts a watch of a user; leave must be called once.
func (s *streams) enter(who auth.Identity) (leave func(), err error) {
	user := who.Share()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watches >= maxWatches {
		return nil, status.Error(codes.ResourceExhausted, "too many streams are open")
	}
	if s.ofUser[user] >= maxWatchesOfUser {
		return nil, status.Errorf(codes.ResourceExhausted, "user %q already has %d open streams, the maximum", who.User, maxWatchesOfUser)
	}
	s.watches++
	s.ofUser[user]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.watches--
		if s.ofUser[user]--; s.ofUser[user] == 0 {
			delete(s.ofUser, user)
		}
	}, nil
}

// checkedStream validates and authorizes the request that comes in on it.
type checkedStream struct {
	grpc.ServerStream
	ctx    context.Context
	method string
	rights access
}

// Context implements [grpc.ServerStream].
func (s checkedStream) Context() context.Context { return s.ctx }

// RecvMsg implements [grpc.ServerStream].
func (s checkedStream) RecvMsg(into any) error {
	if err := s.ServerStream.RecvMsg(into); err != nil {
		return err
	}
	message, ok := into.(proto.Message)
	if !ok {
		return apierror.Internal()
	}
	if err := protovalidate.GlobalValidator.Validate(message); err != nil {
		return apierror.Violations(err)
	}
	return s.rights.mayCall(s.ctx, s.method, into)
}

// serve serves a stream that gRPC itself offers.
func (s *streams) serve(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if info.FullMethod == healthv1.Health_Watch_FullMethodName {
		return s.inPlace(s.health, auth.Origin(stream.Context()), func() error { return watchHealth(service, stream, next) })
	}
	ctx, cancel := context.WithTimeout(stream.Context(), maxCall)
	defer cancel()
	who, err := s.identified(ctx)
	if err != nil {
		return err
	}
	s.log.Debug("API stream", "method", info.FullMethod, "user", who.User, "remote", auth.Remote(ctx))
	return s.inPlace(s.places, who.Share(), func() error { return next(service, boundedStream{stream, ctx}) })
}

// watchHealth serves a stream that asks for the server's health.
func watchHealth(service any, stream grpc.ServerStream, next grpc.StreamHandler) error {
	ctx, cancel := context.WithTimeout(stream.Context(), maxHealthWatch)
	defer cancel()
	err := next(service, boundedStream{stream, ctx})
	if stream.Context().Err() == nil && ctx.Err() != nil {
		return status.Errorf(codes.Unavailable, "a watch of the server's health ends after %s: open another one", maxHealthWatch)
	}
	return err
}

// inPlace serves a stream on a place of whose, if there is one.
func (*streams) inPlace(places *shares.Places, whose string, serve func() error) error {
	if !places.Enter(whose) {
		return status.Error(codes.ResourceExhausted, "too many streams are open")
	}
	defer places.Leave(whose)
	return serve()
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
