package auth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/singleflight"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/cache"
)

// Group is the API group that access to the hub's API is granted for, by RBAC rules of the hub cluster.
const Group = apierror.Domain

const (
	// allowedFor bounds how long a right that was taken away still works.
	allowedFor = 10 * time.Second
	// deniedFor is how long somebody waits at most for a right that was just given.
	deniedFor = 2 * time.Second
	// maxReviewsOfUser is how many questions about one user are under way at once: a list of members asks one about each.
	maxReviewsOfUser = 8
)

// AccessReviewer is an [Authorizer] that asks a cluster, and remembers what it said: allowed for 10 s, denied for 2 s.
type AccessReviewer struct {
	reviews authorizationclient.SubjectAccessReviewInterface
	known   *cache.Cache[accessKey, bool]
	flight  singleflight.Group
	ofOne   *equalShares // by user
}

type accessKey [sha256.Size]byte

// NewAccessReviewer asks reviews.
func NewAccessReviewer(reviews authorizationclient.SubjectAccessReviewInterface) *AccessReviewer {
	return &AccessReviewer{reviews: reviews, known: cache.New[accessKey, bool](maxCachedAccess), ofOne: newEqualShares(maxReviewsOfUser)}
}

// Allowed implements [Authorizer]. Who has no name is denied everything.
func (r *AccessReviewer) Allowed(ctx context.Context, who Identity, access Access) (bool, error) {
	if who.User == "" {
		return false, nil
	}
	key, err := keyOf(who, access)
	if err != nil {
		return false, err
	}
	if allowed, ok := r.known.Get(key); ok {
		return allowed, nil
	}
	answer := r.flight.DoChan(string(key[:]), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTimeout)
		defer cancel()
		return r.review(ctx, key, who, access)
	})
	select {
	case result := <-answer:
		if result.Err != nil {
			return false, result.Err
		}
		return result.Val.(bool), nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// review asks the cluster, once for all calls that want to know the same at this moment.
func (r *AccessReviewer) review(ctx context.Context, key accessKey, who Identity, access Access) (bool, error) {
	giveBack, err := r.ofOne.take(ctx, who.User)
	if err != nil {
		return false, fmt.Errorf("review the access of a user: too many reviews for one user: %w", err)
	}
	defer giveBack()
	answer, err := r.reviews.Create(ctx, reviewOf(who, access), metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("review the access of a user: %w", err)
	}
	allowed := answer.Status.Allowed && !answer.Status.Denied
	r.known.Put(key, allowed, lifetime(allowed, allowedFor, deniedFor))
	return allowed, nil
}

// keyOf represents all of who and access, unambiguously: JSON quotes what it separates.
func keyOf(who Identity, access Access) (accessKey, error) {
	who.Groups = slices.Sorted(slices.Values(who.Groups))
	text, err := json.Marshal(struct {
		Who    Identity
		Access Access
	}{who, access})
	if err != nil {
		return accessKey{}, errors.New("review the access of a user: the identity is not valid text")
	}
	return sha256.Sum256(text), nil
}

func reviewOf(who Identity, access Access) *authorizationv1.SubjectAccessReview {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: who.User, UID: who.UID, Groups: who.Groups,
	}}
	if access.Path != "" {
		review.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: access.Path, Verb: access.Verb}
	} else {
		review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Group: cmp.Or(access.Group, Group), Version: "v1", Resource: access.Resource, Verb: access.Verb,
			Name: cmp.Or(access.Member, access.Name), Namespace: access.Namespace,
		}
	}
	if len(who.Extra) > 0 {
		review.Spec.Extra = make(map[string]authorizationv1.ExtraValue, len(who.Extra))
		for key, values := range who.Extra {
			review.Spec.Extra[key] = values
		}
	}
	return review
}

// lifetime is how long an answer is remembered: a yes longer than a no.
func lifetime(answer bool, yes, no time.Duration) time.Duration {
	if answer {
		return yes
	}
	return no
}
