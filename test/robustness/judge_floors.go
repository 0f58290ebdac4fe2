package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// sight is how late a replica may see what others do, when nothing keeps it from seeing.
const sight = 2 * time.Second

// A Career is what became of a workload's pods.
type Career struct {
	Workload string
	// Moments in the API server's order.
	Moments []fleet.Moment
	// Wishes in the order in which they were asked for, one at least.
	Wishes []Wish
	// Steady says that only one wish there was, and no rollout.
	Steady bool
	// EvictedBy is the process that was granted the first eviction of a pod, by its name, and "" where somebody else was.
	EvictedBy map[string]string
}

// sighted says since when a process can have seen everything that happened in members, at a time.
type sighted func(process string, at time.Time) time.Time

// sightOf derives it from the faults that there were, and from how slow the machine was.
func sightOf(faults []Injection, slow *slowness) sighted {
	return func(process string, at time.Time) time.Time {
		since := at.Add(-sight)
		since = since.Add(-slow.longest(since, at))
		for i := range faults {
			f := &faults[i]
			if f.blinds() && f.Replica == replicaOf(process) && f.From.Before(at) && f.To.Add(sight).After(at) && f.From.Before(since) {
				since = f.From
			}
		}
		return since
	}
}

// floorBreaks finds evictions by the hub of ready on-demand replicas after which fewer than the floor were ready, those apart
// that others had taken just before and the hub could not have seen gone; and, where only churn went on, moments at which all
// replicas were there and fewer than the floor were on-demand although the hub has placed each of them.
func floorBreaks(c *Career, since sighted) (broken []string) {
	others := make([]time.Time, 0, len(c.Moments)) // when others took a ready on-demand replica
	for i := range c.Moments {
		m := &c.Moments[i]
		process := c.EvictedBy[m.Pod]
		taken := m.Left && m.WasReady && m.Capacity == kube.OnDemand
		switch {
		case taken && process == "":
			others = append(others, m.At)
		case taken:
			from := since(process, m.At)
			unseen := len(slices.DeleteFunc(slices.Clone(others), func(at time.Time) bool { return at.Before(from) }))
			if floor := floorAt(c.Wishes, from, m.At); m.ReadyOnDemand+unseen < floor {
				broken = append(broken, fmt.Sprintf("%s: after %s evicted %s at %s, %d on-demand replicas were ready (%d taken by others just before) of a floor of %d",
					c.Workload, process, m.Pod, m.At.Format(clock), m.ReadyOnDemand, unseen, floor))
			}
		}
		if c.Steady {
			broken = append(broken, misplaced(c, m)...)
		}
	}
	return broken
}

// misplaced judges a moment of a workload whose wish never changed.
func misplaced(c *Career, m *fleet.Moment) []string {
	wish := c.Wishes[0]
	whole := m.Mix.All() == wish.Replicas && m.Mix.Leaving == 0
	if !whole || m.Mix.OnDemand+m.Mix.Unknown+m.Slipped >= wish.Floor {
		return nil
	}
	return []string{fmt.Sprintf("%s: after a change of %s at %s there are %s, of a floor of %d", c.Workload, m.Pod, m.At.Format(clock), m.Mix, wish.Floor)}
}

// floorAt is the least floor that somebody may have believed in at a time who saw everything that happened until from.
func floorAt(wishes []Wish, from, at time.Time) int {
	floor := -1
	for i, w := range wishes {
		superseded := i+1 < len(wishes) && !wishes[i+1].Answered.IsZero() && wishes[i+1].Answered.Before(from)
		if superseded || w.Asked.After(at) {
			continue
		}
		if here := min(w.Floor, w.Replicas); floor < 0 || here < floor {
			floor = here
		}
	}
	return max(floor, 0)
}
