package api

import (
	"context"
	"slices"
	"time"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/lists"
)

// rankedItem is an item and where it is in the list.
type rankedItem[T any] struct {
	entry[T]
	at lists.Position
}

// best keeps the first items of a list, in any order of arrival.
type best[T any] struct {
	order lists.Order
	size  int
	items []rankedItem[T]
	cut   bool // more than size were offered
}

func (b *best[T]) add(item rankedItem[T]) {
	if b.items = append(b.items, item); len(b.items) >= 2*b.size {
		b.settle()
	}
}

// settle puts what is kept in order.
func (b *best[T]) settle() []rankedItem[T] {
	slices.SortFunc(b.items, func(one, other rankedItem[T]) int { return b.order.Compare(one.at, other.at) })
	if len(b.items) > b.size {
		b.items, b.cut = slices.Clip(b.items[:b.size]), true
	}
	return b.items
}

// ranked asks all members, each for its first items, and puts them in one order.
func (l *listing[T]) ranked(ctx context.Context, from *candidates, size int) (*page[T], error) {
	from.whole()
	made, kept := &page[T]{asOf: time.Now()}, best[T]{order: l.order, size: size}
	for {
		members, err := from.next(ctx)
		if err != nil {
			return nil, err
		}
		if len(members) == 0 {
			break
		}
		parts, err := askAll(ctx, members, size, l.part)
		if err != nil {
			return nil, err
		}
		for i := range parts {
			made.note(members[i], &parts[i])
			kept.cut = kept.cut || parts[i].more
			for _, item := range parts[i].items {
				kept.add(rankedItem[T]{entry[T]{item: item}, l.place(item)})
			}
		}
	}
	if from.left() {
		return nil, apierror.InvalidField("order_by", "order_by.members", "needs the right to list in all members if there are many: name a cluster")
	}
	for _, item := range kept.settle() {
		made.items = append(made.items, item.item)
	}
	made.more = kept.cut
	return made, nil
}
