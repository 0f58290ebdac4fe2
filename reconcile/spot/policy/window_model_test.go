package policy_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// clockChanges are zones and times near which their clocks change: by an hour, by half of one, by two, by a whole day, at
// midnight, never.
var clockChanges = map[string][]string{
	"Europe/Berlin":       {"2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z"},
	"America/New_York":    {"2026-03-08T07:00:00Z", "2026-11-01T06:00:00Z"},
	"Australia/Lord_Howe": {"2026-04-04T15:00:00Z", "2026-10-03T15:30:00Z"},
	"Antarctica/Troll":    {"2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z"},
	"Africa/Cairo":        {"2026-04-23T22:00:00Z", "2026-10-29T21:00:00Z"},
	"Pacific/Apia":        {"2011-12-30T10:00:00Z", "2011-09-24T14:00:00Z"},
	"Asia/Kathmandu":      {"2026-01-01T00:00:00Z"},
	"UTC":                 {"2026-02-28T12:00:00Z"},
}

func TestAWindowIsOpenExactlyWhenALookAtEveryMinuteSaysSo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom(slices.Sorted(maps.Keys(clockChanges))).Draw(t, "zone")
		change, err := time.Parse(time.RFC3339, rapid.SampledFrom(clockChanges[zone]).Draw(t, "change"))
		if err != nil {
			t.Fatal(err)
		}
		schedule := drawSchedule(t)
		minutes := rapid.IntRange(1, 30*60).Draw(t, "minutes")
		w, err := policy.ParseWindow(schedule, fmt.Sprintf("%dm", minutes), zone)
		if err != nil {
			t.Skip("the schedule never matches")
		}
		first := change.Add(time.Duration(rapid.IntRange(-30*60, 6*60).Draw(t, "from")) * time.Minute)
		m := modelWindow{schedule: strings.Fields(schedule), location: locationOf(t, w)}
		open := 0 // minutes that are left
		for at := first.Add(-time.Duration(minutes) * time.Minute); at.Before(first.Add(30 * time.Hour)); at = at.Add(time.Minute) {
			if open--; m.opens(at) {
				open = minutes
			}
			if !at.Before(first) && w.Contains(at) != (open > 0) {
				t.Fatalf("%s: at %s (%s) it is open: %v", w, at.Format(time.RFC3339), at.In(locationOf(t, w)).Format(time.RFC3339), open <= 0)
			}
		}
	})
}

func TestTheNextOpeningIsTheFirstMinuteThatOpens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom(slices.Sorted(maps.Keys(clockChanges))).Draw(t, "zone")
		change, err := time.Parse(time.RFC3339, rapid.SampledFrom(clockChanges[zone]).Draw(t, "change"))
		if err != nil {
			t.Fatal(err)
		}
		w, err := policy.ParseWindow(drawSchedule(t), "1m", zone)
		if err != nil {
			t.Skip("the schedule never matches")
		}
		m := modelWindow{schedule: strings.Fields(w.Schedule), location: locationOf(t, w)}
		now := change.Add(time.Duration(rapid.IntRange(-30*3600, 6*3600).Draw(t, "seconds")) * time.Second)
		next := w.Next(now)
		if !next.After(now) {
			t.Fatalf("%s: %s is not after %s", w, next, now)
		}
		at := now.Truncate(time.Minute).Add(time.Minute)
		for end := at.Add(60 * time.Hour); at.Before(end) && !m.opens(at); at = at.Add(time.Minute) {
			if !next.After(at) {
				t.Fatalf("%s after %s: opens at %s, where no minute does", w, now, next)
			}
		}
		if m.opens(at) && !next.Equal(at) {
			t.Fatalf("%s after %s: opens at %s, want %s", w, now, next, at)
		}
	})
}

func drawSchedule(t *rapid.T) string {
	field := func(name string, low, high int) string {
		n := func(label string) string {
			return strconv.Itoa(rapid.IntRange(low, high).Draw(t, name+label))
		}
		switch rapid.IntRange(0, 4).Draw(t, name) {
		case 0:
			return "*/" + strconv.Itoa(rapid.IntRange(1, high).Draw(t, name+" step"))
		case 1:
			return n(" one") + "," + n(" two")
		case 2:
			a := rapid.IntRange(low, high).Draw(t, name+" first")
			return fmt.Sprintf("%d-%d", a, rapid.IntRange(a, high).Draw(t, name+" last"))
		case 3:
			return n(" at")
		}
		return "*"
	}
	days := rapid.SampledFrom([]string{"* * *", "* * 0", "* * 1-5", "29 * 6", "25 10 *"}).Draw(t, "days")
	return field("minute", 0, 59) + " " + field("hour", 0, 23) + " " + days
}

// modelWindow says for every minute whether a window opens there, by looking at the clock on the wall and nothing else.
type modelWindow struct {
	schedule []string // the five fields
	location *time.Location
}

func (m modelWindow) opens(at time.Time) bool {
	now, before := wall(at.In(m.location)), wall(at.Add(-time.Minute).In(m.location))
	hourly := strings.HasPrefix(m.schedule[1], "*")
	if m.matches(now) && (hourly || !m.again(at)) {
		return true
	}
	if hourly {
		return false
	}
	for skipped := before.Add(time.Minute); skipped.Before(now); skipped = skipped.Add(time.Minute) {
		if m.matches(skipped) {
			return true
		}
	}
	return false
}

// again reports whether the clock on the wall has shown the time of a minute before.
func (m modelWindow) again(at time.Time) bool {
	for back := range 3 * 60 {
		if earlier := at.Add(-time.Duration(back+1) * time.Minute); wall(earlier.In(m.location)).Equal(wall(at.In(m.location))) {
			return true
		}
	}
	return false
}

func (m modelWindow) matches(t time.Time) bool {
	f := m.schedule
	if !fieldMatches(f[0], t.Minute()) || !fieldMatches(f[1], t.Hour()) || !fieldMatches(f[3], int(t.Month())) {
		return false
	}
	day, weekday := fieldMatches(f[2], t.Day()), fieldMatches(f[4], int(t.Weekday()))
	if f[2] == "*" || f[4] == "*" {
		return day && weekday
	}
	return day || weekday
}

// fieldMatches reads the forms that drawSchedule writes.
func fieldMatches(field string, value int) bool {
	if field == "*" {
		return true
	}
	if step, ok := strings.CutPrefix(field, "*/"); ok {
		return value%atoi(step) == 0 // of minutes and hours, which count from 0
	}
	for part := range strings.SplitSeq(field, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		if atoi(low) <= value && value <= atoi(high) {
			return true
		}
	}
	return false
}

func atoi(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}

func wall(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), 0, 0, time.UTC)
}

// locationOf is the zone of a window.
func locationOf(t *rapid.T, w *policy.Window) *time.Location {
	location, err := time.LoadLocation(w.Zone)
	if err != nil {
		t.Fatal(err)
	}
	return location
}
