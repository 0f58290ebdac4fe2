// Package reconcile is the operator framework: typed reconcilers that run in every member, over one fair queue whose
// table is the ledger that the API reads.
//
// It never decides who owns a member, and never writes to one on its own initiative, except Events, the finalizers of
// controllers that ask for one, and the status of kinds for which the framework maintains it.
//
// What a user of the package writes and calls:
//
//	reconciler.go  a reconciler and its input; result.go: its results
//	builder.go     For(…).Owns(…).Register() makes a Controller; controller.go, engagement.go: how it joins and leaves
//	               members; tuning.go: its times and rates, and the names that it writes into objects
//	runtime.go     what all controllers share; holds.go: what keeps keys from running, and whether some still run;
//	               operations.go: orders and their results; operations_cancel.go: those of a member, and how they are cancelled
//	ledger.go      the types of the ledger, and keys by filter
//	finalizer.go   cleaning up before an object goes; detach.go: members that are gone for good
//	status.go      kinds whose status the framework maintains: conditions.go, and status_patch.go, which writes it
//	apply.go       writes of a reconciler's objects, several at once; patch.go: fields of others' objects
//	steer.go       annotations with which people control reconciles
//	index.go       owned objects and declared fields, found by index
//	dependency.go  what an object waits for
//	changes.go     typed changes of members' objects, as an iterator
//	once.go        one reconcile outside the queue, for package reconciletest
//
// How an event becomes a reconcile, in order:
//
//	watch.go       informer events to keys; builder_watches.go: which of them count
//	queue.go       the states of a key; record.go: one key; flow.go: the keys of one controller in one member, in line,
//	               and how they come and go with the member
//	pick.go        which key is next: priorities, members in turn; member.go: the budget that controllers share; ratelimit.go: how many begin
//	workers.go     the goroutines that run keys, and how they come and go
//	adapter.go     the call itself: attempt.go, stuck.go; decision.go: what its result means; timers.go: when it is next
//
// Parts of it are packages of their own below internal, each with a map in its doc.go: apply (server-side apply), depend (which
// keys wake when a dependency changes), events (Kubernetes Events), stream (changes of objects), members (the cluster behind
// each member's name), retry (back-off and final errors), evict (which order is forgotten) and object (names and kinds). The queue stays here: it has one lock with
// holds, operations and the ledger.
//
// metrics.go has the metrics.
package reconcile
