package spot

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Window is a recurring time in which evictions are allowed: it opens whenever Schedule fires, and stays open for Duration.
// Use [ParseWindow].
type Window struct {
	// Schedule is the cron expression, in UTC.
	Schedule string
	// Duration is how long the window stays open; more than zero.
	Duration time.Duration

	spec *cron.SpecSchedule
}

// Rules of the two values, as problems and errors quote them.
const (
	ruleSchedule = "five cron fields in UTC (minute hour day month weekday), which match at some time"
	ruleDuration = "a Go duration of more than zero, such as 4h or 90m"
	ruleWindow   = "schedule and duration are set both or neither"
)

// ParseWindow reads a schedule and a duration. An error says which of them is wrong.
func ParseWindow(schedule, duration string) (*Window, error) {
	spec, err := parseSchedule(schedule)
	if err != nil {
		return nil, fmt.Errorf("disruption schedule %q: %w", shorten(schedule), err)
	}
	d, err := parseDuration(duration)
	if err != nil {
		return nil, fmt.Errorf("disruption duration %q: %w", shorten(duration), err)
	}
	return &Window{Schedule: schedule, Duration: d, spec: spec}, nil
}

// Contains tells whether the window is open at now: it fired within the last Duration, now included.
func (w *Window) Contains(now time.Time) bool {
	opened := w.spec.Next(now.UTC().Add(-w.Duration))
	return !opened.IsZero() && !opened.After(now)
}

// Next returns when the window opens next, after now; zero when it does not within five years.
func (w *Window) Next(now time.Time) time.Time {
	return w.spec.Next(now.UTC())
}

// String says when the window opens and for how long.
func (w *Window) String() string { return fmt.Sprintf("%q for %s", w.Schedule, w.Duration) }

var (
	errSchedule = errors.New("want " + ruleSchedule)
	errDuration = errors.New("want " + ruleDuration)

	fiveFields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

	// aYear is a time from which every schedule that can ever match does so within five years: 29 February is near.
	aYear = time.Date(2027, time.March, 1, 0, 0, 0, 0, time.UTC)
)

// parseSchedule is stricter than the library: no time zone (it would panic on one without fields), no names for whole
// schedules, and no schedule that never matches (looking for its next time is slow, and in vain).
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
