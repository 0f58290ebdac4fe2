package api

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"golang.org/x/sync/singleflight"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/cache"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/rest"
)

const (
	// allowedWithout is how long a token that was let in keeps being let in while the hub cluster cannot be asked.
	allowedWithout = time.Hour
	// waitWithout is how long a call with such a token waits for its question. Scrapers give up after 10 s.
	waitWithout = 2 * time.Second
	// askWithin is how long the question goes on after that: a review of the token and one of its holder's access, of up to 5 s each.
	askWithin = 10 * time.Second
	// maxAllowedWithout bounds memory.
	maxAllowedWithout = 64
)

// Guard lets callers of next in who show a bearer token that authenticator accepts, and whom authorizer allows to get the
// non-resource URL path. Others are answered 401, 403, or 503 when that cannot be found out now.
//
// While the hub cluster cannot be asked, a token that it has let in within the last hour is let in, unless the token says that it
// has expired: what next shows is needed most when a replica is cut off.
func Guard(path string, authenticator auth.Authenticator, authorizer auth.Authorizer, log *slog.Logger, next http.Handler) http.Handler {
	g := &guard{
		path: path, who: introducing(auth.Bearer(authenticator, log)), rights: access{authorizer: authorizer, log: log},
		lately: cache.New[headerKey, struct{}](maxAllowedWithout),
	}
	_, _ = rand.Read(g.salt[:]) // never fails
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := g.admit(r); err != nil {
			refuse(w, status.Convert(err))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// headerKey represents an Authorization header in memory: salted, so that a dump of it is worth nothing.
type headerKey [sha256.Size]byte

type guard struct {
	path   string
	who    auth.Identifier
	rights access
	salt   [sha256.Size]byte
	lately *cache.Cache[headerKey, struct{}] // let in by the hub cluster within the last hour
	again  singleflight.Group                // questions about those in lately, which may outlive their calls: one for each
}

// admit returns nil when whoever sends r is let in.
func (g *guard) admit(r *http.Request) error {
	ctx := peer.NewContext(r.Context(), &peer.Peer{Addr: rest.From(r)})
	ctx = metadata.NewIncomingContext(ctx, metadata.MD{"authorization": r.Header.Values("Authorization")})
	key := headerKey(sha256.Sum256(append(g.salt[:], strings.Join(r.Header.Values("Authorization"), "\n")...)))
	if _, lately := g.lately.Get(key); lately {
		return g.askAgain(ctx, key)
	}
	return g.ask(ctx, key)
}

// askAgain asks about somebody who was let in lately, and lets them in when there is no answer in time. The question goes on, for what a
// late answer says of the next call; calls that come meanwhile wait for the same one.
func (g *guard) askAgain(ctx context.Context, key headerKey) error {
	answer := g.again.DoChan(string(key[:]), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askWithin)
		defer cancel()
		return nil, g.ask(ctx, key)
	})
	patience := time.NewTimer(waitWithout)
	defer patience.Stop()
	select {
	case answered := <-answer:
		switch status.Code(answered.Err) {
		case codes.Unavailable, codes.DeadlineExceeded:
			return nil
		}
		return answered.Err
	case <-patience.C:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

// ask asks the hub cluster, and remembers what it says.
func (g *guard) ask(ctx context.Context, key headerKey) error {
	err := g.review(ctx)
	switch status.Code(err) {
	case codes.OK:
		g.lately.Put(key, struct{}{}, allowedWithout)
	case codes.Unauthenticated, codes.PermissionDenied:
		g.lately.Drop(key)
	}
	return err
}

// review returns nil when the hub cluster says that the caller of ctx may get the path.
func (g *guard) review(ctx context.Context) error {
	identity, err := g.who(ctx)
	if err != nil {
		return err
	}
	allowed, err := g.rights.mayGet(ctx, identity, g.path)
	if err == nil && !allowed {
		err = status.Errorf(codes.PermissionDenied,
			"user %q may not get %s: a ClusterRole of the hub cluster must grant get on the nonResourceURL %s", identity.User, g.path, g.path)
	}
	return err
}

func refuse(w http.ResponseWriter, answer *status.Status) {
	if answer.Code() == codes.Unauthenticated {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	http.Error(w, answer.Message(), runtime.HTTPStatusFromCode(answer.Code()))
}
