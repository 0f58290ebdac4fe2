package api

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/limits"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/lists"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// firstScan is how many items are looked at first where not all of them pass, and maxScan how many at a time at most.
const firstScan, maxScan = 2048, 32768

// ownerListing is a listing of what the owners of members know.
type ownerListing[T proto.Message] struct {
	listing[T]
	// scan returns what this replica knows of a member behind a name, by name: at most limit items, and what it cost to find them.
	scan func(member string, behind lists.Position, limit int) (found []entry[T], cost uint64, more bool)
	// gap says why what it knows may be old or not all, and since when it is; "": neither.
	gap func(known clusters.Status) (reason string, since time.Time)
	// remote has another replica list.
	remote func(ctx context.Context, conn grpc.ClientConnInterface, request pageRequest) (listed[T], error)
}

// entry is an item with the moment that it shows; zero: now.
type entry[T any] struct {
	item T
	asOf time.Time
}

// pageRequest asks another replica for a page.
type pageRequest struct {
	cluster, filter, orderBy, token string
	size                            int32
}

// listed is a page that another replica made.
type listed[T any] struct {
	items  []T
	answer interface {
		GetNextPageToken() string
		GetAsOf() *timestamppb.Timestamp
		GetUnreachable() []*plimsollv1.UnreachableMember
	}
}

// list answers a call.
func (l *ownerListing[T]) list(ctx context.Context, filters *lists.Filters) (found *page[T], next string, err error) {
	if err := l.read(ctx, filters); err != nil {
		return nil, "", err
	}
	l.part = l.ofOwner
	return l.page(ctx)
}

// ofOwner is what one member contributes: what its owner knows, or the reason why that is missing.
func (l *ownerListing[T]) ofOwner(ctx context.Context, member string, limit int) (found part[T], err error) {
	known, ok := l.members.Status(member)
	if !ok {
		return part[T]{}, nil // it has just gone
	}
	found, err = askOwner(ctx, l.core, member, question[part[T]]{
		failed: l.failed,
		local: func() (part[T], error) {
			return l.here(ctx, known, limit)
		},
		remote: func(ctx context.Context, conn grpc.ClientConnInterface) (part[T], error) {
			return l.there(ctx, conn, member, limit)
		},
	})
	if err != nil {
		found.blind = true
		found.gap, err = gapOf(err)
	}
	return found, err
}

// here lists what this replica knows of a member.
func (l *ownerListing[T]) here(ctx context.Context, known clusters.Status, limit int) (found part[T], err error) {
	reason, since := l.gap(known)
	if len(l.order) > 0 {
		found, err = l.firstHere(ctx, known.Name, limit)
	} else {
		found, err = l.nextHere(ctx, known.Name, limit)
	}
	found.gap, found.asOf = reason, older(found.asOf, since)
	return found, err
}

// nextHere lists by name, and ends where the filter has cost what it may, in this call or of the caller's budget. Its error is that of the budget
// only where nothing was looked at.
func (l *ownerListing[T]) nextHere(ctx context.Context, member string, limit int) (found part[T], err error) {
	behind, looked := l.behind(member), false
	ended, err := l.walk(ctx, member, behind, limit, func(item entry[T], passes bool) bool {
		switch {
		case passes && len(found.items) == limit:
			return false
		case passes:
			found.items = append(found.items, item.item)
			found.asOf = older(found.asOf, item.asOf)
		}
		behind, looked = l.nameOf(item.item), true
		return true
	})
	if looked && apierror.ReasonOf(err) == limits.FilterBudget {
		err = nil
	}
	if found.more = !ended; found.more {
		if found.reached = behind; behind == nil {
			found.reached = make(lists.Position, l.length)
			found.reached[0] = member
		}
	}
	return found, err
}

// firstHere lists the first in the order that was asked for.
func (l *ownerListing[T]) firstHere(ctx context.Context, member string, limit int) (found part[T], err error) {
	kept := best[T]{order: l.order, size: limit}
	ended, err := l.walk(ctx, member, nil, firstScan, func(item entry[T], passes bool) bool {
		if !passes {
			return true
		}
		if at := l.place(item.item); l.after == nil || l.order.Compare(at, l.after) > 0 {
			kept.add(rankedItem[T]{item, at})
		}
		return true
	})
	if err == nil && !ended {
		err = lists.BadFilter("filter.cost", "costs too much to compute for all items, which order_by needs: name a cluster, or omit order_by")
	}
	for _, item := range kept.settle() {
		found.items = append(found.items, item.item)
		found.asOf = older(found.asOf, item.asOf)
	}
	found.more = kept.cut
	return found, err
}

// walk goes through the items of a member behind a name until visit says no. ended: it went through all of them. What it looks at is paid for, some
// at a time, and nothing more is looked at when ctx has ended.
func (l *ownerListing[T]) walk(ctx context.Context, member string, behind lists.Position, first int, visit func(item entry[T], passes bool) bool) (ended bool, err error) {
	if l.filter != nil {
		first = max(first, firstScan)
	}
	for limit := first; ; limit = min(4*limit, maxScan) {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		items, cost, more := l.scan(member, behind, limit)
		l.spend(cost)
		for _, item := range items {
			passes, ok, err := l.filter.Passes(ctx, item.item)
			if err != nil || !ok || !visit(item, passes) {
				return false, err
			}
		}
		if !more || len(items) == 0 {
			return true, nil
		}
		if l.filter == nil && len(l.order) == 0 {
			return false, nil
		}
		behind = l.nameOf(items[len(items)-1].item)
	}
}

// there has another replica list a member.
func (l *ownerListing[T]) there(ctx context.Context, conn grpc.ClientConnInterface, member string, limit int) (found part[T], err error) {
	query := l.query(member, auth.Identity{}) // replicas have no name
	request := pageRequest{cluster: member, filter: l.asked.GetFilter(), orderBy: l.asked.GetOrderBy(), size: count(min(limit, lists.MaxPage))}
	if behind := l.behind(member); behind != nil {
		request.token = lists.EncodePosition(behind, query...)
	}
	page, err := l.remote(ctx, conn, request)
	if err != nil {
		return found, err
	}
	if found.items, err = l.passing(ctx, page.items); err != nil { // an older replica knows no filters
		return found, err
	}
	if at := page.answer.GetAsOf(); at != nil {
		found.asOf = at.AsTime()
	}
	for _, gap := range page.answer.GetUnreachable() {
		found.gap = gap.GetReason()
	}
	if token := page.answer.GetNextPageToken(); token != "" {
		found.more = true
		if found.reached, err = lists.DecodePosition(token, len(l.order)+l.length, query...); err != nil {
			return part[T]{blind: true, gap: "its owner has an older version without filter and order_by"}, nil
		}
	}
	return found, nil
}
