package auth

import (
	"context"
	"maps"
	"slices"
)

// Identity is who calls.
type Identity struct {
	User, UID string
	Groups    []string
	Extra     map[string][]string
	// Connection distinguishes callers where all have one name, for their limits and nothing else; "": names do.
	Connection string `json:"-"`
}

// Share is what limits of a caller are counted for.
func (i Identity) Share() string {
	if i.Connection == "" {
		return i.User
	}
	return i.User + "\x00" + i.Connection
}

// SameRights reports whether two identities of one user have the same groups, in any order, and the same extra values, so that an
// authorizer decides alike about them.
func (i Identity) SameRights(as Identity) bool {
	return slices.Equal(slices.Sorted(slices.Values(i.Groups)), slices.Sorted(slices.Values(as.Groups))) &&
		maps.EqualFunc(i.Extra, as.Extra, slices.Equal)
}

// Authenticator reports who a bearer token belongs to. Safe for concurrent use.
type Authenticator interface {
	// Authenticate returns the identity behind token, [ErrBadToken] when there is none, or another error when that cannot
	// be found out now. Neither error nor identity carries the token.
	Authenticate(ctx context.Context, token string) (Identity, error)
}

// Access is what a call needs: a verb on a resource of the group api.plimsoll.dev, or of another one.
type Access struct {
	// Group of the resource; "" means api.plimsoll.dev.
	Group string
	// Verb is get, list or requeue; Resource is clusters, workloads, objects or events.
	Verb, Resource string
	// Member is the resource's name; "" means that of every member.
	Member string
	// Namespace in the member, or in the hub cluster where Group is another one; "" means all of them.
	Namespace string
	// Name of the resource where that is no member; "" means any.
	Name string
	// Path is that of what is no resource of the group, such as /metrics; Verb counts beside it, and nothing else.
	Path string
}

// Authorizer reports whether somebody has an access. Safe for concurrent use.
type Authorizer interface {
	// Allowed returns the answer, or an error when that cannot be found out now.
	Allowed(ctx context.Context, who Identity, access Access) (bool, error)
}
