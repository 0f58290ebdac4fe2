// Package spot keeps the replicas of enabled workloads where their policy wants them: a share on spot capacity, and never
// fewer than a floor on on-demand capacity.
//
// It has a pure core and a thin shell. The core never does I/O, never asks for the time and never draws a random number,
// so the reconciler, the webhook, the API, the property tests and a replay all get the same answer from it. Its parts are
// packages of their own, which import further down only: capacity (types of capacity, steering, scheduling requirements), policy
// (labels, annotations, the mix), plan (what a workload needs now) and shortage (insufficient capacity). The rest is here:
//
//   - accounting.go, reserve.go, ordinals.go, reservation.go, reservations.go, slots.go, takeover.go: which slot and capacity
//     type a new pod gets, and why the floor stands ([Accounting]);
//   - admit.go, admit_spread.go, patch.go: the patch that puts it there ([Patcher]).
//
// The shell feeds the core from informers and does what it says:
//
//   - engine.go, member.go, acting.go: what there is once, and once for each member ([Engine]);
//   - controllers.go, controller.go, mappers.go: reconcilers, and which events wake them;
//   - kinds.go, workloads.go, shapes.go, labelled.go, access.go: what is cached of which kinds, and the rights for it;
//   - directory.go, directory_owners.go, follow.go, live.go: workloads and the owners of pods, as events show them;
//   - observe.go, supply.go, contradiction.go, spread_observe.go, unlabelled.go, undecided.go, pdbs.go: what a plan is made from;
//   - nodes.go, node_start.go, node_signs.go, node_claims.go, node_pools.go, census.go, interruptions.go: what nodes tell;
//   - acts.go, evict.go, stamp.go, releases.go, released.go, strays.go, denials.go: what is done, and what comes of it;
//   - placement.go, proof.go: new pods ([Engine.Place]);
//   - probes.go: the pods that ask whether there is room again;
//   - fleet.go: what fleet placements want of workloads, and what they are shown ([Engine.SetFleetSplits], [FleetView]);
//   - view.go, journal.go, happening.go, publish.go, lacks.go, not_enabled.go, whatif.go, metrics.go, series.go: what is shown ([Happening]).
//
// The package never deletes a pod: it evicts, through the API that honours disruption budgets. It never decides by labels
// which pods belong to a workload, only by controller references.
package spot
