package shares

import (
	"hash/maphash"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// pacesOfAll is how many rates there are for all addresses. Two addresses can share one by chance, and one of them then waits for what the other
// does: with 5,000 addresses, one shares that of a given other one.
const pacesOfAll = 4096

// Paces are rates of addresses. Each takes memory from its first use on. Safe for concurrent use.
type Paces struct {
	seed  maphash.Seed
	limit rate.Limit
	burst int
	paces [pacesOfAll]atomic.Pointer[rate.Limiter]
}

// NewPaces are the rates of all addresses. Each allows perSecond a second after burst at once.
func NewPaces(perSecond, burst int) *Paces {
	return &Paces{seed: maphash.MakeSeed(), limit: rate.Limit(perSecond), burst: burst}
}

// Of is the rate of an address.
func (p *Paces) Of(address netip.Addr) *rate.Limiter {
	pace := &p.paces[maphash.Comparable(p.seed, address)%pacesOfAll]
	if limiter := pace.Load(); limiter != nil {
		return limiter
	}
	pace.CompareAndSwap(nil, rate.NewLimiter(p.limit, p.burst))
	return pace.Load()
}

// Charge counts n more of an address without a wait. It adds nothing to a wait that is as long as the longest: whoever would have to wait for
// longer is turned away instead.
func (p *Paces) Charge(address netip.Addr, n int, longest time.Duration) {
	pace, now := p.Of(address), time.Now()
	if pace.TokensAt(now) > -float64(pace.Limit())*longest.Seconds() {
		pace.ReserveN(now, n)
	}
}
