package api

import (
	"log/slog"
	"net/http"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// Guard lets callers of next in who show a bearer token that authenticator accepts, and whom authorizer allows to get the
// non-resource URL path. Others are answered 401, 403, or 503 when that cannot be told now.
func Guard(path string, authenticator Authenticator, authorizer Authorizer, log *slog.Logger, next http.Handler) http.Handler {
	who, gate := bearer(authenticator, log), access{authorizer: authorizer, log: log}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := peer.NewContext(r.Context(), &peer.Peer{Addr: address(r.RemoteAddr)})
		ctx = metadata.NewIncomingContext(ctx, metadata.MD{"authorization": r.Header.Values("Authorization")})
		identity, err := who(ctx)
		if err == nil {
			var allowed bool
			if allowed, err = gate.mayGet(ctx, identity, path); err == nil && !allowed {
				err = status.Errorf(codes.PermissionDenied,
					"user %q may not get %s: a ClusterRole of the hub cluster must allow get on the nonResourceURL %s", identity.User, path, path)
			}
		}
		if err != nil {
			refuse(w, status.Convert(err))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func refuse(w http.ResponseWriter, answer *status.Status) {
	if answer.Code() == codes.Unauthenticated {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	http.Error(w, answer.Message(), runtime.HTTPStatusFromCode(answer.Code()))
}
