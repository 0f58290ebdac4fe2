package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/singleflight"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/cache"
)

// ErrBadToken says that a bearer token belongs to nobody.
var ErrBadToken = errors.New("the bearer token was not accepted")

const (
	// acceptedFor bounds how long a revoked token still works.
	acceptedFor = 10 * time.Second
	// rejectedFor keeps somebody who repeats a bad token from asking the hub cluster each time.
	rejectedFor = time.Second
	// reviewTimeout bounds one question to the hub cluster.
	reviewTimeout = 5 * time.Second
	// maxToken is the length of the longest token that is looked at.
	maxToken = 16 << 10
	// maxReviews is how many questions to the hub cluster are under way at once, so that a flood of bad tokens does not
	// become one of reviews; suspects have places of their own, and an address some of the others.
	maxReviews, maxSuspectReviews, maxReviewsOfAddress = 32, 4, 8
	// maxCachedTokens and maxCachedAccess bound memory.
	maxCachedTokens = 4096
	maxCachedAccess = 8192
)

// TokenReviewer is an [Authenticator] that asks a cluster, and remembers what it said: accepted for 10 s, rejected for 1 s.
type TokenReviewer struct {
	reviews  authenticationclient.TokenReviewInterface
	audience string
	salt     [sha256.Size]byte
	slots    chan struct{}
	few      chan struct{} // places of suspects
	ofOne    *equalShares  // by address
	flight   singleflight.Group
	known    *cache.Cache[tokenKey, reviewed] // accepted ones
	rejected *cache.Cache[tokenKey, struct{}] // a flood of bad tokens must not push out good ones
	trusted  *cache.Cache[tokenKey, struct{}] // accepted lately
	from     *strangers
}

// tokenKey represents a token in memory: salted, so that a dump of it is worth nothing.
type tokenKey [sha256.Size]byte

type reviewed struct {
	identity Identity
	accepted bool
}

// NewTokenReviewer asks reviews about tokens that must have been made for audience.
func NewTokenReviewer(reviews authenticationclient.TokenReviewInterface, audience string) (*TokenReviewer, error) {
	if audience == "" {
		return nil, errors.New("token audience: must not be empty, otherwise any token of the hub cluster would be accepted")
	}
	return newTokenReviewer(reviews, audience)
}

// NewPodTokenReviewer asks reviews about tokens that must have been made for the cluster's API servers, as those are that
// kubelets mount into pods. Whoever is given such a token can act in its owner's name, so only what must take the tokens of
// pods as they are should ask for them.
func NewPodTokenReviewer(reviews authenticationclient.TokenReviewInterface) (*TokenReviewer, error) {
	return newTokenReviewer(reviews, "")
}

// newTokenReviewer: audience "" is the API servers' own.
func newTokenReviewer(reviews authenticationclient.TokenReviewInterface, audience string) (*TokenReviewer, error) {
	r := &TokenReviewer{
		reviews: reviews, audience: audience,
		slots: make(chan struct{}, maxReviews), few: make(chan struct{}, maxSuspectReviews), ofOne: newEqualShares(maxReviewsOfAddress),
		known: cache.New[tokenKey, reviewed](maxCachedTokens), rejected: cache.New[tokenKey, struct{}](maxCachedTokens),
		trusted: cache.New[tokenKey, struct{}](maxCachedTokens), from: newStrangers(),
	}
	if _, err := rand.Read(r.salt[:]); err != nil {
		return nil, fmt.Errorf("create a salt for the cache of tokens: %w", err)
	}
	return r, nil
}

// Authenticate implements [Authenticator].
func (r *TokenReviewer) Authenticate(ctx context.Context, token string) (Identity, error) {
	if token == "" || len(token) > maxToken {
		return Identity{}, ErrBadToken
	}
	key := r.key(token)
	if found, ok := r.known.Get(key); ok {
		return found.identity, nil
	}
	if _, bad := r.rejected.Get(key); bad {
		return Identity{}, ErrBadToken
	}
	if hopeless(token, r.audience, time.Now()) {
		return Identity{}, ErrBadToken
	}
	by := asking{from: strangerOf(ctx), address: Origin(ctx)}
	var err error
	if _, by.trusted = r.trusted.Get(key); !by.trusted {
		if by.suspect, err = r.from.suspicious(by.from); err != nil {
			return Identity{}, err
		}
	}
	found, err := r.ask(ctx, key, token, by)
	if err != nil {
		return Identity{}, err
	}
	if !found.accepted {
		return Identity{}, ErrBadToken
	}
	return found.identity, nil
}

// asking is for whom the cluster is asked.
type asking struct {
	from             stranger
	address          string
	trusted, suspect bool
}

func (r *TokenReviewer) key(token string) tokenKey {
	return sha256.Sum256(append(r.salt[:], token...))
}

// ask reviews a token once for everybody who presents it at this moment. The question outlives a caller who gives up.
func (r *TokenReviewer) ask(ctx context.Context, key tokenKey, token string, by asking) (reviewed, error) {
	answer := r.flight.DoChan(string(key[:]), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTimeout)
		defer cancel()
		found, err := r.review(ctx, token, by)
		if err != nil {
			return nil, err
		}
		if found.accepted {
			r.known.Put(key, found, acceptedFor)
			r.trusted.Put(key, struct{}{}, trustedFor)
		} else {
			r.rejected.Put(key, struct{}{}, rejectedFor)
			r.trusted.Drop(key)
		}
		return found, nil
	})
	select {
	case result := <-answer:
		if result.Err != nil {
			return reviewed{}, result.Err
		}
		return result.Val.(reviewed), nil
	case <-ctx.Done():
		return reviewed{}, ctx.Err()
	}
}

// review asks the cluster. What it says about a token that it rejects may quote the token, so it is not passed on.
func (r *TokenReviewer) review(ctx context.Context, token string, by asking) (reviewed, error) {
	giveBack, err := r.ofOne.take(ctx, by.address)
	if err != nil {
		return reviewed{}, fmt.Errorf("review a token: too many reviews for one address: %w", err)
	}
	defer giveBack()
	if !by.trusted && !by.suspect { // those before it in the line may have been bad
		if by.suspect, err = r.from.suspicious(by.from); err != nil {
			return reviewed{}, err
		}
	}
	slots := r.slots
	if by.suspect {
		slots = r.few
	}
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return reviewed{}, fmt.Errorf("review a token: too many reviews: %w", ctx.Err())
	}
	asked := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if r.audience != "" {
		asked.Spec.Audiences = []string{r.audience}
	}
	answer, err := r.reviews.Create(ctx, asked, metav1.CreateOptions{})
	if err != nil {
		return reviewed{}, fmt.Errorf("review a token: %w", err)
	}
	user := answer.Status.User
	// An API server that does not know audiences answers without them, for its own. A name is what rules are written for:
	// somebody without one must not be treated as anybody.
	elsewhere := r.audience != "" && !slices.Contains(answer.Status.Audiences, r.audience)
	if !answer.Status.Authenticated || elsewhere || user.Username == "" {
		r.from.bad(by.from) // also if who asked did not wait, and before the next of the same address has its turn
		return reviewed{}, nil
	}
	identity := Identity{User: user.Username, UID: user.UID, Groups: user.Groups}
	if len(user.Extra) > 0 {
		identity.Extra = make(map[string][]string, len(user.Extra))
		for key, values := range user.Extra {
			identity.Extra[key] = values
		}
	}
	return reviewed{identity: identity, accepted: true}, nil
}
