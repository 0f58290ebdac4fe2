// Package reconcile is the operator framework: typed reconcilers that run in every member, over one fair queue whose
// table is the ledger that the API reads.
//
// It never decides who owns a member, and never writes to one on its own account, except Events.
//
// What a user of the package writes and calls:
//
//	reconciler.go  a reconciler and what it is given; result.go: what it may answer
//	builder.go     For(…).Owns(…).Register() makes a Controller; controller.go, engagement.go: how it joins and leaves members
//	runtime.go     what all controllers share; gates.go: what keeps keys from running; receipts.go: orders and their results
//	ledger.go      the words of the ledger
//
// How an event becomes a reconcile, in order:
//
//	watch.go       informer events to keys
//	queue.go       the states of a key; record.go: one key; lane.go: the keys of one controller in one member, in line
//	pick.go        whose turn it is: bands, members in turn; member.go: the budget that controllers share
//	adapter.go     the call itself; verdict.go: what its result means; backoff.go, timers.go: when it is next
//	recorder.go    Events, sent by eventsink.go
//
// workqueue.go is the queue as controller-runtime's workers see it.
package reconcile
