// Package reconcile is the operator framework: typed reconcilers that run in every member, over one fair queue whose
// table is the ledger that the API reads.
//
// Start with reconciler.go (what a user writes) and result.go (what it may answer); builder.go makes a [Controller] of it;
// queue.go holds the queue, gates.go what keeps keys from running, ledger.go the words.
//
// It never decides who owns a member, and never writes to one on its own account, except Events.
package reconcile
