package leadership

import "sync"

// writes counts the writes to each member that may still take effect, and ends them: for a replica that stops, of all
// members; for a member that is handed over, of that one. Safe for concurrent use.
type writes struct {
	mu       sync.Mutex
	underway map[string]int           // by member
	ending   map[string]chan struct{} // by member: closed when none is under way
	stopping chan struct{}            // of all members, as in ending; nil: they continue
}

func newWrites() *writes {
	return &writes{underway: map[string]int{}, ending: map[string]chan struct{}{}}
}

// begin counts a write to member; false: no write to it begins any more. The caller calls ended once, when the write can no
// longer take effect.
func (w *writes) begin(member string) (ended func(), ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopping != nil || w.ending[member] != nil {
		return nil, false
	}
	w.underway[member]++
	return func() { w.end(member) }, true
}

func (w *writes) end(member string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.underway[member]--; w.underway[member] == 0 {
		delete(w.underway, member)
		if quiet := w.ending[member]; quiet != nil {
			close(quiet)
		}
	}
	if w.stopping != nil && len(w.underway) == 0 {
		close(w.stopping)
	}
}

// stop lets no further write to member begin; the channel is closed when none is under way.
func (w *writes) stop(member string) (quiet <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ending[member] == nil {
		w.ending[member] = make(chan struct{})
		if w.underway[member] == 0 {
			close(w.ending[member])
		}
	}
	return w.ending[member]
}

// stopAll is stop for all members, those to come included.
func (w *writes) stopAll() (quiet <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopping == nil {
		w.stopping = make(chan struct{})
		if len(w.underway) == 0 {
			close(w.stopping)
		}
	}
	return w.stopping
}

// stopped reports whether no write to member begins any more.
func (w *writes) stopped(member string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stopping != nil || w.ending[member] != nil
}
