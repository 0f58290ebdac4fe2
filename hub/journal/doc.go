// Package journal keeps what happened lately in the members: moves, droughts, interruptions, changes of state, and requeues that
// people asked for. It is in memory and bounded, in events and in bytes: a replica that starts has none, and the oldest events of the
// namespaces with the most, in the members with the most, go first.
//
// It knows of nobody who writes or reads it. The hub package feeds it, and hub/api shows it.
//
// journal.go keeps events; bounds.go forgets what is too much of them; orders.go counts requeues by member and by who asked for them.
package journal
