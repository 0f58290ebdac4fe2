// Package hub is the composition root: it reads the configuration and connects the members, queues, spot placement, webhook, API
// and servers of one replica.
//
// Start with hub.go (what is built, and in which order it starts and stops); package config is the configuration with
// every default; ownership.go says which replica may act on a member, package leadership until when; modules.go adds
// reconcilers, also those of others; peers.go connects replicas.
//
// The rest, in the order in which a hub starts: main.go reads flags, surroundings.go sets up the process, options.go derives the options of
// each part, scheme.go lists the kinds, hub_build.go builds the parts, hub_run.go runs and stops them. listeners.go opens the
// addresses; publish.go publishes the authority that clients trust; scrape.go serves metrics, health.go the probes. adapters.go connects one part to
// another; holds.go holds the queues of members with another owner, detach.go detaches those that are gone; reach.go, tenancy.go and
// tokens.go (tokens_metrics.go) are about single members; fleet.go builds fleet placement, webpage.go the web page, and
// events.go records events for the API.
//
// # What assumes one owner of all members
//
// Every question about the owner names a member: holds, routes (webhook and API), Events about registrations, the fence and the count of
// writes, the peers' connections. Two members may have different owners as far as these are concerned. What still has one
// owner of everything, and changes when members are shared out (docs/decisions/0013), is only this:
//
//   - leadership.Lease answers for all members alike, because there is one Lease: Owner, Mine, MayWrite and BeginWrite ignore the name.
//   - It contends for that Lease: awaitWrites ends the writes to all members before it is released (writes.stop would end
//     those to one), mayTake asks whether all members are warm.
//   - [Hub.Run] stops in one order for all: reconcile.Runtime.Retire, Drain (DrainMember is for one), then the Lease.
//   - Hub.warmed and the metric plimsoll_owner ask MineAny: whether this replica owns anything.
//   - spot.Ceiling counts the moves of all members in this process; spot.Options.Moves takes another spot.MoveBudget, such as
//     one with a share of the limit.
//   - Reservations and operations live in the owner's memory. Both are kept by member, and neither is handed over: a new owner
//     starts with a live list, and without operations.
//
// It never decides anything about a workload, and never writes to a member. It and package config are the
// only ones that read the environment.
package hub
