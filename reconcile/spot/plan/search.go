package plan

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// searchInterval is the least time between two searches for pods without a slot, while what the owner's status and the
	// cache say has not changed. It doubles with each search that finds the same pods, up to searchMaxInterval: where nothing
	// may be written, or the API server refuses it, such pods stay for as long as that lasts.
	searchInterval    = 30 * time.Second
	searchMaxInterval = 30 * time.Minute
	// SearchPatience is how long the sign of such pods must stand before they are searched: right after a pod has gone,
	// the cache of pods is ahead of the owner's status.
	SearchPatience = time.Second
)

// Search decides when the pods of one owner that hold no slot are searched in a live list, and keeps what the last search found
// for the plans until the next one. The cache does not have them: the sign of them is that the owner counts more pods than the
// cache shows. The zero value has searched nothing. It is not safe for concurrent use.
type Search struct {
	status, visible int
	since, at       time.Time
	interval        time.Duration // from at to the next search
	found           []Pod         // nil: they were not searched yet; replaced, never changed
}

// Wanted reports whether pods without a slot should be searched for now, and notes that they are; if the sign of them is too
// fresh, or they were searched lately, it returns when to look again. status is how many pods the owner counts, and visible how
// many of those the cache and the reservations explain.
func (s *Search) Wanted(status, visible int, now time.Time) (search bool, recheck time.Time) {
	if status <= visible {
		*s = Search{}
		return false, time.Time{}
	}
	if s.since.IsZero() || s.status != status || s.visible != visible {
		*s = Search{status: status, visible: visible, since: now, interval: searchInterval}
	}
	if stands := s.since.Add(SearchPatience); now.Before(stands) {
		return false, stands
	}
	if next := s.at.Add(s.interval); now.Before(next) {
		return false, next
	}
	s.at = now
	return true, now.Add(s.interval)
}

// Keep remembers what a search found, and returns when to search again.
func (s *Search) Keep(found []Pod, now time.Time) time.Time {
	slices.SortFunc(found, func(a, b Pod) int { return ByAge(&a, &b) })
	again := slices.EqualFunc(found, s.found, func(a, b Pod) bool { return sameFound(&a, &b) })
	if s.found != nil && again {
		s.interval = min(2*s.interval, searchMaxInterval)
	} else {
		s.interval = searchInterval
	}
	s.found = found
	return now.Add(s.interval)
}

// sameFound reports whether a pod is as it was found before, as far as plans depend on it.
func sameFound(a, b *Pod) bool {
	return a.UID == b.UID && a.Ready == b.Ready && a.Node == b.Node && a.UnschedulableSince.Equal(b.UnschedulableSince)
}

// Found returns what the last search found, which the caller must not change.
func (s *Search) Found() []Pod { return s.found }

// FirstFound returns those of the pods that the search before did not find.
func (s *Search) FirstFound(found []Pod) []Pod {
	known := uids(s.found)
	return slices.DeleteFunc(slices.Clone(found), func(p Pod) bool { return known[p.UID] })
}

// Repeat drops what was found, for it is not true any more: the next search comes at once.
func (s *Search) Repeat() { s.at, s.found = time.Time{}, nil }

// WithoutKnown leaves out the pods that the cache shows: they got their slots since they were found. It changes found.
func WithoutKnown(found, cached []Pod) []Pod {
	if len(found) == 0 {
		return nil
	}
	known := uids(cached)
	return slices.DeleteFunc(found, func(p Pod) bool { return known[p.UID] })
}

func uids(pods []Pod) map[types.UID]bool {
	set := make(map[types.UID]bool, len(pods))
	for i := range pods {
		set[pods[i].UID] = true
	}
	return set
}

// Counted reports whether the controller of a pod counts it in its status. That of a StatefulSet (ordinals) counts whatever exists,
// also what is being deleted; that of a ReplicaSet what is active, and other kinds are taken to do the same.
func (p *Pod) Counted(ordinals bool) bool {
	return ordinals || (p.GoneBy.IsZero() && !p.Finished)
}
