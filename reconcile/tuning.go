package reconcile

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/retry"
)

const (
	defaultFinalizeDeadline = 10 * time.Minute
	defaultStalledRetry     = time.Minute
)

// tuning has the times and rates that a builder was given; zero: the default.
type tuning struct {
	backoffFirst, backoffMost time.Duration
	perSecond                 float64 // 0: no limit
	burst                     int
	finalizeDeadline          time.Duration
	stalledRetry              *time.Duration
}

// pace is how fast keys are tried again; statusObject says whether they are of a kind whose status the framework keeps.
func (t *tuning) pace(statusObject bool) retry.Pace {
	p := retry.Pace{First: cmp.Or(t.backoffFirst, retry.First), Most: cmp.Or(t.backoffMost, retry.Most)}
	switch {
	case t.stalledRetry != nil:
		p.Stalled = *t.stalledRetry
	case statusObject:
		p.Stalled = defaultStalledRetry
	}
	return p
}

func (t *tuning) rateLimit() rateLimit { return rateLimit{perSecond: t.perSecond, burst: t.burst} }

// marks are the names under which a controller is found in the objects that it writes.
type marks struct {
	finalizer string // on objects that it must clean up after
	manager   string // of the fields that it applies
	applied   string // the annotation with the hash of what it applied last
}

// Domain has what the controller leaves in members carry a domain of its author's, as "example.com": the finalizer
// "<domain>/<controller>", the field manager "<controller>.<domain>", and the annotation "applied.<domain>/<controller>". Default:
// plimsoll.dev, with the field manager "plimsoll-<controller>". A controller whose domain changes leaves its finalizers behind,
// as one does whose name changes.
func (b *Builder[T]) Domain(domain string) *Builder[T] {
	if domain == "" {
		b.fail("Domain is empty: it must be a DNS name, as in example.com")
	}
	b.domain = domain
	return b
}

func (b *Builder[T]) checkDomain() {
	if problems := validation.IsDNS1123Subdomain(b.domain); b.domain != "" && len(problems) > 0 {
		b.fail("Domain is %q: it must be a DNS name, as in example.com", b.domain)
	}
}

func (b *Builder[T]) marks() marks {
	if b.domain == "" {
		return marks{finalizer: "plimsoll.dev/" + b.name, manager: "plimsoll-" + b.name, applied: "applied.plimsoll.dev/" + b.name}
	}
	return marks{finalizer: b.domain + "/" + b.name, manager: b.name + "." + b.domain, applied: "applied." + b.domain + "/" + b.name}
}
