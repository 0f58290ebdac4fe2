package auth

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// Identifier reports who makes the call in ctx, or returns a status error.
type Identifier func(ctx context.Context) (Identity, error)

// Anybody is the unauthenticated mode. Behind a port-forward all callers come from one address: their connections distinguish them.
func Anybody(ctx context.Context) (Identity, error) {
	return Identity{User: "unauthenticated", Connection: Remote(ctx)}, nil
}

// Bearer takes the identity from the call's one bearer token.
func Bearer(authenticator Authenticator, log *slog.Logger) Identifier {
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
			return Identity{}, BadToken()
		case errors.Is(err, ErrTooManyBadTokens):
			return Identity{}, status.Error(codes.ResourceExhausted, "too many invalid bearer tokens from this address: try again in a minute")
		case ctx.Err() != nil:
			return Identity{}, status.FromContextError(ctx.Err()).Err()
		}
		log.Warn("cannot check bearer tokens", "error", err)
		return Identity{}, status.Error(codes.Unavailable, "cannot check bearer tokens: the hub cluster does not answer")
	}
}

// BadToken is UNAUTHENTICATED: a bearer token belongs to nobody.
func BadToken() error {
	return status.Error(codes.Unauthenticated, "the bearer token was not accepted: it must be valid in the hub cluster and have the hub's audience")
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

// Remote is the address of whoever calls.
func Remote(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
		return p.Addr.String()
	}
	return ""
}
