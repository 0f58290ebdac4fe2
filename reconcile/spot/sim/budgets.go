package sim

import (
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
)

// Budget is a PodDisruptionBudget over all pods of a workload.
type Budget struct {
	name                   string
	minimum, maximum       int // minAvailable if it is not negative, else maxUnavailable
	percent, always        bool
	allowed, healthy, want int // status
}

func (b *Budget) count(expected int, pods []*Pod) {
	scaled := func(n int) int {
		if b.percent {
			return (expected*n + 99) / 100
		}
		return n
	}
	b.want = max(expected-scaled(b.maximum), 0)
	if b.minimum >= 0 {
		b.want = scaled(b.minimum)
	}
	b.healthy = 0
	for _, p := range pods {
		if p.Ready && p.GoneBy.IsZero() {
			b.healthy++
		}
	}
	b.allowed = max(b.healthy-b.want, 0)
}

// evict is the Eviction API: it reports whether the pod goes, or was gone.
func (c *Cluster) evict(e plan.Eviction) (done, refused bool) {
	p := c.pods[e.Pod]
	if p == nil || !p.GoneBy.IsZero() {
		return true, false
	}
	if e.Version != 0 && e.Version != p.Version {
		return false, false
	}
	if c.rand.Float64() < c.denies {
		return false, true
	}
	budgets := p.set.budgets
	if p.node != nil && len(budgets) > 1 {
		return false, true
	}
	if p.node != nil && len(budgets) == 1 {
		b := budgets[0]
		unready := !p.Ready && (b.always || (b.healthy >= b.want && b.want > 0))
		if !unready && b.allowed == 0 {
			return false, true
		}
		if !unready {
			b.allowed--
		}
	}
	c.end(p)
	return true, false
}
