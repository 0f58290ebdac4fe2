// Package spot keeps the replicas of enabled workloads where their policy wants them: a share on spot capacity, and never
// fewer than a floor on on-demand capacity.
//
// It has a pure core and a thin shell. The core never does I/O, never asks for the time and never draws a random number,
// so the reconciler, the webhook, the API, the property tests and a replay all get the same answer from it:
//
//   - keys.go, policy.go, window.go: what labels and annotations mean ([policy.Enabled], [policy.Parse], [policy.Window]);
//   - capacity.go: what node labels, selectors and affinities say about capacity ([capacity.Labels]);
//   - steering.go, affinity.go: how a member's pods are sent to a capacity type, by what its nodes carry ([capacity.Steering]);
//   - formula.go: how many replicas go where, and which slot is spot ([policy.Mix], [policy.Split]);
//   - pod.go, observed.go: the words that plans are made of ([Pod], [Observed], [PlanResult]);
//   - plan.go, plan_urgent.go, plan_finish.go, plan_moves.go, plan_victims.go, plan_leave.go, plan_stamps.go, explain.go: what a workload needs now
//     ([Plan], [Finish]);
//   - shape.go, shape_of.go, drought.go, verdicts.go, probe.go: for which pods spot has no room, and what finds out when it has
//     again ([shortage.Tracker]);
//   - doom.go, release.go: pods that run and are no supply any more ([Doom], [Released]);
//   - ceiling.go: how many of the planned moves may start ([Ceiling]);
//   - accounting.go, reserve.go, ordinals.go, reservation.go, slots.go: which slot and capacity type a new pod gets, and why
//     the floor stands ([Accounting]);
//   - admit.go, patch.go: the patch that puts it there ([Patcher]).
//
// The shell feeds the core from informers and does what it says.
//
// The package never deletes a pod: it evicts, through the API that honours disruption budgets. It never decides by labels
// which pods belong to a workload, only by controller references.
package spot
