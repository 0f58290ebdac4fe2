package shares

import (
	"hash/maphash"
	"net/netip"
	"time"

	"golang.org/x/time/rate"
)

// Paces are rates of addresses, some of which share one by chance. Safe for concurrent use.
type Paces struct {
	seed  maphash.Seed
	paces []*rate.Limiter
}

// NewPaces are so many rates for all addresses. Each allows perSecond a second after burst at once.
func NewPaces(paces, perSecond, burst int) *Paces {
	p := &Paces{maphash.MakeSeed(), make([]*rate.Limiter, paces)}
	for i := range p.paces {
		p.paces[i] = rate.NewLimiter(rate.Limit(perSecond), burst)
	}
	return p
}

// Of is the rate of an address.
func (p *Paces) Of(address netip.Addr) *rate.Limiter {
	return p.paces[maphash.Comparable(p.seed, address)%uint64(len(p.paces))]
}

// Charge counts n more of an address without a wait. It adds nothing to a wait that is as long as the longest: whoever would have to wait for
// longer is turned away instead.
func (p *Paces) Charge(address netip.Addr, n int, longest time.Duration) {
	pace, now := p.Of(address), time.Now()
	if pace.TokensAt(now) > -float64(pace.Limit())*longest.Seconds() {
		pace.ReserveN(now, n)
	}
}
