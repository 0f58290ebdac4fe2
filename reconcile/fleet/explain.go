package fleet

import (
	"fmt"
	"strings"
	"time"
)

func (p *place) because(format string, args ...any) {
	p.reasons = append(p.reasons, fmt.Sprintf(format, args...))
}

func count(n int, one string, many ...string) string {
	if n == 1 {
		return "1 " + one
	}
	if len(many) > 0 {
		return fmt.Sprintf("%d %s", n, many[0])
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// explain writes down why each member has what it is to have, and why each move is made.
func (pl *planner) explain() {
	for i := range pl.places {
		pl.result.Members[i].Reason = pl.reasonOf(&pl.places[i])
	}
	reasons := make(map[string]string, len(pl.result.Members))
	for i := range pl.result.Members {
		reasons[pl.result.Members[i].Member] = pl.result.Members[i].Reason
	}
	for i := range pl.result.Moves {
		m := &pl.result.Moves[i]
		m.Reason = reasons[m.Member]
		if m.By < 0 {
			m.Reason = "enough replicas are ready, or will be, without it"
		}
	}
	for i := range pl.result.Later {
		m := &pl.result.Later[i]
		m.Reason = "it waits until replacements are ready"
		if m.By > 0 {
			m.Reason = "it waits: ready replicas move at the pace of the FleetPlacement, and only in its disruption window"
		}
	}
}

func (pl *planner) reasonOf(p *place) string {
	since := "since " + p.UnreachableSince.UTC().Format(time.RFC3339)
	switch {
	case p.frozen == out:
		return "takes no part: " + p.out
	case p.frozen == lost:
		return "unreachable " + since + ": other members replace its replicas"
	case p.frozen == grace:
		return "unreachable " + since + ": its replicas count until the grace period ends"
	case p.tier < 0:
		return "in no tier: its replicas stop when their replacements are ready"
	}
	said := []string{fmt.Sprintf("tier %d, weight %d", p.tier+1, max(p.choice.Weight, 1))}
	switch s := &p.Spot; {
	case pl.policy.SpotPercentage == 0:
	case p.dear():
		said = append(said, "spot is not cheaper than on-demand")
	case !s.DrySince.IsZero():
		said = append(said, "spot has had no room for more since "+s.DrySince.UTC().Format(time.RFC3339))
	case s.Room <= 0:
		said = append(said, "spot has no room for more")
	}
	if !p.OnDemand.DrySince.IsZero() {
		said = append(said, "on-demand has had no room for more since "+p.OnDemand.DrySince.UTC().Format(time.RFC3339))
	}
	if !pl.below(p) {
		said = append(said, "its maximum or the spread allows no more")
	}
	if p.bridges > 0 {
		said = append(said, count(p.bridges, "on-demand replica")+" until it is known whether spot has room elsewhere")
	}
	return strings.Join(append(said, p.reasons...), "; ")
}
