// Package hub is the composition root: it reads the configuration and puts members, queues, spot placement, webhook, API
// and the servers of one replica together.
//
// Start with hub.go (what is built, and in which order it starts and stops); package config is the configuration with
// every default; ownership.go says which replica may act on a member, package leadership until when; modules.go takes
// in reconcilers, those of others too; peers.go is how replicas talk.
//
// The rest, in the order in which a hub starts: main.go reads flags, surroundings.go sets up the process, options.go derives what each part
// is told, scheme.go which kinds there are, hub_build.go makes the parts, hub_run.go runs and stops them. listeners.go takes the
// addresses; publish.go tells clients whom to trust; scrape.go serves metrics, health.go the probes. adapters.go shows one part to
// another; gates.go holds the queues of members that are not ours, detach.go gives up those that are gone; reach.go, tenancy.go and
// tokens.go (tokens_metrics.go) are about single members; fleet.go makes what keeps fleet placements, webpage.go the web page, and
// happenings.go notes what happens for the API.
//
// # What assumes one owner of all members
//
// Whoever asks who acts names a member: gates, routes (webhook and API), Events about registrations, the fence and the count of
// writes, the peers' connections. Two members may have different owners as far as these are concerned. What still has one
// owner of everything, and changes when members are shared out (docs/decisions/0013), is this and nothing else:
//
//   - leadership.Lease answers for all members alike, for there is one Lease: Owner, Mine, MayWrite and BeginWrite ignore the name.
//   - It contends for that Lease: awaitWrites ends the writes to all members before it is given up (writes.stop would end
//     those to one), mayTake asks whether all members are warm.
//   - [Hub.Run] stops in one order for all: reconcile.Runtime.Retire, Drain (DrainMember is for one), then the Lease.
//   - Hub.warmed and the metric plimsoll_owner ask MineAny: whether this replica owns anything.
//   - spot.Ceiling counts the moves of all members in this process; spot.Options.Moves takes another spot.MoveBudget, such as
//     one with a share of the limit.
//   - Reservations and receipts live in the owner's memory. Both are kept by member, and neither is handed over: a new owner
//     begins with a live list, and forgets receipts.
//
// It never decides anything about a workload, and never writes to a member. It and package config are the
// only ones that read the environment.
package hub
