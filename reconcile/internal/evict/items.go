package evict

import (
	"cmp"
	"container/heap"
)

// Items are what callers have, each of it in a group. [Items.Evict] takes time that grows with the logarithm of how many callers and groups
// there are, and [Items.Add] as well. The zero value is empty. Not safe for concurrent use.
type Items[G comparable, T any] struct {
	added   uint64 // in all
	callers map[string]*caller[G, T]
	ranking ranking[*caller[G, T]] // all callers, the one whose item goes next first
}

// caller has items in at least one group.
type caller[G comparable, T any] struct {
	name    string
	items   int // of all groups
	groups  map[G]*group[G, T]
	ranking ranking[*group[G, T]] // all groups, the one whose item goes next first
	place
}

// group has at least one item.
type group[G comparable, T any] struct {
	name  G
	items []item[T] // oldest first
	place
}

type item[T any] struct {
	number uint64 // in the order in which they were added
	is     T
}

// Of is how many items a caller has.
func (s *Items[G, T]) Of(name string) int {
	if c := s.callers[name]; c != nil {
		return c.items
	}
	return 0
}

// Add adds an item of a caller in a group.
func (s *Items[G, T]) Add(name string, in G, is T) {
	c := s.callers[name]
	if c == nil {
		if s.callers == nil {
			s.callers = map[string]*caller[G, T]{}
		}
		c = &caller[G, T]{name: name, groups: map[G]*group[G, T]{}, place: nowhere}
		s.callers[name] = c
	}
	g := c.groups[in]
	if g == nil {
		g = &group[G, T]{name: in, place: nowhere}
		c.groups[in] = g
	}
	g.items = append(g.items, item[T]{s.added, is})
	s.added++
	c.items++
	c.ranking.put(g)
	s.ranking.put(c)
}

// Evict takes one item out: of the caller with the most items, from the group in which that caller has the most, the oldest. Of several
// such groups, whosever they are, it is the one whose oldest item is the oldest. Not ok: there are no items.
func (s *Items[G, T]) Evict() (oldest T, ok bool) {
	if len(s.ranking) == 0 {
		return oldest, false
	}
	c := s.ranking[0]
	g := c.ranking[0]
	oldest = g.items[0].is
	g.items[0] = item[T]{} // the memory of the list may outlive it
	g.items = g.items[1:]
	if c.items--; len(g.items) > 0 {
		c.ranking.put(g)
	} else {
		heap.Pop(&c.ranking)
		delete(c.groups, g.name)
	}
	if c.items > 0 {
		s.ranking.put(c)
	} else {
		heap.Pop(&s.ranking)
		delete(s.callers, c.name)
	}
	return oldest, true
}

// above reports whether an item of the caller goes before one of another.
func (c *caller[G, T]) above(other *caller[G, T]) bool {
	if c.items != other.items {
		return c.items > other.items
	}
	return c.ranking[0].above(other.ranking[0])
}

// above reports whether an item of the group goes before one of another.
func (g *group[G, T]) above(other *group[G, T]) bool {
	return cmp.Or(cmp.Compare(len(other.items), len(g.items)), cmp.Compare(g.items[0].number, other.items[0].number)) < 0
}
