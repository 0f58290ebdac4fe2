package reconcile

import (
	"context"
	"iter"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Changes follows the objects of a kind in the cache of a member, or of all members if the name is empty. The kind must be
// cached there, which it is where a controller declares it.
//
// For each object the reader is told its states in their order. It is never waited for: while it is busy, further changes of
// an object that it has not been told about yet are merged into one, and such that cancel each other out are dropped, so a
// slow reader costs memory for no more than the objects that there are. It then misses states, which [ChangeResynced] tells,
// and never the newest one. Members take turns.
//
// The sequence ends when ctx ends or the loop is left. That of a single member also ends, after [ChangeDisengaged], when the
// member or the kind goes, or is not there to begin with. That of all members goes on, and follows members that come, and
// come back. It may be used any number of times, also concurrently; each use begins anew.
func Changes[T client.Object](ctx context.Context, rt *Runtime, member string) iter.Seq[Change[T]] {
	return follow[T](ctx, &rt.instances, member)
}
