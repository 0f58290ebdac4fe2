package calls

import (
	"context"
	"hash/maphash"
	"time"

	"golang.org/x/time/rate"
)

const (
	// refusalRate is how many calls of one member are refused at once a second. API servers send hardly any call that is refused.
	refusalRate = 10
	// RefusalBurst is how many are refused at once before that counts.
	RefusalBurst = 20
	// paces is how many there are for all members: some share one, by chance.
	paces = 256
	// refusalDelay is how much later the refusal of each further call is sent.
	refusalDelay = time.Second
)

// Refusals delays what the hub answers to calls that it refuses, once there are many of one member: a refusal often ends its
// connection, and the TLS handshake of the next one costs more than the call. Only refusals wait, so calls that are answered
// never do. Nil delays nothing. Safe for concurrent use.
type Refusals struct {
	seed  maphash.Seed
	paces [paces]*rate.Limiter
}

// NewRefusals knows of no refusal yet.
func NewRefusals() *Refusals {
	r := &Refusals{seed: maphash.MakeSeed()}
	for i := range r.paces {
		r.paces[i] = rate.NewLimiter(refusalRate, RefusalBurst)
	}
	return r
}

// Wait returns when the refusal of a call may be sent, or when ctx ends. Of is the member that the call names, whose token may be
// wrong: members that nobody registered share the paces of those that exist, and delay nothing but refusals.
func (r *Refusals) Wait(ctx context.Context, of string) {
	if r == nil || r.Pace(of).Allow() {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(refusalDelay):
	}
}

// Pace is that of the refusals of a member.
func (r *Refusals) Pace(of string) *rate.Limiter { return r.paces[maphash.String(r.seed, of)%paces] }
