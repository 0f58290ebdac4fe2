package clusters

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// ErrNotOwner is wrapped by the errors of writes that the fence stopped.
var ErrNotOwner = errors.New("write refused, this replica does not own the member now")

// FenceFunc is a [Fence] made of a function.
type FenceFunc func(member string) error

// MayWrite calls f.
func (f FenceFunc) MayWrite(member string) error { return f(member) }

// fenced stops the writes to member that fence does not let pass. It stands as close to the wire as can be: what waits
// for the budget, waits in front of it.
func fenced(member string, fence Fence, next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if isWrite(req) {
			if err := fence.MayWrite(member); err != nil {
				return nil, fmt.Errorf("member %s: %w: %w", member, ErrNotOwner, err)
			}
		}
		return next.RoundTrip(req)
	})
}

// isWrite tells whether req may change the member. Access reviews are questions, though they are POSTed.
func isWrite(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	case http.MethodPost:
		return !isAccessReview(req.URL.Path)
	}
	return true
}

// isAccessReview tells whether path ends in apis/authorization.k8s.io/<version>/<something>reviews, or the namespaced
// form of it. The URL of a server may have a path of its own in front.
func isAccessReview(path string) bool {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	n := len(segments)
	switch {
	case n >= 4 && segments[n-4] == "apis" && segments[n-3] == "authorization.k8s.io":
	case n >= 6 && segments[n-6] == "apis" && segments[n-5] == "authorization.k8s.io" && segments[n-3] == "namespaces":
	default:
		return false
	}
	return strings.HasSuffix(segments[n-1], "reviews")
}
