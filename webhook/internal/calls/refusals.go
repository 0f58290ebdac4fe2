package calls

import (
	"hash/maphash"
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"github.com/plimsoll-dev/plimsoll/internal/shares"
)

const (
	// refusalRate is how many calls of one member are refused a second. API servers send hardly any call that is refused.
	refusalRate = 5
	// RefusalBurst is how many are refused at once before that counts.
	RefusalBurst = 20
	// maxRefusalDelay is how much later a refusal is sent at most. API servers give up after 2 s.
	maxRefusalDelay = 4 * time.Second
	// maxRefusalDebt is how many refusals wait for that long.
	maxRefusalDebt = refusalRate * int(maxRefusalDelay/time.Second)
	// paces is how many there are for all members: some share one, by chance.
	paces = 256
)

// Refusals delays what the hub answers to calls that it refuses, once there are many of one member: they are then sent one after the
// other. A refusal often ends its connection, and the TLS handshake of the next one, and what its sender writes before it reads the
// refusal, cost more than the call. Only refusals wait, so calls that are answered never do. Nil delays nothing. Safe for concurrent use.
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

// Wait returns when the refusal of a call may be sent, or when its context ends. Of is the member that the call names, whose token may
// be wrong: members that nobody registered share the paces of those that exist, and delay nothing but refusals. While a refusal waits,
// the server keeps nothing of a body that has not been read: over HTTP/2 that would be as much as a connection may have, for each.
//
// From the refusal on, what else the call's connection sends is read as that of a stranger, see [shares.Strangers]. Over HTTP/2 that is all:
// calls that wait would take memory, hundreds on a connection.
func (r *Refusals) Wait(call *http.Request, of string) {
	from := shares.Caller(call.Context())
	paced := shares.Refused(from)
	if paced && call.ProtoMajor == 2 || r == nil {
		return
	}
	shares.Excused(from) // a refusal often ends the connection, and waits for that
	delay := r.delay(of)
	if delay == 0 {
		return
	}
	if call.ProtoMajor == 2 { // one of HTTP/1 stays in the kernel, and closing it would read it
		_ = call.Body.Close()
	}
	select {
	case <-call.Context().Done():
	case <-time.After(delay):
	}
}

// delay is how much later the refusal of a call is sent.
func (r *Refusals) delay(of string) time.Duration {
	now, pace, delay := time.Now(), r.Pace(of), maxRefusalDelay
	if pace.TokensAt(now) > -float64(maxRefusalDebt) { // more would still wait when their sender behaves well again
		delay = min(delay, pace.ReserveN(now, 1).DelayFrom(now))
	}
	return delay
}

// Pace is that of the refusals of a member.
func (r *Refusals) Pace(of string) *rate.Limiter { return r.paces[maphash.String(r.seed, of)%paces] }
