package auth

import (
	"sync"
	"time"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/cache"
)

const (
	// A member that a list found hidden from its caller stays hidden for hiddenFor, times the number of members: whoever may see few
	// of many costs the cluster so many questions a second, however often they list. Not less than deniedFor, not more than
	// maxHiddenFor.
	hiddenFor, maxHiddenFor = 50 * time.Millisecond, 30 * time.Second
	// maxHiddenSets bounds memory.
	maxHiddenSets = 256
)

// Unlisted remembers which members lists left out, for each caller and what was listed. Safe for concurrent use.
type Unlisted struct {
	sets *cache.Cache[accessKey, *UnlistedMembers]
}

// UnlistedMembers are those of one caller and one kind of list. A nil one remembers nothing.
type UnlistedMembers struct {
	mu    sync.Mutex
	names map[string]struct{}
}

// NewUnlisted remembers nothing yet.
func NewUnlisted() *Unlisted {
	return &Unlisted{sets: cache.New[accessKey, *UnlistedMembers](maxHiddenSets)}
}

// Of returns what is remembered for a caller about an access, which names no member, where there are so many members.
func (h *Unlisted) Of(who Identity, needs Access, members int) (*UnlistedMembers, error) {
	if h == nil {
		return nil, nil
	}
	key, err := keyOf(who, needs)
	if err != nil {
		return nil, err
	}
	found, _ := h.sets.Add(key, &UnlistedMembers{names: map[string]struct{}{}},
		min(max(time.Duration(members)*hiddenFor, deniedFor), maxHiddenFor))
	return found, nil
}

// Has reports whether a member is known to be hidden.
func (m *UnlistedMembers) Has(member string) bool {
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, is := m.names[member]
	return is
}

// Add notes that a member is hidden.
func (m *UnlistedMembers) Add(member string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.names[member] = struct{}{}
}
