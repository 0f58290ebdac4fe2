package policy

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/when"
)

// Window is a recurring time in which replicas may be moved: it opens whenever Schedule fires, and stays open for Duration.
// Use [ParseWindow]. It is read-only and safe for concurrent use.
//
// Clocks that change are met as cron(8) meets them. A time that the clock skips opens the window at the moment of the
// change. Of a time that comes twice the first opens it, or both where the schedule says every hour (an hour field that
// begins with *). Duration is time that passes, whatever the clock shows meanwhile.
type Window struct {
	// Schedule is the cron expression, in the time of Zone.
	Schedule string
	// Zone is the name of the IANA time zone; UTC where none was given.
	Zone string
	// Duration is how long the window stays open; more than zero.
	Duration time.Duration

	spec     *cron.SpecSchedule
	location *time.Location
	// hourly: the hour field begins with *.
	hourly bool
}

// Rules of the values, as problems and errors quote them.
const (
	ruleSchedule = "five cron fields (minute hour day month weekday) that match at some time"
	ruleDuration = "a Go duration of more than zero, such as 4h or 90m"
	ruleTimezone = "the name of an IANA time zone, such as Europe/Berlin"
	ruleWindow   = "schedule and duration together, and a time zone only with them, all on the same level"
)

// ParseWindow reads a schedule, a duration and the name of a time zone, which may be empty for UTC. An error says which of
// them is wrong.
func ParseWindow(schedule, duration, zone string) (*Window, error) {
	spec, err := parseSchedule(schedule)
	if err != nil {
		return nil, fmt.Errorf("disruption schedule %q: %w", phrase.Value(schedule), err)
	}
	d, err := parseDuration(duration)
	if err != nil {
		return nil, fmt.Errorf("disruption duration %q: %w", phrase.Value(duration), err)
	}
	location, err := parseTimezone(zone)
	if err != nil {
		return nil, fmt.Errorf("disruption time zone %q: %w", phrase.Value(zone), err)
	}
	return newWindow(schedule, spec, d, location), nil
}

func newWindow(schedule string, spec *cron.SpecSchedule, d time.Duration, location *time.Location) *Window {
	hour := strings.Fields(schedule)[1]
	return &Window{Schedule: schedule, Zone: location.String(), Duration: d, spec: spec, location: location, hourly: hour[0] == '*'}
}

// Contains reports whether the window is open at now: it opened within the last Duration, now included.
func (w *Window) Contains(now time.Time) bool {
	opened := w.Next(now.Add(-w.Duration))
	return !opened.IsZero() && !opened.After(now)
}

// OpenFor reports whether the window is open at now and stays so for at least d; one that shuts and opens at the same moment stays
// open.
func (w *Window) OpenFor(now time.Time, d time.Duration) bool {
	if !w.Contains(now) {
		return false
	}
	for at, end := now, now.Add(d); at.Before(end); {
		opened := w.Next(at.Add(-w.Duration)) // the opening that shuts next
		if opened.IsZero() || opened.After(at) {
			return false
		}
		at = opened.Add(w.Duration)
	}
	return true
}

// Next returns when the window opens next, after now; zero when it does not within five years.
//
// Between two changes of the clock, local time is elapsed time and an offset. So each such stretch is searched as if it
// were in UTC, which is what the cron library does well, and what happens at a change is decided here.
func (w *Window) Next(now time.Time) time.Time {
	at := now.In(w.location)
	from := asUTC(at)
	if start, _ := at.ZoneBounds(); !start.IsZero() {
		from = when.Later(from, w.repeatedUntil(start).Add(-time.Nanosecond))
	}
	for {
		fires := w.spec.Next(from)
		if fires.IsZero() {
			return time.Time{}
		}
		_, offset := at.Zone()
		opens := fires.Add(-time.Duration(offset) * time.Second)
		_, change := at.ZoneBounds()
		if change.IsZero() || opens.Before(change) {
			return opens.In(w.location)
		}
		if !w.hourly && fires.Before(asUTC(change)) {
			return change // the clock skips the time at which the window should open
		}
		at = change
		from = when.Later(asUTC(change), w.repeatedUntil(change)).Add(-time.Nanosecond)
	}
}

// repeatedUntil returns the local time until which, from a change of the clock on, everything has been there before; the
// zero time where that does not matter.
func (w *Window) repeatedUntil(change time.Time) time.Time {
	if w.hourly {
		return time.Time{}
	}
	return asUTC(change.Add(-time.Nanosecond)).Add(time.Nanosecond)
}

// asUTC returns what the clock on the wall shows, as if it stood in UTC.
func asUTC(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// String says when the window opens and for how long.
func (w *Window) String() string { return fmt.Sprintf("%q %s for %s", w.Schedule, w.Zone, w.Duration) }

var (
	errSchedule = errors.New("want " + ruleSchedule)
	errDuration = errors.New("want " + ruleDuration)
	errTimezone = errors.New("want " + ruleTimezone)

	fiveFields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

	// aYear is a time from which every schedule that can ever match does so within five years: 29 February is near.
	aYear = time.Date(2027, time.March, 1, 0, 0, 0, 0, time.UTC)
)

// parseSchedule is stricter than the library: no time zone (it would panic on one without fields), no names for whole
// schedules, and no schedule that never matches (looking for its next time is slow, and unsuccessful).
func parseSchedule(schedule string) (*cron.SpecSchedule, error) {
	if len(schedule) > 256 || strings.Contains(schedule, "=") || strings.Contains(schedule, "@") {
		return nil, errSchedule
	}
	parsed, err := fiveFields.Parse(schedule)
	if err != nil {
		return nil, errSchedule
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok || spec.Minute == 0 || spec.Hour == 0 || spec.Dom == 0 || spec.Month == 0 || spec.Dow == 0 {
		return nil, errSchedule
	}
	spec.Location = time.UTC
	if spec.Next(aYear).IsZero() {
		return nil, errSchedule
	}
	return spec, nil
}

func parseDuration(duration string) (time.Duration, error) {
	d, err := time.ParseDuration(duration)
	if err != nil || d <= 0 {
		return 0, errDuration
	}
	return d, nil
}
