package plan

import "github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"

// Skews returns the skews of a topology spread over both capacity types, and over each.
func Skews(s Spread, pods []*Pod) (all, spot, onDemand int) {
	u := newUnbalance([]Spread{s}, pods)
	return u[0].all.skew(), u[0].spot.skew(), u[0].onDemand.skew()
}

// Fits returns the domains in which one more pod of a capacity type keeps a topology spread, and how many pods of that type each
// domain has.
func Fits(s Spread, pods []*Pod, capacityType capacity.Type) (fits []int, counts []int32) {
	u := newUnbalance([]Spread{s}, pods)
	own, _ := u[0].counted(capacityType)
	for at := range s.Domains {
		if s.Domains[at].has(capacityType) && int(own.counts[at])+1-own.few <= s.MaxSkew {
			fits = append(fits, at)
		}
	}
	return fits, u[0].of(capacityType).counts
}
