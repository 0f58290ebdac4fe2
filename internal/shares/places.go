package shares

import "sync"

// Places are so many places, of which anybody may take one more only while more are free than they have. So nobody takes more than
// half of them, two who want all of them a third each, and there is always one for somebody else. Safe for concurrent use.
type Places struct {
	mu   sync.Mutex
	free int
	own  map[string]int
}

// NewPlaces are n places, all of them free.
func NewPlaces(n int) *Places { return &Places{free: n, own: map[string]int{}} }

// Enter takes a place of whose, if there is one; leave must be called once if there is.
func (p *Places) Enter(whose string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.own[whose] >= p.free {
		return false
	}
	p.free--
	p.own[whose]++
	return true
}

// Leave gives a place back.
func (p *Places) Leave(whose string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free++
	if p.own[whose]--; p.own[whose] == 0 {
		delete(p.own, whose)
	}
}
