package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// A Write is one that a process asked a member for, whatever came of it.
type Write struct {
	Process, Member string
	// At is when the member's API server received it.
	At time.Time
	// What it was, for messages.
	What string
}

// changes passes what the hub asked for in order to change something. Reviews of its own rights change nothing, and Events only
// say what was done.
var changes = kube.All(fleet.ByHub, kube.ByVerb("create", "update", "patch", "delete", "deletecollection"), kube.Not(kube.DryRun),
	kube.Not(review), kube.Not(kube.OnResource("events")))

func review(e kube.AuditEvent) bool {
	return e.APIGroup == "authentication.k8s.io" || e.APIGroup == "authorization.k8s.io"
}

// writesIn are the hub's writes in a member's audit log. The proxies have put the process before its user agent.
func writesIn(member string, events []kube.AuditEvent) (writes []Write) {
	for _, e := range events {
		if !changes(e) {
			continue
		}
		process, _, _ := strings.Cut(e.UserAgent, " ")
		writes = append(writes, Write{
			Process: process, Member: member, At: e.Received, What: fmt.Sprintf("%s %s (%d)", e.Verb, e.URI, e.Code),
		})
	}
	return writes
}

// A Tenure is a time in which a process may act by what it was granted, without a break.
type Tenure struct {
	Process     string
	From, Until time.Time
}

func (t *Tenure) has(at time.Time) bool { return !at.Before(t.From) && at.Before(t.Until) }

// tenures puts grants together, by process. A record without a holder ends the tenure of who wrote it.
func tenures(grants []Grant) map[string][]Tenure {
	grants = slices.Clone(grants)
	slices.SortStableFunc(grants, func(a, b Grant) int { return a.At.Compare(b.At) })
	all := map[string][]Tenure{}
	for _, g := range grants {
		of := all[g.Process]
		var last *Tenure
		if len(of) > 0 && of[len(of)-1].has(g.At) {
			last = &of[len(of)-1]
		}
		switch until := g.At.Add(g.Duration); {
		case g.Holder == "" && last != nil:
			last.Until = g.At
		case g.Holder == "":
		case last != nil:
			last.Until = until
		default:
			all[g.Process] = append(of, Tenure{Process: g.Process, From: g.At, Until: until})
		}
	}
	return all
}

// doubleWrites finds what was written without a tenure, and what was written while the tenure of another process, which had
// written under it before, was not over. What may have been sent in time and only arrived late is undecided: everything took as
// long on its way then.
func doubleWrites(grants []Grant, writes []Write, slow *slowness) (wrong, undecided []string) {
	held := tenures(grants)
	writes = slices.Clone(writes)
	slices.SortStableFunc(writes, func(a, b Write) int { return a.At.Compare(b.At) })
	began := map[*Tenure]Write{} // the first write of each tenure
	for _, w := range writes {
		own := tenureAt(held[w.Process], w.At)
		if own == nil {
			sentence := fmt.Sprintf("%s by %s at %s in %s: %s", w.What, w.Process, w.At.Format(clock), w.Member, lateness(held[w.Process], w.At))
			if slow.excuses(lastEnd(held[w.Process], w.At), w.At) {
				undecided = append(undecided, sentence)
			} else {
				wrong = append(wrong, sentence)
			}
		} else if _, has := began[own]; !has {
			began[own] = w
		}
		for other, first := range began {
			if other.Process != w.Process && other.has(w.At) {
				wrong = append(wrong, fmt.Sprintf("%s by %s at %s in %s: %s has written since %s and may until %s",
					w.What, w.Process, w.At.Format(clock), w.Member, other.Process, first.At.Format(clock), other.Until.Format(clock)))
			}
		}
	}
	return wrong, undecided
}

func tenureAt(of []Tenure, at time.Time) *Tenure {
	for i := range of {
		if of[i].has(at) {
			return &of[i]
		}
	}
	return nil
}

// lastEnd is when the last tenure before a time ended; zero: there was none.
func lastEnd(of []Tenure, at time.Time) (end time.Time) {
	for _, t := range of {
		if t.Until.After(end) && !t.Until.After(at) {
			end = t.Until
		}
	}
	return end
}

func lateness(of []Tenure, at time.Time) string {
	end := lastEnd(of, at)
	if end.IsZero() {
		return "it has never held the Lease"
	}
	return fmt.Sprintf("its Lease ended %s before", at.Sub(end).Round(time.Millisecond))
}
