package plan

import "time"

// granted are moves that a workload was granted at a time.
type granted struct {
	moves int
	at    time.Time
}

// grants are those of one workload, the oldest first.
type grants []granted

// standing is how many moves of late are granted. It forgets those of before.
func (g *grants) standing(now time.Time) (moves int) {
	for len(*g) > 0 && now.Sub((*g)[0].at) > moverPatience {
		*g = (*g)[1:]
	}
	for i := range *g {
		moves += (*g)[i].moves
	}
	return moves
}

// finished forgets the oldest, so that at most so many moves are left.
func (g *grants) finished(left int, now time.Time) {
	for over := g.standing(now) - left; over > 0; {
		first := &(*g)[0]
		n := min(over, first.moves)
		over -= n
		if first.moves -= n; first.moves == 0 {
			*g = (*g)[1:]
		}
	}
}

// start notes that a workload starts moves. It has finished those of before that are not on the move any more: else what it was
// granted bit by bit would add up to more than its share.
func (m *mover) start(moves int, now time.Time) {
	if moves == 0 {
		return
	}
	m.granted.finished(m.moving, now)
	m.granted = append(m.granted, granted{moves: moves, at: now})
	m.moving += moves
}

// counts is how many replicas on the move count against what others may move.
func (m *mover) counts(now time.Time) int {
	if m.moving == 0 || now.Sub(m.member.takenOver) <= takeOverTime {
		return m.moving
	}
	return min(m.moving, m.granted.standing(now))
}
