// Package api serves the hub's API: gRPC with reflection and health, and the same calls as REST beside it.
//
// A call comes in on either listener, is authenticated (TokenReview), checked against the rules of its .proto file, and
// authorized (SubjectAccessReview) for the member that it names. Reads of clusters, workloads, events and the ledger, and orders
// to requeue, are answered by the replica that owns the member: this one, or another one that is asked over an internal
// connection. What could not be asked is named in the answer.
//
// Where to look:
//
//   - options.go, ports.go: what the hub hands in, and what the calls need of it.
//   - server.go, streams.go: the listeners, and which streams there are; guard.go lets scrapers of metrics in.
//   - chain.go, about.go, observe.go: what every call goes through, which version answers it, how it is counted and logged. Package
//     auth knows who calls and what they may do, package limits what one caller may take.
//   - rules.go: what each call needs.
//   - owners.go, peer.go: who is asked about a member, and how other replicas are.
//   - listing.go, listing_owner.go, listing_ranked.go, gather.go: lists, by name and in another order; package lists has filters, orders,
//     pages and read masks. partition.go, candidates.go: what lists are cut into, and which members are left to look at.
//   - clusters.go, workloads.go, workload_message.go, pods.go, whatif.go, objects.go, object_lists.go, operations.go, operation_lists.go,
//     events.go: the calls; requeue_matching.go, batches.go: a requeue of all that matches.
//   - fleet.go, fleet_ask.go, fleet_message.go, fleet_hidden.go: the calls on FleetPlacements.
//   - watch_calls.go, watch.go, feed.go, feed_refresh.go, repeat.go: watches.
//
// Package rest is the REST side, which calls the same methods through package inprocess; package apierror makes what callers get as
// errors, package wire encodes once what goes to many watchers.
//
// It never writes to a cluster, never passes a caller's token on, and decides nothing about members or workloads.
package api
