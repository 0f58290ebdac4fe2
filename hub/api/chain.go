package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"buf.build/go/protovalidate"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/lists"
)

// maxCall bounds a call whose caller set no deadline; the longest wait for a receipt fits in.
const maxCall = 45 * time.Second

// publicChain is what every call of a stranger goes through, on gRPC and REST alike, outermost first.
func publicChain(o Options, gate access, metrics *metrics, paces *pace) []grpc.UnaryServerInterceptor {
	who := callers(o)
	return []grpc.UnaryServerInterceptor{
		observe(o.Log, metrics), recoverPanics(o.Log), limitTime, authenticate(who), about, paces.keepPace, validate(protovalidate.GlobalValidator),
		authorize(gate), lists.Masked,
	}
}

// callers tells who calls, as the options say.
func callers(o Options) identify {
	if o.Unauthenticated {
		return anybody
	}
	token := bearer(o.Authenticator, o.Log)
	if o.ClientCAs == nil {
		return token
	}
	return newCertificates(o.ClientCAs).orBearer(token)
}

// peerChain is what every call of another replica goes through. That replica has authenticated and authorized the caller.
func peerChain(log *slog.Logger) []grpc.UnaryServerInterceptor {
	return []grpc.UnaryServerInterceptor{recoverPanics(log), limitTime, onBehalf, validate(protovalidate.GlobalValidator)}
}

// callerHeader names, between replicas and with an order, who gave it. Metadata with that suffix may hold any bytes.
const callerHeader = "plimsoll-caller-bin"

// onBehalf takes from another replica's call who gave the order. Nothing but the share of receipts depends on it.
func onBehalf(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if sent := metadata.ValueFromIncomingContext(ctx, callerHeader); len(sent) == 1 {
		ctx = context.WithValue(ctx, behalfKey{}, sent[0])
	}
	return next(ctx, request)
}

// callerOf returns the name of who gave an order, to this replica or to the one that passes it on.
func callerOf(ctx context.Context) string {
	if behalf, ok := ctx.Value(behalfKey{}).(string); ok {
		return behalf
	}
	return identityOf(ctx).User
}

// call is what the log tells of one call; the interceptors inside fill it in.
type call struct {
	user string
}

type (
	callKey     struct{}
	identityKey struct{}
	behalfKey   struct{}
)

// identityOf returns who calls; calls of other replicas have none.
func identityOf(ctx context.Context) Identity {
	who, _ := ctx.Value(identityKey{}).(Identity)
	return who
}

// recoverPanics turns a panic into an error that tells the caller nothing.
func recoverPanics(log *slog.Logger) grpc.UnaryServerInterceptor {
	return recovery.UnaryServerInterceptor(recovery.WithRecoveryHandlerContext(func(_ context.Context, cause any) error {
		log.Error("an API call panicked", "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
		return apierror.Internal()
	}))
}

// limitTime gives every call a deadline.
func limitTime(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, maxCall)
	defer cancel()
	return next(ctx, request)
}

// identify tells who makes the call in ctx, or returns a status error.
type identify func(ctx context.Context) (Identity, error)

// authenticate finds out who calls. Nothing else of the caller's metadata is looked at by anybody: in particular,
// Impersonate-* headers mean nothing here.
func authenticate(who identify) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		identity, err := who(ctx)
		if err != nil {
			return nil, err
		}
		if identity.User == "" { // whatever the authenticator is: no name, no entry
			return nil, errBadToken()
		}
		if c, ok := ctx.Value(callKey{}).(*call); ok {
			c.user = identity.User
		}
		return next(context.WithValue(ctx, identityKey{}, identity), request)
	}
}

// anybody is the unauthenticated mode. Behind a port-forward all callers come from one address: their connections tell them apart.
func anybody(ctx context.Context) (Identity, error) {
	return Identity{User: "unauthenticated", Connection: remote(ctx)}, nil
}

// bearer takes the identity from the call's one bearer token.
func bearer(authenticator Authenticator, log *slog.Logger) identify {
	return func(ctx context.Context) (Identity, error) {
		token, err := bearerToken(ctx)
		if err != nil {
			return Identity{}, err
		}
		identity, err := authenticator.Authenticate(ctx, token)
		switch {
		case err == nil:
			return identity, nil
		case errors.Is(err, ErrBadToken):
			return Identity{}, errBadToken()
		case errors.Is(err, ErrTooManyBadTokens):
			return Identity{}, status.Error(codes.ResourceExhausted, "too many bearer tokens from this address were not accepted: try again in a minute")
		case ctx.Err() != nil:
			return Identity{}, status.FromContextError(ctx.Err()).Err()
		}
		log.Warn("bearer tokens cannot be checked", "error", err)
		return Identity{}, status.Error(codes.Unavailable, "bearer tokens cannot be checked now: the hub cluster does not answer")
	}
}

func errBadToken() error {
	return status.Error(codes.Unauthenticated, "the bearer token was not accepted: it must be valid in the hub cluster, and made for the hub's audience")
}

// bearerToken returns the token of the one authorization header that there must be.
func bearerToken(ctx context.Context) (string, error) {
	headers := metadata.ValueFromIncomingContext(ctx, "authorization")
	switch len(headers) {
	case 0:
		return "", status.Error(codes.Unauthenticated, "a bearer token is needed, in an Authorization header")
	case 1:
	default:
		return "", status.Error(codes.Unauthenticated, "there must be only one Authorization header")
	}
	scheme, token, ok := strings.Cut(headers[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") || token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "", status.Error(codes.Unauthenticated, `the Authorization header must be "Bearer" and a token`)
	}
	return token, nil
}

// validate checks a request against the rules of its .proto file.
func validate(validator protovalidate.Validator) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		message, ok := request.(proto.Message)
		if !ok {
			return next(ctx, request)
		}
		if err := validator.Validate(message); err != nil {
			return nil, apierror.Violations(err)
		}
		return next(ctx, request)
	}
}

// remote is the address of whoever calls.
func remote(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
		return p.Addr.String()
	}
	return ""
}
