package intake

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// FleetBudget is what the caches of all members may take together. Where they take more, the member whose caches take the most loses the one of
// its kinds that takes the most, whoever has grown. So no member whose caches take less than an equal share of the budget loses anything because
// of others. Nil is no limit. Safe for concurrent use.
type FleetBudget struct {
	bytes int64
	used  atomic.Int64

	mu      sync.Mutex
	members map[*MemberBudget]struct{}
	leaving *KindBudget // has been told to give back what it holds, and has not yet; nil: none
}

// NewFleetBudget returns a budget of so many bytes; nil, which is no limit, for 0.
func NewFleetBudget(bytes int64) *FleetBudget {
	if bytes == 0 {
		return nil
	}
	return &FleetBudget{bytes: bytes, members: map[*MemberBudget]struct{}{}}
}

// Join adds a member to those that may lose a kind.
func (f *FleetBudget) Join(member *MemberBudget) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.members[member] = struct{}{}
}

// Leave removes a member that has stopped.
func (f *FleetBudget) Leave(member *MemberBudget) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.members, member)
}

// add takes account of bytes that came to any member, or went if they are negative.
func (f *FleetBudget) add(bytes int64) {
	if f == nil || f.used.Add(bytes) <= f.bytes || bytes <= 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.relieve()
}

// relieved notes that a kind has given back what it held.
func (f *FleetBudget) relieved(kind *KindBudget) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.leaving == kind {
		f.leaving = nil
	}
	f.relieve()
}

// relieve tells the largest kind of the largest member to give back what it holds, if all take too much and no other kind is about to.
func (f *FleetBudget) relieve() {
	if f.used.Load() <= f.bytes || f.leaving != nil {
		return
	}
	var most *MemberBudget
	for member := range f.members {
		if most == nil || member.Used.Load() > most.Used.Load() {
			most = member
		}
	}
	if most == nil {
		return
	}
	if f.leaving = most.largest(); f.leaving != nil {
		f.leaving.report(fmt.Errorf("%w: the caches of all members take more than %d bytes, and those of no other member more than the %d of this one",
			ErrTooLarge, f.bytes, most.Used.Load()))
	}
}
