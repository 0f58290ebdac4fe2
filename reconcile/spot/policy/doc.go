// Package policy says what the labels and annotations of a workload and its namespace mean for its placement. It is pure: it
// calls no API and asks for no time.
//
//   - keys.go, workload_key.go: the keys of labels and annotations, and the names of workloads ([Keys], [Enabled], [WorkloadKey]);
//   - policy.go: the values, each from the nearest level that has it, and what is wrong with them ([Parse]);
//   - mix.go, cost.go: how many replicas go where, which slot is spot, and what a slot's pod costs to delete ([Mix], [Split]);
//   - fleet.go: what takes the place of the mix under a fleet placement ([FleetSplit]);
//   - modes.go, moves.go: what may be switched on, and how replicas are moved ([Modes], [Strategy], [MoveLimit]);
//   - window.go, timezone.go: when replicas may be moved ([Window]).
package policy
