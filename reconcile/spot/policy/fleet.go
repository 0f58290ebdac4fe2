package policy

import "slices"

// FleetSplit is what a fleet placement wants of a workload in a member. It takes the place of percentage and floor.
type FleetSplit struct {
	// Replicas that the member is to have. The workload's spec asks for as many as soon as the fleet placement has written it.
	Replicas int
	// OnDemand of them are on on-demand capacity, and the others on spot.
	OnDemand int
	// Exchanges is how many pods of a StatefulSet spot placement may move to the other capacity type to get there. Nothing else is moved
	// for the mix under a split: pods of a type that is wanted come first, and those that are too many go when the workload shrinks.
	Exchanges int
}

// Under returns the policy as it is under a split; nil changes nothing.
func (p Policy) Under(s *FleetSplit, keys Keys) Policy {
	if s == nil {
		return p
	}
	all, floor := 100, s.OnDemand
	p.Percentage, p.PercentageSource = &all, SourceFleet
	p.MinOnDemand, p.MinOnDemandSource = &floor, SourceFleet
	p.Problems = slices.DeleteFunc(slices.Clone(p.Problems), func(found Problem) bool {
		return slices.Contains([]string{keys.SpotPercentage(), keys.MinOnDemand(), PathPercentage, PathMinOnDemand}, found.Key)
	})
	p.Fleet = s
	return p
}
