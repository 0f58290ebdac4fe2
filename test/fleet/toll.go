package fleet

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// sightDelay is how late a hub may see what others do. What they took within it, a hub that evicts could not know of.
const sightDelay = 2 * time.Second

// A Toll is what it has cost a workload that replicas were moved, by the API server's audit log and the pods' history.
type Toll struct {
	// ByHub is how many pods the hub has evicted, and ReadyByHub how many of them were ready. A pod that several have evicted
	// is that of the first.
	ByHub, ReadyByHub int
	// ByOthers is how many pods others have evicted first, by user, and RefusedToOthers how many of their evictions a disruption
	// budget refused.
	ByOthers        map[string]int
	RefusedToOthers int
	// Breaks are the hub's evictions of ready on-demand replicas after which fewer than the floor were ready, those apart that
	// others had taken just before.
	Breaks []string
	// Lowest is the least number of ready on-demand replicas that there was, whoever took them.
	Lowest int
}

// Toll counts what has happened since the mark, which is no later than the history's begin.
func (h *History) Toll(since kube.Mark, floor int) (*Toll, error) {
	attempts, err := h.workload.Member.Cluster.Audit().Since(since, kube.EvictionAttempts, kube.InNamespace(h.workload.Namespace))
	if err != nil {
		return nil, err
	}
	moments, err := h.Moments()
	if err != nil {
		return nil, err
	}
	if len(moments) == 0 {
		return nil, fmt.Errorf("nothing has happened to %s", h.workload)
	}
	granted := slices.DeleteFunc(slices.Clone(attempts), func(e kube.AuditEvent) bool { return !kube.Evictions(e) })
	first := firstBy(granted)
	toll := judge(moments, first, floor)
	toll.countOthers(first, attempts)
	return toll, nil
}

// countOthers counts the evictions that are not the hub's.
func (t *Toll) countOthers(first map[string]string, attempts []kube.AuditEvent) {
	t.ByOthers = map[string]int{}
	for _, user := range first {
		if user != HubUser {
			t.ByOthers[user]++
		}
	}
	for _, e := range attempts {
		if e.User != HubUser && e.Code == http.StatusTooManyRequests {
			t.RefusedToOthers++
		}
	}
}

// firstBy is who evicted each pod first.
func firstBy(evictions []kube.AuditEvent) map[string]string {
	slices.SortStableFunc(evictions, func(a, b kube.AuditEvent) int { return a.Answered.Compare(b.Answered) })
	first := map[string]string{}
	for _, e := range evictions {
		if _, there := first[e.Name]; !there {
			first[e.Name] = e.User
		}
	}
	return first
}

// judge goes through the moments, with who evicted each pod first.
func judge(moments []Moment, evictedBy map[string]string, floor int) *Toll {
	toll := &Toll{Lowest: moments[0].ReadyOnDemand}
	var others []time.Time // when others took a ready on-demand replica
	for i := range moments {
		m := &moments[i]
		toll.Lowest = min(toll.Lowest, m.ReadyOnDemand)
		if !m.Left {
			continue
		}
		byHub, taken := evictedBy[m.Pod] == HubUser, m.WasReady && m.Capacity == kube.OnDemand
		switch {
		case !byHub && taken:
			others = append(others, m.At)
		case byHub:
			toll.ByHub++
			if m.WasReady {
				toll.ReadyByHub++
			}
			known := m.ReadyOnDemand + justNow(others, m.At)
			if taken && known < floor {
				toll.Breaks = append(toll.Breaks, fmt.Sprintf("after pod %s was evicted at %s, %d on-demand replicas were ready of a floor of %d", m.Pod, m.At.UTC().Format("15:04:05.000"), known, floor))
			}
		}
	}
	return toll
}

// justNow counts the times that are so close before this one that a hub could not have seen what happened then.
func justNow(times []time.Time, at time.Time) int {
	n := 0
	for _, t := range times {
		if at.Sub(t) <= sightDelay {
			n++
		}
	}
	return n
}
