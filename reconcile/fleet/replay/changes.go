package replay

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Open is the capacity of a supply that is not known to have a limit.
const Open = 10_000

// changeGap is how many seconds a sample of changes represents, and maxChanged how many there are at most.
const (
	changeGap  = 60
	maxChanged = 2_000_000
)

// errYoung says that a history is too short to be replayed.
var errYoung = errors.New("there is nothing to replay yet")

// Change says what the capacity of a zone is from a moment on.
type Change struct {
	// At in seconds since 1970.
	At int64 `json:"t"`
	// Capacity is how many replicas it runs; [Open]: no limit is known.
	Capacity int `json:"capacity"`
}

// sampleAll makes samples of changes: of all zones from the first change of any to the last. A zone that was recorded later was no
// member before, and ran nothing. Where older changes were forgotten nobody knows what it ran, and the samples begin with the first
// that is left.
func sampleAll(zones []zoneFile) error {
	changed := 0
	from, known, to := int64(math.MaxInt64), int64(math.MinInt64), int64(0)
	for i := range zones {
		all := zones[i].Changes
		if len(all) == 0 {
			continue
		}
		if changed++; len(zones[i].Data) > 0 {
			return errors.New("a zone has data and changes: it must have one of them")
		}
		if !slices.IsSortedFunc(all, func(a, b Change) int { return int(min(max(a.At-b.At, -1), 1)) }) {
			return errors.New("changes are not in the order of their times")
		}
		from, to = min(from, all[0].At), max(to, all[len(all)-1].At)
		if zones[i].Metadata.Forgotten {
			known = max(known, all[0].At)
		}
	}
	from = max(from, known)
	switch {
	case changed == 0:
		return nil
	case changed < len(zones):
		return errors.New("some zones of the folder have changes and some have data")
	case (to-from)/changeGap < 1:
		return fmt.Errorf("its changes are within %d seconds: %w", changeGap, errYoung)
	case (to-from)/changeGap > maxChanged:
		return fmt.Errorf("its changes reach over %d seconds, which is too long", to-from)
	}
	for i := range zones {
		zones[i].sample(from, to)
	}
	return nil
}

// sample fills in Data. A sample has the lowest capacity of its time, so that no loss is left out.
func (z *zoneFile) sample(from, to int64) {
	z.Metadata.Gap = changeGap
	next, now := 0, 0
	for at := from; at < to; at += changeGap {
		for next < len(z.Changes) && z.Changes[next].At <= at {
			now = z.Changes[next].Capacity
			next++
		}
		least := now
		for next < len(z.Changes) && z.Changes[next].At < at+changeGap {
			now = z.Changes[next].Capacity
			least = min(least, now)
			next++
		}
		z.Data = append(z.Data, least)
	}
}
