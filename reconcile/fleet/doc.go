// Package fleet decides how many replicas of a workload run in which member, and on which capacity type: the number of
// replicas, the on-demand floor and the share on spot are the fleet's, and not each member's.
//
// It is pure: it does no I/O, never asks for the time and draws no random number, so a controller, the API's explain and
// what-if, the property tests and the replay of recorded spot capacity (package replay) all get the same answer from it.
//
//   - supply.go: what is known about the members ([Fleet], [Member], [Supply]);
//   - history.go: how start times and lifetimes are learned from what was seen ([History]);
//   - policy.go, policy_bounds.go: what a placement asks for, and the nearest that can be had ([Policy], [Condition]);
//   - result.go: the words that a plan is made of ([Placement], [Result], [Move]);
//   - plan.go: [Plan] and [PlanAll];
//   - split.go, fill.go: which member gets how many;
//   - insure.go: how many replicas beyond the wanted number are worth running;
//   - steps.go, starts.go, stops.go: which of it may be done now, so that nothing goes before its replacement serves;
//   - ordinals.go: the same for StatefulSets, which give up their highest ordinals;
//   - explain.go: the reasons; why.go: what stands in the way of a member, and what the plan would be without it ([Explain]).
//
// The kind FleetPlacement is in v1alpha1, its CRD in crd, what carries plans out in placing, and the replay in replay.
package fleet
