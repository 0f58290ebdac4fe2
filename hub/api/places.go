package api

import "sync"

// fairPlaces are so many places, of which anybody may take one more only while more are free than they have. So nobody takes more than
// half of them, two who want all of them a third each, and there is always one for somebody else. Safe for concurrent use.
type fairPlaces struct {
	mu   sync.Mutex
	free int
	own  map[string]int
}

func newFairPlaces(n int) *fairPlaces { return &fairPlaces{free: n, own: map[string]int{}} }

// enter takes a place of whose, if there is one; leave must be called once if there is.
func (p *fairPlaces) enter(whose string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.own[whose] >= p.free {
		return false
	}
	p.free--
	p.own[whose]++
	return true
}

// leave gives a place back.
func (p *fairPlaces) leave(whose string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free++
	if p.own[whose]--; p.own[whose] == 0 {
		delete(p.own, whose)
	}
}
