// Package api serves the hub's API: gRPC with reflection and health, and the same calls as REST beside it.
//
// A call comes in on either listener, is authenticated (TokenReview), checked against the rules of its .proto file, and
// authorized (SubjectAccessReview) for the member that it names. Reads of clusters, workloads, events and the ledger, and orders
// to requeue, are answered by the replica that owns the member: this one, or another one that is asked over an internal
// connection. What could not be asked is named in the answer.
//
// Where to look: options.go for what the hub hands in, server.go for the listeners, chain.go for what every call goes
// through (package auth: who calls, and what they may do), rules.go for what each call needs, package limits for what one caller may take,
// owners.go for who is asked, listing.go and gather.go for lists (package
// lists: filters, orders, pages and read masks), partition.go for what they are cut into, clusters.go, workloads.go, pods.go, objects.go,
// receipts.go and events.go for the calls, fleet.go, fleet_ask.go, fleet_message.go and fleet_hidden.go for those on
// FleetPlacements, watch.go and
// feed.go for watches, peer.go for other replicas. Package rest is the REST side, which calls the same methods through package
// inprocess; package apierror makes what callers get as errors, package wire encodes once what goes to many watchers.
//
// It never writes to a cluster, never passes a caller's token on, and decides nothing about members or workloads.
package api
