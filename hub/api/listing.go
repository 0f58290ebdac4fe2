package api

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/limits"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/lists"
)

// listing is one call of a list over members: of what passes its filter, by name or in the order that was asked for.
type listing[T proto.Message] struct {
	*core
	what    []string    // is listed: the kind of list and its filters but for the member and those below, for page tokens
	cluster string      // only this member; "": all
	by      *partition  // nil: members
	needs   auth.Access // without a member
	asked   listRequest
	filter  *lists.Filter
	owe     func(cost uint64) // takes what looking at items costs; nil: nobody pays
	order   lists.Order
	length  int // of a name, which begins with the member

	// part returns what a member contributes, what does not pass the filter left out: in the order that was asked for, at most
	// limit items behind after.
	part   ask[T]
	nameOf func(item T) lists.Position

	after  lists.Position // ranks and name; nil: from the start
	failed *failures
}

// listRequest is what requests of lists have in common.
type listRequest interface {
	GetFilter() string
	GetOrderBy() string
	GetPageToken() string
	GetPageSize() int32
}

// read compiles what was asked for.
func (l *listing[T]) read(ctx context.Context, filters *lists.Filters) (err error) {
	l.failed = &failures{}
	if err := l.mayList(ctx); err != nil {
		return err
	}
	if l.filter, err = filters.Compile(l.asked.GetFilter()); err != nil {
		return err
	}
	l.charge(ctx)
	var none T
	if l.order, err = lists.ParseOrder(l.asked.GetOrderBy(), none.ProtoReflect().Descriptor()); err != nil {
		return err
	}
	l.after, err = lists.DecodePosition(l.asked.GetPageToken(), len(l.order)+l.length, l.query(l.cluster, l.callerOf(ctx))...)
	return err
}

// What lists cost, in the units of filters, each about a ten-millionth of a second of a processor. A caller who reads 5,000 members with ten objects
// each, by name and in pages of 100, spends about 300,000 on that, which they get back in a fraction of a second.
const (
	// itemCost is what it costs to look at an item: to make its message and to find its place in an order. A small filter costs as much.
	itemCost = 5
	// viewCost is what a workload costs that is counted or passed over.
	viewCost = 2
	// keysPerUnit is how many keys of a ledger are passed over for one unit.
	keysPerUnit = 2
)

// mayList is RESOURCE_EXHAUSTED while the caller owes for earlier lists: anything or, where another replica asks, more than [limits.PeerDebt].
func (c *core) mayList(ctx context.Context) error {
	bursts := 0
	if c.peers == nil {
		bursts = limits.PeerDebt
	}
	return c.filters.MayList(payer(ctx), bursts)
}

// charge has the caller pay for what the list looks at, and for its filter. What belongs to no caller is not paid for: feeds read that, here or by
// way of another replica, and pace themselves. Callers from outside always have a name.
func (l *listing[T]) charge(ctx context.Context) {
	whose := payer(ctx)
	if whose == "" {
		return
	}
	l.owe = func(cost uint64) { l.filters.Owe(whose, cost) }
	l.filter.ChargeTo(l.filters.Charged(whose))
}

// spend has whoever pays pay.
func (l *listing[T]) spend(cost uint64) {
	if l.owe != nil {
		l.owe(cost)
	}
}

// page makes one page, and the token for the next; "": there is none.
func (l *listing[T]) page(ctx context.Context) (found *page[T], next string, err error) {
	members, err := l.candidates(ctx)
	if err != nil {
		return nil, "", err
	}
	if len(l.order) > 0 {
		found, err = l.ranked(ctx, members, lists.PageSize(l.asked.GetPageSize()))
	} else {
		found, err = gather(ctx, members, lists.PageSize(l.asked.GetPageSize()), l.answersHere, l.part)
	}
	if err != nil {
		return nil, "", err
	}
	if members.denied() {
		return nil, "", denied(identityOf(ctx), l.needs)
	}
	if l.peers != nil { // what another replica asks for has to be there whole: it merges
		fit(found)
	}
	query := l.query(l.cluster, l.callerOf(ctx))
	switch {
	case found.skipped != "":
		behind := make(lists.Position, l.length)
		if behind[0] = found.skipped; l.length > 1 {
			behind[1] = lists.AfterAll
		}
		next = lists.EncodePosition(behind, query...)
	case found.more && found.reached != nil:
		next = lists.EncodePosition(found.reached, query...)
	case found.more:
		next = lists.EncodePosition(l.place(found.items[len(found.items)-1]), query...)
	}
	return found, next, nil
}

// maxPageBytes is about how much a page may hold: clients of gRPC take 4 MiB, unless they are made to take more.
const maxPageBytes = 3 << 20

// fit ends a page where it gets too large, though not before its second item.
func fit[T proto.Message](p *page[T]) {
	size := 0
	for i, item := range p.items {
		if size += proto.Size(item); size > maxPageBytes && i > 0 {
			p.items, p.more, p.reached, p.skipped = p.items[:i], true, nil, ""
			return
		}
	}
}

// answersHere reports whether this replica answers for a member.
func (l *listing[T]) answersHere(member string) bool { return l.by != nil || l.ownership.Mine(member) }

// place is where an item is in the list.
func (l *listing[T]) place(item T) lists.Position {
	return append(lists.Position(l.order.Rank(item)), l.nameOf(item)...)
}

// query is all that makes the list what it is, for its page tokens. Without filter, order and caller it is what older replicas
// make of it.
func (l *listing[T]) query(cluster string, who auth.Identity) []string {
	query := append([]string{l.what[0], cluster}, l.what[1:]...)
	if l.asked.GetFilter() != "" || l.asked.GetOrderBy() != "" {
		query = append(query, "by", l.asked.GetFilter(), l.asked.GetOrderBy())
	}
	if who.User != "" {
		query = append(query, "for", who.User, who.UID)
	}
	return query
}

// callerOf is whom page tokens are made for; nobody, when another replica asks.
func (l *listing[T]) callerOf(ctx context.Context) auth.Identity {
	if l.peers == nil {
		return auth.Identity{}
	}
	return identityOf(ctx)
}

func (l *listing[T]) candidates(ctx context.Context) (*candidates, error) {
	if l.by == nil {
		if err := l.registered(l.cluster); err != nil {
			return nil, err
		}
	}
	if l.cluster != "" {
		return one(l.cluster), nil
	}
	from := ""
	if len(l.order) == 0 && l.after != nil {
		if from = l.after[0]; l.length == 1 {
			from += "\x00" // the least name behind it
		}
	}
	return newCandidates(ctx, l.rights, l.needs, l.parts(l.by), from)
}

// behind is where the list goes on in a member; nil: at its start.
func (l *listing[T]) behind(member string) lists.Position {
	if l.after != nil && (len(l.order) > 0 || l.after[0] == member) {
		return l.after
	}
	return nil
}

// passing returns the items that pass the filter and are behind the place where the list goes on.
func (l *listing[T]) passing(ctx context.Context, items []T) (found []T, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.spend(uint64(itemCost * len(items)))
	for _, item := range items {
		passes, ok, err := l.filter.Passes(ctx, item)
		switch {
		case err != nil:
			return nil, err
		case !ok:
			return nil, lists.BadFilter("filter.cost", "costs too much to compute for all items")
		case passes && (l.after == nil || l.order.Compare(l.place(item), l.after) > 0):
			found = append(found, item)
		}
	}
	return found, nil
}
