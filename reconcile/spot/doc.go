// Package spot keeps the replicas of enabled workloads where their policy wants them: a share on spot capacity, and never
// fewer than a floor on on-demand capacity.
//
// It has a pure core and a thin shell. The core has no I/O, no clock and no randomness,
// so the reconciler, the webhook, the API, the property tests and a replay all get the same answer from it. Its parts are
// packages of their own, which import further down only: capacity (types of capacity, steering, scheduling requirements), policy
// (labels, annotations, the mix), plan (what a workload needs now), slots (which slot and capacity type a new pod gets), admission
// (the patch that puts it there) and shortage (insufficient capacity). Packages nodes and report are not pure: nodes keeps what is known about
// a member's nodes, report what the API, metrics and Events show of workloads.
//
// This package is the shell: it feeds the core from informers and carries out its plans:
//
//   - engine.go, member.go, acting.go: the state of the hub and of each member ([Engine]);
//   - controllers.go, controller.go, mappers.go: reconcilers, and which events wake them;
//   - kinds.go, workloads.go, shapes.go, excluded.go, access.go: what is cached of which kinds, and the rights for it;
//   - directory.go, directory_owners.go, follow.go, live.go: workloads and the owners of pods, as events show them;
//   - observe.go, podmemos.go, supply.go, contradiction.go, spread_observe.go, unlabelled.go, undecided.go, pdbs.go: what a plan is made from;
//   - nodes.go: what nodes mean for pods, and whom they wake;
//   - acts.go, evict.go, assign.go, releases.go, released.go, orphans.go, denials.go: actions and their results;
//   - placement.go, proof.go: new pods ([Engine.Place]);
//   - probes.go: the pods that ask whether there is room again;
//   - fleet.go: the splits that fleet placements set, and the view that they get ([Engine.SetFleetSplits], [FleetView]);
//   - publish.go, events.go, not_enabled.go: what the hub publishes about plans, events and workloads that are not placed ([Event]).
//
// The package never deletes a pod: it evicts, through the API that honours disruption budgets. It never decides by labels
// which pods belong to a workload, only by controller references.
package spot
