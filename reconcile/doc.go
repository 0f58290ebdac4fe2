// Package reconcile is the operator framework: typed reconcilers that run in every member, over one fair queue whose
// table is the ledger that the API reads.
//
// It never decides who owns a member, and never writes to one on its own initiative, except Events, the finalizers of
// controllers that ask for one, and the status of kinds that have it kept.
//
// What a user of the package writes and calls:
//
//	reconciler.go  a reconciler and what it is given; result.go: what it may answer
//	builder.go     For(…).Owns(…).Register() makes a Controller; controller.go, engagement.go: how it joins and leaves
//	               members; tuning.go: its times and rates, and the names under which it is found in what it writes
//	runtime.go     what all controllers share; holds.go: what keeps keys from running, and whether some still run;
//	               receipts.go: orders and their results; receipts_cancel.go: those of a member, and how they are taken back
//	ledger.go      the words of the ledger, and keys by filter
//	finalizer.go   cleaning up before an object goes; detach.go: members that are gone for good
//	status.go      kinds whose status is kept here: conditions.go, and status_patch.go, which writes it
//	apply.go       what a reconciler writes its objects with, several of them at once; patch.go: fields of others' objects
//	steer.go       annotations by which people steer
//	index.go       owned objects and declared fields, found without a walk over all
//	dependency.go  what an object waits for
//	changes.go     typed changes of members' objects, as an iterator
//	once.go        one reconcile outside the queue, for package reconciletest
//
// How an event becomes a reconcile, in order:
//
//	watch.go       informer events to keys; builder_watches.go: which of them count
//	queue.go       the states of a key; record.go: one key; flow.go: the keys of one controller in one member, in line,
//	               and how they come and go with the member
//	pick.go        whose turn it is: priorities, members in turn; member.go: the budget that controllers share; ratelimit.go: how many begin
//	adapter.go     the call itself: attempt.go, stuck.go; decision.go: what its result means; timers.go: when it is next
//
// Parts of it are packages of their own below internal, each with a map in its doc.go: apply (server-side apply), depend (who
// wakes when what is depended on changes), events (Kubernetes Events), stream (changes of objects), members (the cluster behind
// each member's name), retry (back-off and final errors) and object (names and kinds). The queue stays here: it has one lock with
// holds, receipts and the ledger.
//
// metrics.go counts, and leaves out the series of controller-runtime that nothing feeds.
// workqueue.go is the queue as controller-runtime's workers see it.
package reconcile
