package api

import (
	"context"
	"sort"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
)

const (
	// window is how many members are asked about at once.
	window = 16
	// maxChecks is how many members a call asks about one by one whether the caller may see them. A page that is cut short
	// by it says where to continue.
	maxChecks = 128
	// maxChecksOfAll is the same for calls that cannot go on later: watches, lists in an order, orders of many keys.
	maxChecksOfAll = 1024
)

// candidates are the members that a list has yet to look at, in order; what the caller may not see is left out.
type candidates struct {
	rights  access
	needs   auth.Access // without a member
	narrow  func(auth.Access, string) auth.Access
	names   []string
	all     bool // the caller may see every member
	first   bool // the list began with the first member
	most    int  // so many are asked about one by one
	hidden  *auth.UnlistedMembers
	allowed int
	checked int
	last    string // the last one looked at
}

// newCandidates starts behind the members before from; "" starts with the first.
func newCandidates(ctx context.Context, rights access, needs auth.Access, of *partition, from string) (*candidates, error) {
	all, err := rights.allowed(ctx, needs)
	if err != nil {
		return nil, err
	}
	return candidatesOf(ctx, all, rights, needs, of, from)
}

// candidatesOf is the same for a caller of whom it is known whether they may see all members.
func candidatesOf(ctx context.Context, all bool, rights access, needs auth.Access, of *partition, from string) (*candidates, error) {
	names := of.names()
	sort.Strings(names)
	c := &candidates{
		rights: rights, needs: needs, narrow: of.narrow, names: names[sort.SearchStrings(names, from):], all: all, first: from == "", most: maxChecks,
	}
	var err error
	if !all {
		c.hidden, err = rights.hidden.Of(identityOf(ctx), needs, len(names))
	}
	return c, err
}

// whole lets the call look at all members, which it has to.
func (c *candidates) whole() *candidates {
	c.most = maxChecksOfAll
	return c
}

// one is the candidate of a list about one member, which is authorized already.
func one(name string) *candidates { return &candidates{names: []string{name}, all: true} }

// next returns the next members that the caller may see; none: there are no more, or the call has asked often enough.
func (c *candidates) next(ctx context.Context) ([]string, error) {
	for len(c.names) > 0 && (c.all || c.checked < c.most) {
		batch := c.names[:min(window, len(c.names))]
		c.names, c.last = c.names[len(batch):], batch[len(batch)-1]
		seen, err := c.visible(ctx, batch)
		if err != nil {
			return nil, err
		}
		if c.allowed += len(seen); len(seen) > 0 {
			return seen, nil
		}
	}
	return nil, nil
}

// left reports whether there are members that were not looked at.
func (c *candidates) left() bool { return len(c.names) > 0 }

// denied reports whether every member was looked at and the caller may see none, not even one that may come.
func (c *candidates) denied() bool { return !c.all && c.first && c.allowed == 0 && !c.left() }

// visible returns those of a batch that the caller may see.
func (c *candidates) visible(ctx context.Context, batch []string) ([]string, error) {
	if c.all {
		return batch, nil
	}
	may := make([]bool, len(batch))
	group, groupCtx := errgroup.WithContext(ctx)
	for i, name := range batch {
		if c.hidden.Has(name) {
			continue
		}
		c.checked++
		group.Go(func() (err error) {
			if may[i], err = c.rights.allowed(groupCtx, c.narrow(c.needs, name)); err == nil && !may[i] {
				c.hidden.Add(name)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var seen []string
	for i, name := range batch {
		if may[i] {
			seen = append(seen, name)
		}
	}
	return seen, nil
}
