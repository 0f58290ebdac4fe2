package api

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"buf.build/go/protovalidate"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/limits"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/lists"
	"github.com/plimsoll-dev/plimsoll/internal/shares"
)

// maxCall bounds a call whose caller set no deadline; the longest wait for an operation fits in.
const maxCall = 45 * time.Second

// publicChain is what every call of a stranger goes through, on gRPC and REST alike, outermost first.
func publicChain(o Options, rights access, metrics *metrics, paces *limits.Pace) []grpc.UnaryServerInterceptor {
	who := callers(o)
	return []grpc.UnaryServerInterceptor{
		observe(o.Log, metrics), recoverPanics(o.Log), limitTime, authenticate(who), about, keepPace(paces), validate(protovalidate.GlobalValidator),
		authorize(rights), lists.Masked,
	}
}

// callers reports who calls, as the options say.
func callers(o Options) auth.Identifier {
	if o.Unauthenticated {
		return introducing(auth.Anybody)
	}
	token := auth.Bearer(o.Authenticator, o.Log)
	if o.ClientCAs == nil {
		return introducing(token)
	}
	return introducing(auth.NewCertificates(o.ClientCAs).OrBearer(token))
}

// introducing reports who calls, and has the connections of those who do not say it read as those of strangers.
func introducing(who auth.Identifier) auth.Identifier {
	return func(ctx context.Context) (auth.Identity, error) {
		identity, err := who(ctx)
		if p, ok := peer.FromContext(ctx); ok {
			switch status.Code(err) {
			case codes.OK:
				shares.Known(p.Addr)
			case codes.Unauthenticated, codes.ResourceExhausted:
				shares.Refused(p.Addr)
			}
		}
		return identity, err
	}
}

// peerChain is what every call of another replica goes through. That replica has authenticated and authorized the caller.
func peerChain(log *slog.Logger) []grpc.UnaryServerInterceptor {
	return []grpc.UnaryServerInterceptor{recoverPanics(log), limitTime, onBehalf, validate(protovalidate.GlobalValidator)}
}

// callerHeader names, between replicas, who calls. Metadata with that suffix may hold any bytes.
const callerHeader = "plimsoll-caller-bin"

// onBehalf takes from another replica's call whose it is. Nothing but shares depends on it: of operations, and of what lists may cost.
func onBehalf(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if sent := metadata.ValueFromIncomingContext(ctx, callerHeader); len(sent) == 1 {
		ctx = context.WithValue(ctx, behalfKey{}, sent[0])
	}
	return next(ctx, request)
}

// callerOf returns the name of who calls, this replica or the one that passes the call on.
func callerOf(ctx context.Context) string {
	if behalf, ok := ctx.Value(behalfKey{}).(string); ok {
		return behalf
	}
	return identityOf(ctx).User
}

// payer is whose budget a call is charged to, also where another replica passes it on.
func payer(ctx context.Context) string {
	if behalf, ok := ctx.Value(behalfKey{}).(string); ok {
		return behalf
	}
	return identityOf(ctx).Share()
}

// call is what the log says about one call; the interceptors inside fill it in.
type call struct {
	user string
}

type (
	callKey     struct{}
	identityKey struct{}
	behalfKey   struct{}
)

// identityOf returns who calls; calls of other replicas have none.
func identityOf(ctx context.Context) auth.Identity {
	who, _ := ctx.Value(identityKey{}).(auth.Identity)
	return who
}

// recoverPanics turns a panic into an error that shows the caller nothing.
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

// authenticate finds out who calls. Nothing else of the caller's metadata is looked at by anybody: in particular,
// Impersonate-* headers mean nothing here.
func authenticate(who auth.Identifier) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		identity, err := who(ctx)
		if err != nil {
			return nil, err
		}
		if identity.User == "" { // whatever the authenticator is: no name, no entry
			return nil, auth.BadToken()
		}
		limits.Arrived(ctx)
		if c, ok := ctx.Value(callKey{}).(*call); ok {
			c.user = identity.User
		}
		return next(context.WithValue(ctx, identityKey{}, identity), request)
	}
}

// keepPace refuses calls above the caller's limit.
func keepPace(paces *limits.Pace) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		if err := paces.Allow(identityOf(ctx)); err != nil {
			return nil, err
		}
		return next(ctx, request)
	}
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
