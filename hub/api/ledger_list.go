package api

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// ledgerList is one list of what ledgers hold, over members: objects, or controllers.
type ledgerList[T any] struct {
	*core
	what      []string // is listed: the kind of list and its filters but for the member, for page tokens
	namespace string   // "": all
	length    int      // of a position, which begins with the member
	after     position // nil: from the start
	failed    failures

	// local lists what this replica knows of a member behind a position, at most limit items; remote what another does.
	local      func(member string, behind position, limit int) (items []T, more bool)
	remote     func(ctx context.Context, conn grpc.ClientConnInterface, member, token string, limit int) (listed[T], error)
	positionOf func(item T) position
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

// page makes one page, and the token for the next; "": there is none.
func (l *ledgerList[T]) page(ctx context.Context, cluster, token string, size int32) (found *page[T], next string, err error) {
	if l.after, err = decodePosition(token, l.length, l.filters(cluster)...); err != nil {
		return nil, "", err
	}
	needs := Access{Verb: verbList, Resource: resourceObjects, Namespace: l.namespace}
	members, err := l.candidates(ctx, cluster, needs)
	if err != nil {
		return nil, "", err
	}
	if found, err = gather(ctx, members, pageSize(size), l.part); err != nil {
		return nil, "", err
	}
	if members.denied() {
		return nil, "", denied(identityOf(ctx), needs)
	}
	switch {
	case found.skipped != "":
		behind := make(position, l.length)
		behind[0], behind[1] = found.skipped, afterAll
		next = encodePosition(behind, l.filters(cluster)...)
	case found.more:
		next = encodePosition(l.positionOf(found.items[len(found.items)-1]), l.filters(cluster)...)
	}
	return found, next, nil
}

// filters of the list, for its page tokens.
func (l *ledgerList[T]) filters(cluster string) []string {
	return append([]string{"ledger", cluster}, l.what...)
}

func (l *ledgerList[T]) candidates(ctx context.Context, cluster string, needs Access) (*candidates, error) {
	if cluster != "" {
		if _, err := l.member(cluster); err != nil {
			return nil, err
		}
		return one(cluster), nil
	}
	from := ""
	if l.after != nil {
		from = l.after[0]
	}
	return newCandidates(ctx, l.gate, needs, l.names(), from)
}

// part is what one member contributes: what its owner's ledger holds, or the reason why that is missing.
func (l *ledgerList[T]) part(ctx context.Context, member string, limit int) (part[T], error) {
	known, ok := l.members.Status(member)
	if !ok {
		return part[T]{}, nil // it has just gone
	}
	var behind position
	if l.after != nil && l.after[0] == member {
		behind = l.after
	}
	var found part[T]
	err := l.ask(ctx, member, question{
		failed: &l.failed,
		local: func() error {
			items, more := l.local(member, behind, limit)
			found = part[T]{items: items, more: more}
			found.gap, found.asOf = gapOfLedger(known)
			return nil
		},
		remote: func(ctx context.Context, conn grpc.ClientConnInterface) error {
			token := ""
			if behind != nil {
				token = encodePosition(behind, l.filters(member)...)
			}
			page, err := l.remote(ctx, conn, member, token, limit)
			if err != nil {
				return err
			}
			found = page.part()
			return nil
		},
	})
	if err != nil {
		found.gap, err = gapOf(err)
	}
	return found, err
}

// part is a page of another replica as what one member contributes.
func (p *listed[T]) part() part[T] {
	found := part[T]{items: p.items, more: len(p.items) > 0 && p.answer.GetNextPageToken() != "", asOf: time.Now()}
	if at := p.answer.GetAsOf(); at != nil {
		found.asOf = at.AsTime()
	}
	for _, gap := range p.answer.GetUnreachable() {
		found.gap = gap.GetReason()
	}
	return found
}
