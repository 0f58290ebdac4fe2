package evict

import "container/heap"

// place is where an entry is in its ranking.
type place int

const nowhere place = -1

func (p *place) at() *place { return p }

// entry is what a ranking has.
type entry[T any] interface {
	above(T) bool
	at() *place
}

// ranking is a heap.Interface; the entry that is above all others is first.
type ranking[T entry[T]] []T

// put adds an entry, or moves one that has changed. The first is taken out with heap.Pop, and has no place then.
func (r *ranking[T]) put(e T) {
	if at := *e.at(); at != nowhere {
		heap.Fix(r, int(at))
		return
	}
	heap.Push(r, e)
}

// Len implements heap.Interface.
func (r ranking[T]) Len() int { return len(r) }

// Less implements heap.Interface.
func (r ranking[T]) Less(i, j int) bool { return r[i].above(r[j]) }

// Swap implements heap.Interface.
func (r ranking[T]) Swap(i, j int) {
	r[i], r[j] = r[j], r[i]
	*r[i].at(), *r[j].at() = place(i), place(j)
}

// Push implements heap.Interface.
func (r *ranking[T]) Push(x any) {
	e := x.(T)
	*e.at() = place(len(*r))
	*r = append(*r, e)
}

// Pop implements heap.Interface.
func (r *ranking[T]) Pop() any {
	last := len(*r) - 1
	e := (*r)[last]
	var none T
	(*r)[last] = none
	*r = (*r)[:last]
	return e
}
