package spot

import (
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/when"
)

// OwnershipChanged takes in that [Options.Acts] may answer otherwise now, for any member. Without the call a member that this
// replica has lost and got back between two admissions would not be noticed.
func (e *Engine) OwnershipChanged() {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, m := range e.members {
		m.actsSince(time.Now())
	}
}

// actsSince returns since when this replica has acted on the member without a break, as far as it was asked; now if it does
// not. Zero: it always has.
func (m *member) actsSince(now time.Time) time.Time {
	if m.engine.options.Acts == nil {
		return time.Time{}
	}
	if !m.engine.options.Acts(m.name) {
		m.acting.Store(nil)
		return now
	}
	since := m.acting.Load()
	if since == nil {
		m.acting.CompareAndSwap(nil, &now)
		return now
	}
	return *since
}

// takenOver returns until when others may have decided for owners of the member, or this process with another directory; see
// [Accounting.TakeOver].
func (m *member) takenOver(dir *directory) time.Time {
	return when.Later(m.actsSince(time.Now()), dir.replaces)
}

// takenOver is the same for a member by its name.
func (e *Engine) takenOver(name string, dir *directory) time.Time {
	if m := e.member(name); m != nil {
		return m.takenOver(dir)
	}
	return time.Time{}
}
