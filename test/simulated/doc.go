// Package simulated serves the API of many member clusters from one process, for tests of numbers: discovery, version,
// identity, rules reviews, and lists and watches of what a hub caches, over TLS, each member on a port of its own.
//
// The hub in front of it is the real one. A simulated member runs no controllers, admits everything, and holds a handful of
// objects; what needs a real API server is for package test/kube. Faults are what a slow or broken API server shows to its
// clients: answers that are late ([Member.Delay]) and watches that end ([Member.Break]).
//
//   - fleet.go: members start and stop together.
//   - member.go: one member's answers; watches.go: its watches and their faults; served.go: the kinds that it has.
package simulated
