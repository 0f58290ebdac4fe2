package plan

import (
	"slices"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
)

// unbalance counts the replicas of an owner by the domains of its topology spread constraints, as the scheduler does, while some
// are taken away.
type unbalance []unbalanced

// unbalanced is one constraint, with the replicas of both types and those of each.
type unbalanced struct {
	*Spread

	all, spot, onDemand domainCount
}

// newUnbalance counts pods that run; nil where there is nothing to keep in balance.
func newUnbalance(spreads []Spread, pods []*Pod) unbalance {
	if len(spreads) == 0 {
		return nil
	}
	u := make(unbalance, len(spreads))
	for i := range u {
		s := &spreads[i]
		u[i] = unbalanced{Spread: s,
			all:      newDomainCount(s, func(d *Domain) bool { return s.Together || d.Spot || d.OnDemand }),
			spot:     newDomainCount(s, func(d *Domain) bool { return d.Spot }),
			onDemand: newDomainCount(s, func(d *Domain) bool { return d.OnDemand })}
		for _, pod := range pods {
			if at := pod.domain(i); at >= 0 {
				u[i].all.counts[at]++
				u[i].of(pod.Capacity).counts[at]++
			}
		}
		for _, count := range []*domainCount{&u[i].all, &u[i].spot, &u[i].onDemand} {
			count.weigh()
		}
	}
	return u
}

// domain returns in which domain of the owner's i-th constraint a pod runs; negative: in none.
func (p *Pod) domain(i int) int {
	if i >= len(p.Domains) {
		return -1
	}
	return int(p.Domains[i])
}

func (c *unbalanced) of(capacityType capacity.Type) *domainCount {
	switch capacityType {
	case capacity.Spot:
		return &c.spot
	case capacity.OnDemand:
		return &c.onDemand
	}
	return &c.all
}

// counted returns the replicas that the scheduler counts for a pod of a capacity type, and the others.
func (c *unbalanced) counted(capacityType capacity.Type) (own, other *domainCount) {
	if c.Together {
		return &c.all, c.of(capacityType)
	}
	return c.of(capacityType), &c.all
}

// keeps reports whether every skew stays within its bound when a pod goes.
func (u unbalance) keeps(pod *Pod) bool {
	for i := range u {
		own, _ := u[i].counted(pod.Capacity)
		if at := pod.domain(i); at >= 0 && own.skewWithout(at) > u[i].MaxSkew {
			return false
		}
	}
	return true
}

// weights reports how full the domains of a pod are, constraint by constraint: the higher, the sooner one of their pods goes.
func (u unbalance) weights(pod *Pod) (w [2 * capacity.MaxSpreads]int32) {
	for i := range u {
		own, other := u[i].counted(pod.Capacity)
		if at := pod.domain(i); at >= 0 {
			w[2*i], w[2*i+1] = own.counts[at], other.counts[at]
		}
	}
	return w
}

// remove takes a pod away.
func (u unbalance) remove(pod *Pod) {
	for i := range u {
		at := pod.domain(i)
		if at < 0 {
			continue
		}
		u[i].all.remove(at)
		if pod.Capacity != capacity.Unknown {
			u[i].of(pod.Capacity).remove(at)
		}
	}
}

// blocks returns the constraint by which no node of a capacity type could take the replacement of a pod, and the domains that it
// leaves; nil: none does. Where the type has no nodes yet, nobody knows.
func (u unbalance) blocks(pod *Pod, to capacity.Type) (by *Spread, left []string) {
	for i := range u {
		at := pod.domain(i)
		if !u[i].Together || at < 0 || !slices.ContainsFunc(u[i].Domains, func(d Domain) bool { return d.has(to) }) {
			continue
		}
		fewest := u[i].all.fewestWithout(at)
		left = left[:0]
		for j := range u[i].Domains {
			count := int(u[i].all.counts[j])
			if j == at {
				count--
			}
			if count+1-fewest > u[i].MaxSkew {
				continue
			}
			if u[i].Domains[j].has(to) {
				left = nil
				break
			}
			left = append(left, u[i].Domains[j].Name)
		}
		if len(left) > 0 {
			return u[i].Spread, left
		}
	}
	return nil, nil
}

// cost is how much there is to compare for one pod.
func (u unbalance) cost() int {
	n := 1
	for i := range u {
		if u[i].Together { // see blocks
			n += len(u[i].Domains)
		}
	}
	return n
}

// domainCount counts replicas by domain. Taking one away costs the same whatever the number of domains.
type domainCount struct {
	counts    []int32
	counting  []bool  // domains whose nodes count
	having    []int32 // how many domains that count have so many replicas
	most, few int
	none      bool // there are fewer domains than the constraint asks for: the fewest counts as none
}

func newDomainCount(s *Spread, counts func(*Domain) bool) domainCount {
	c := domainCount{counts: make([]int32, len(s.Domains)), counting: make([]bool, len(s.Domains))}
	n := 0
	for i := range s.Domains {
		if c.counting[i] = counts(&s.Domains[i]); c.counting[i] {
			n++
		}
	}
	c.none = n < s.MinDomains
	return c
}

// weigh finds the most and the fewest.
func (c *domainCount) weigh() {
	first := true
	for i, n := range c.counts {
		if !c.counting[i] {
			continue
		}
		if first {
			c.few, first = int(n), false
		}
		c.most, c.few = max(c.most, int(n)), min(c.few, int(n))
	}
	c.having = make([]int32, c.most+1)
	for i, n := range c.counts {
		if c.counting[i] {
			c.having[n]++
		}
	}
	if c.none {
		c.few = 0
	}
}

func (c *domainCount) skew() int { return c.most - c.few }

// fewestWithout is the fewest when one more replica of a domain is gone.
func (c *domainCount) fewestWithout(at int) int {
	if !c.counting[at] {
		return c.few
	}
	return max(min(c.few, int(c.counts[at])-1), 0)
}

// skewWithout is the skew when one more replica of a domain is gone.
func (c *domainCount) skewWithout(at int) int {
	most := c.most
	if n := int(c.counts[at]); c.counting[at] && n == most && n > 0 && c.having[n] == 1 {
		most--
	}
	return most - c.fewestWithout(at)
}

func (c *domainCount) remove(at int) {
	n := c.counts[at]
	if n == 0 {
		return
	}
	c.counts[at]--
	if !c.counting[at] {
		return
	}
	c.few = min(c.few, int(n)-1)
	c.having[n]--
	c.having[n-1]++
	if int(n) == c.most && c.having[n] == 0 {
		c.most--
	}
}
