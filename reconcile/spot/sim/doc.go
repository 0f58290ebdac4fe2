// Package sim is a model of a member, for tests of what decides about placement: the real plans, accountings and decisions about
// insufficient capacity, over a cluster whose API server, controllers, scheduler, kubelets and autoscaler are the model's. Nothing
// outside of tests imports it.
//
//   - cluster.go, control.go, nodes.go, scaler.go, budgets.go: the truth: workloads and their controllers, a scheduler and kubelets, an
//     autoscaler with a start time, disruption budgets and the Eviction API ([Cluster]);
//   - hub.go, observe.go, act.go: the shell around the core, which sees the truth late and may be restarted or taken over from at
//     any moment ([Hub]);
//   - check.go: what must hold at every write.
//
// Randomness comes from a seed, and time from the model: a run can be repeated. Fields of [Cluster] and [Hub] say how hard the
// world is: what is lost, late, refused or hangs, and whether everybody acts in turn (orderly) or in any order. Tests let it run
// by itself, with everybody acting at every moment, or step by step. They are those of all parts together.
package sim
