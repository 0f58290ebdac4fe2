// Package reconciletest tests reconcilers without a cluster, and plays scenarios to a running one.
//
// A [Kit] reconciles an object once, the way a worker of the hub would (finalizers, dependencies, the reconciler, conditions
// and the status patch), against an API server in memory, and compares what it wrote, recorded and answered with what a
// [Case] wants. A [Scenario] is a script with manifests, in one txtar file, that is run against members that really reconcile.
//
// It never starts a control plane: scenarios get clients of members from whoever has them.
//
//	kit.go      what a case is, and how it is run; compare.go: what is compared, and the words for what differs
//	client.go   the API server in memory: what it notes, and the calls that it lets fail; member.go: it as a member
//	scenario.go the script; commands.go: its commands; lookup.go: what a command looks at
package reconciletest
