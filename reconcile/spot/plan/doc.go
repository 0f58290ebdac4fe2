// Package plan decides what a workload needs now: which of its pods are evicted or released, and which get another slot.
//
// [Plan] takes what was observed of a workload ([Observed]), its policy and the time, and returns a [Result]; [Finish] ends what
// was begun of a workload that is not enabled any more. Nothing here does I/O, asks for the time or draws a random number: the
// same input has the same result, and of a workload that is as it should be nothing is wanted. So the reconciler, the API's
// explain and what-if calls, the property tests and a replay all get the same answer.
//
//   - pod.go, observed.go, interruption.go, release.go: the words that plans are made of ([Pod], [Observed], [Result], [Interruption], [Released]);
//   - plan.go: the order of the parts ([Plan], [Finish]);
//   - urgent.go, dry.go, floor.go: pods of nodes that go, pods that wait for capacity, and the floor that stands meanwhile;
//   - finish.go: the end of releases;
//   - moves.go, victims.go, advice.go, pace.go, rollout.go, window.go, leave.go, contradiction.go, fleet.go: which replicas are moved for
//     the mix, in which order, how many at a time, and what they wait for;
//   - assign.go: which pods get another slot or deletion cost;
//   - search.go: when pods without a slot are searched for ([Search]);
//   - spread.go, spread_count.go, spread_order.go, spread_report.go: topology spread over both capacity types ([Spread]);
//   - ceiling.go, granted.go: how many of the planned moves may start, over many workloads ([Ceiling]);
//   - explain.go: a plan in plain sentences ([Explain]).
//
// It imports capacity and policy; package slots builds on it.
package plan
