package reconcile

import (
	"context"
	"iter"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/stream"
)

// ChangeType says what a [Change] is; its method String names it.
type ChangeType = stream.ChangeType

const (
	// ChangeAdded: the reader did not know the object; Object is it.
	ChangeAdded = stream.ChangeAdded
	// ChangeUpdated: Old is the state that the reader knows, Object the one that is.
	ChangeUpdated = stream.ChangeUpdated
	// ChangeDeleted: Object is the last state that the reader knows of an object that is gone.
	ChangeDeleted = stream.ChangeDeleted
	// ChangeSynced: everything that was in the member's cache when the reader came to it has been sent. Once for each time
	// that a member is followed.
	ChangeSynced = stream.ChangeSynced
	// ChangeResynced: the reader was slower than the changes, and some states were skipped. What was skipped until this was
	// queued has been sent by now, in its newest state.
	ChangeResynced = stream.ChangeResynced
	// ChangeDisengaged: the member or the kind is no longer followed, for Err. What the reader knows of the member is void.
	ChangeDisengaged = stream.ChangeDisengaged
)

// A Change is one element of [Changes]. Objects are those of the member's cache, trimmed as they are there; they must not be
// changed.
// Member is where it happened, Object of Added, Updated and Deleted the object, Old of Updated what it was, and Err of Disengaged
// why.
type Change[T client.Object] = stream.Change[T]

// Changes follows the objects of a kind in the cache of a member, or of all members if the name is empty. The kind must be
// cached there, which it is where a controller declares it.
//
// For each object the reader gets its states in their order. It is never waited for: while it is busy, further changes of
// an object that it has not been notified about yet are merged into one, and such that cancel each other out are dropped, so a
// slow reader costs memory for no more than the objects that there are. It then misses states, which [ChangeResynced] reports,
// and never the newest one. Members take turns.
//
// The sequence ends when ctx ends or the loop is left. That of a single member also ends, after [ChangeDisengaged], when the
// member or the kind goes, or is not there to begin with. That of all members goes on, and follows members that come, and
// come back. It may be used any number of times, also concurrently; each use starts again.
func Changes[T client.Object](ctx context.Context, rt *Runtime, member string) iter.Seq[Change[T]] {
	return stream.Follow[T](ctx, &rt.instances, member)
}
