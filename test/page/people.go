package page

import (
	"context"
	"sync"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
)

// Admin is the token of somebody who may do everything.
const Admin = "token-of-admin"

// People are those whose tokens the API accepts. They may be used concurrently.
type People struct {
	mu  sync.Mutex
	may map[string]func(auth.Access) bool // by token
}

// NewPeople returns the administrator alone.
func NewPeople() *People {
	return &People{may: map[string]func(auth.Access) bool{Admin: func(auth.Access) bool { return true }}}
}

// Give makes a token one of somebody who may do what may says.
func (p *People) Give(token string, may func(auth.Access) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.may[token] = may
}

// Expire ends a token.
func (p *People) Expire(token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.may, token)
}

// Authenticate implements [auth.Authenticator].
func (p *People) Authenticate(_ context.Context, token string) (auth.Identity, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.may[token] == nil {
		return auth.Identity{}, auth.ErrBadToken
	}
	return auth.Identity{User: token}, nil
}

// Allowed implements [auth.Authorizer].
func (p *People) Allowed(_ context.Context, who auth.Identity, access auth.Access) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	may := p.may[who.User]
	return may != nil && may(access), nil
}
