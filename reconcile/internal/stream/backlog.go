package stream

import (
	"container/list"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
)

// A backlog is what a reader has not got yet about the objects of one member: for each object at most one entry, from
// the state that the reader knows to the newest one. Not safe for concurrent use.
type backlog[T client.Object] struct {
	member   string
	line     *list.List // of *gap[T] and Change[T], the markers
	gaps     map[types.NamespacedName]*list.Element
	resynced bool // a Resynced is in line
}

// A gap is the difference between what the reader knows of an object and what is.
type gap[T client.Object] struct {
	before, now T // nil: none
}

func newBacklog[T client.Object](member string) *backlog[T] {
	return &backlog[T]{member: member, line: list.New(), gaps: map[types.NamespacedName]*list.Element{}}
}

func (b *backlog[T]) empty() bool { return b.line.Len() == 0 }

// event notes that an object went from one state to another; a nil state is that it does not exist.
func (b *backlog[T]) event(old, now T) {
	key := changedKey(old, now)
	element := b.gaps[key]
	if element == nil {
		b.gaps[key] = b.line.PushBack(&gap[T]{before: old, now: now})
		return
	}
	g := element.Value.(*gap[T])
	g.now = now
	if object.IsNil(g.before) && object.IsNil(g.now) { // it came and went, and nobody has heard of it
		b.line.Remove(element)
		delete(b.gaps, key)
	}
	if !b.resynced {
		b.resynced = true
		b.mark(Change[T]{Type: ChangeResynced, Member: b.member})
	}
}

func changedKey[T client.Object](old, now T) types.NamespacedName {
	if object.IsNil(now) {
		return client.ObjectKeyFromObject(old)
	}
	return client.ObjectKeyFromObject(now)
}

// mark puts a marker in line.
func (b *backlog[T]) mark(c Change[T]) { b.line.PushBack(c) }

// clear forgets everything.
func (b *backlog[T]) clear() {
	b.line.Init()
	clear(b.gaps)
	b.resynced = false
}

// next takes the first entry. Nothing is sent about an object that is again as the reader knows it.
func (b *backlog[T]) next() []Change[T] {
	element := b.line.Front()
	if element == nil {
		return nil
	}
	switch v := b.line.Remove(element).(type) {
	case Change[T]:
		if v.Type == ChangeResynced {
			b.resynced = false
		}
		return []Change[T]{v}
	case *gap[T]:
		delete(b.gaps, changedKey(v.before, v.now))
		return b.overGap(v)
	}
	return nil
}

// overGap says how to get over a gap. An object that was replaced under its name is another one.
func (b *backlog[T]) overGap(g *gap[T]) []Change[T] {
	change := func(t ChangeType, obj T) Change[T] { return Change[T]{Type: t, Member: b.member, Object: obj} }
	switch {
	case object.IsNil(g.before):
		return []Change[T]{change(ChangeAdded, g.now)}
	case object.IsNil(g.now):
		return []Change[T]{change(ChangeDeleted, g.before)}
	case g.before.GetUID() != g.now.GetUID():
		return []Change[T]{change(ChangeDeleted, g.before), change(ChangeAdded, g.now)}
	case g.before.GetResourceVersion() == g.now.GetResourceVersion() && g.now.GetResourceVersion() != "":
		return nil
	}
	updated := change(ChangeUpdated, g.now)
	updated.Old = g.before
	return []Change[T]{updated}
}
