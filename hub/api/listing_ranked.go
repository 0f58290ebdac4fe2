package api

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

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

const (
	// maxOrdered is how many lists in an order a replica makes at a time, a caller at most half of them: each looks at everything that there is.
	maxOrdered = 32
	// orderedAgain is when whoever finds no place asks again.
	orderedAgain = time.Second
	// reasonTooManyLists is that of lists beyond that.
	reasonTooManyLists = "TOO_MANY_LISTS"
)

// enterOrdered takes a place for a list in an order; leave gives it back. Replicas that ask each other need none: the first of them has it.
func (c *core) enterOrdered(ctx context.Context) (leave func(), err error) {
	if c.ordered == nil {
		return func() {}, nil
	}
	whose := payer(ctx)
	if !c.ordered.Enter(whose) {
		return nil, apierror.WithDelay(status.Newf(codes.ResourceExhausted,
			"order_by: %d lists in an order are being made at a time at most, and of one caller half of them: ask again later, or omit order_by", maxOrdered),
			reasonTooManyLists, orderedAgain).Err()
	}
	return func() { c.ordered.Leave(whose) }, nil
}

// ranked asks all members, each for its first items, and puts them in one order.
func (l *listing[T]) ranked(ctx context.Context, from *candidates, size int) (*page[T], error) {
	leave, err := l.enterOrdered(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
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
		parts, err := askInTurn(ctx, members, size, l.answersHere, l.part, func(*part[T]) bool { return false })
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
