package api

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// notShown represents a sentence that names a member which the caller may not see.
const notShown = "not shown: it names a member that you may not see"

// hidden are members that a caller may not see.
type hidden []string

// names reports whether a text may name one of them.
func (h hidden) names(text string) bool {
	return slices.ContainsFunc(h, func(member string) bool { return strings.Contains(text, member) })
}

// text is what is shown of a text.
func (h hidden) text(text string) string {
	if h.names(text) {
		return notShown
	}
	return text
}

// hiddenIn are the members, of those that are named and those registered, whose workloads in a namespace the caller may not get. A
// call asks about maxChecksOfAll members at most, first about those that are named; all others count as hidden.
func (s *fleetService) hiddenIn(ctx context.Context, namespace string, named []string) (hidden, error) {
	needs := auth.Access{Verb: verbGet, Resource: resourceWorkloads, Namespace: namespace}
	if all, err := s.rights.allowed(ctx, needs); err != nil || all {
		return nil, err
	}
	names := append(slices.Clone(named), s.names()...)
	known, err := s.rights.hidden.Of(identityOf(ctx), needs, len(names))
	if err != nil {
		return nil, err
	}
	var not hidden
	asked, seen := make([]string, 0, len(names)), make(map[string]bool, len(names))
	for _, name := range names {
		switch {
		case seen[name]:
		case known.Has(name), len(asked) == maxChecksOfAll:
			not = append(not, name)
		default:
			asked = append(asked, name)
		}
		seen[name] = true
	}
	may := make([]bool, len(asked))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(window)
	for i, name := range asked {
		group.Go(func() (err error) {
			if may[i], err = s.rights.allowed(groupCtx, ofMember(needs, name)); err == nil && !may[i] {
				known.Add(name)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i, name := range asked {
		if !may[i] {
			not = append(not, name)
		}
	}
	return not, nil
}

// shown is a FleetPlacement as the caller may see it: members that it may not see are not named.
func (s *fleetService) shown(ctx context.Context, p *plimsollv1.FleetPlacement) (*plimsollv1.FleetPlacement, error) {
	all := []*plimsollv1.FleetPlacement{p}
	err := s.showAll(ctx, p.GetNamespace(), all)
	return all[0], err
}

// showAll puts in the place of FleetPlacements of one namespace what the caller may see of them.
func (s *fleetService) showAll(ctx context.Context, namespace string, all []*plimsollv1.FleetPlacement) error {
	var named []string
	for _, p := range all {
		named = append(named, namedIn(p)...)
	}
	not, err := s.hiddenIn(ctx, namespace, named)
	if err != nil || len(not) == 0 {
		return err
	}
	for i, p := range all {
		all[i] = not.of(p)
	}
	return nil
}

// namedIn are the members that a FleetPlacement names.
func namedIn(p *plimsollv1.FleetPlacement) (named []string) {
	for _, m := range p.GetMembers() {
		named = append(named, m.GetName())
	}
	for _, m := range p.GetLastMoves() {
		named = append(named, m.GetMember())
	}
	return named
}

// hiddenFrom are the members that the caller may not see, of those that a FleetPlacement names and others.
func (s *fleetService) hiddenFrom(ctx context.Context, p *plimsollv1.FleetPlacement, others []string) (hidden, error) {
	return s.hiddenIn(ctx, p.GetNamespace(), append(others, namedIn(p)...))
}

// moves are those that are not of them.
func (h hidden) moves(all []*plimsollv1.FleetMove) []*plimsollv1.FleetMove {
	all = slices.DeleteFunc(all, func(m *plimsollv1.FleetMove) bool { return slices.Contains(h, m.GetMember()) })
	for _, m := range all {
		m.Reason = h.text(m.GetReason())
	}
	return all
}

// of is a FleetPlacement without them.
func (h hidden) of(p *plimsollv1.FleetPlacement) *plimsollv1.FleetPlacement {
	shown, ok := proto.Clone(p).(*plimsollv1.FleetPlacement)
	if !ok {
		return nil
	}
	is := func(member string) bool { return slices.Contains(h, member) }
	before := len(shown.GetMembers())
	shown.Members = slices.DeleteFunc(shown.GetMembers(), func(m *plimsollv1.FleetMember) bool { return is(m.GetName()) })
	shown.HiddenMembers = count(before - len(shown.GetMembers()))
	for _, m := range shown.GetMembers() {
		m.Reason = h.text(m.GetReason())
	}
	shown.LastMoves = h.moves(shown.GetLastMoves())
	shown.Message = h.text(shown.GetMessage())
	for _, c := range shown.GetConditions() {
		c.Message = h.text(c.GetMessage())
	}
	if is(shown.GetPolicy().GetGatherInto()) {
		shown.Policy.GatherInto = ""
	}
	return shown
}
