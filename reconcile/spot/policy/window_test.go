package policy_test

import (
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

func TestAWindowIsOpenFromItsMinuteForItsDuration(t *testing.T) {
	w := spottest.MustWindow(t, "0 2 * * *", "4h")
	day := time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC)
	for hours, want := range map[float64]bool{0: false, 1.99: false, 2: true, 3: true, 5.99: true, 6: false, 23: false, 26: true} {
		if got := w.Contains(day.Add(time.Duration(hours * float64(time.Hour)))); got != want {
			t.Errorf("at %v h: open %v", hours, got)
		}
	}
	if got := w.Next(day.Add(3 * time.Hour)); !got.Equal(day.Add(26 * time.Hour)) {
		t.Errorf("next %v", got)
	}
}

func TestAWindowWithoutZoneIsInUTCWhateverTheCallersZone(t *testing.T) {
	w := spottest.MustWindow(t, "0 2 * * *", "1h")
	tokyo := time.FixedZone("JST", 9*3600)
	if !w.Contains(time.Date(2026, 5, 1, 11, 30, 0, 0, tokyo)) {
		t.Error("11:30 in Tokyo is 02:30 in UTC")
	}
	if w.Contains(time.Date(2026, 5, 1, 2, 30, 0, 0, tokyo)) {
		t.Error("02:30 in Tokyo is 17:30 in UTC")
	}
}

func TestOverlappingWindowsStayOpen(t *testing.T) {
	for _, w := range []*policy.Window{spottest.MustWindow(t, "*/10 * * * *", "15m"), spottest.MustWindow(t, "0 2,14 * * *", "13h", "Europe/Berlin")} {
		start := time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC)
		for minute := range 3 * 24 * 60 {
			if !w.Contains(start.Add(time.Duration(minute) * time.Minute)) {
				t.Fatalf("%s is closed at minute %d", w, minute)
			}
		}
	}
}

// In Berlin the clock went from 02:00 CET to 03:00 CEST on 29 March 2026, and from 03:00 CEST to 02:00 CET on 25 October.
func TestAWindowMeetsAChangeOfTheClockAsCronDoes(t *testing.T) {
	for name, c := range map[string]struct {
		schedule, duration string
		open, closed       []string
	}{
		"a start that the clock skips opens the window at the change": {"30 2 * * *", "1h",
			[]string{"2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:59:59Z", "2026-03-30T00:30:00Z"},
			[]string{"2026-03-29T00:59:59Z", "2026-03-29T02:00:00Z", "2026-03-30T00:29:59Z"}},
		"a start that comes twice opens the window once": {"30 2 * * *", "20m",
			[]string{"2026-10-25T00:30:00Z", "2026-10-25T00:49:59Z", "2026-10-26T01:30:00Z"},
			[]string{"2026-10-25T00:50:00Z", "2026-10-25T01:30:00Z", "2026-10-25T01:45:00Z"}},
		"an hourly start opens the window in both of the hours": {"30 * * * *", "20m",
			[]string{"2026-10-25T00:35:00Z", "2026-10-25T01:35:00Z", "2026-03-29T00:35:00Z", "2026-03-29T01:35:00Z"},
			[]string{"2026-10-25T00:55:00Z", "2026-10-25T01:55:00Z", "2026-03-29T01:00:00Z"}},
		"the duration is elapsed time when an hour is skipped": {"0 1 * * *", "4h",
			[]string{"2026-03-29T00:00:00Z", "2026-03-29T03:59:59Z"}, []string{"2026-03-28T23:59:59Z", "2026-03-29T04:00:00Z"}},
		"the duration is elapsed time when an hour is repeated": {"0 1 * * *", "4h",
			[]string{"2026-10-24T23:00:00Z", "2026-10-25T02:59:59Z"}, []string{"2026-10-24T22:59:59Z", "2026-10-25T03:00:00Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := spottest.MustWindow(t, c.schedule, c.duration, "Europe/Berlin")
			for open, times := range map[bool][]string{true: c.open, false: c.closed} {
				for _, text := range times {
					at, err := time.Parse(time.RFC3339, text)
					if err != nil {
						t.Fatal(err)
					}
					if w.Contains(at) != open {
						t.Errorf("at %s it is open: %v", text, !open)
					}
				}
			}
		})
	}
}

func TestSchedulesThatNeverMatchAreRefusedAtOnce(t *testing.T) {
	for _, schedule := range []string{"0 0 30 2 *", ", * * * *", "* , * * *", "* * , * *", "* * * , *", "* * * * ,",
		"TZ=", "CRON_TZ=UTC 0 0 * * *", "@every 1h", "0 2 * *", "0 0 2 * * *", "60 * * * *", "* * * * 8", ""} {
		if _, err := policy.ParseWindow(schedule, "1h", ""); err == nil {
			t.Errorf("%q is accepted", schedule)
		}
	}
}

func TestCronIsReadInItsUsualForms(t *testing.T) {
	for schedule, open := range map[string]string{
		"0 2 * * MON-FRI":  "2026-05-01T02:00:00Z", // a Friday
		"0 2 * * 5":        "2026-05-01T02:00:00Z",
		"0 2 1 * *":        "2026-05-01T02:00:00Z",
		"0 2 13 * FRI":     "2026-05-01T02:00:00Z", // either of the two days will do
		"0,30 1-3 * MAY *": "2026-05-01T02:00:00Z",
		"*/20 */2 ? 5 ?":   "2026-05-01T02:00:00Z",
		"0 0 29 2 *":       "2028-02-29T00:00:00Z",
	} {
		at, err := time.Parse(time.RFC3339, open)
		if err != nil {
			t.Fatal(err)
		}
		if w := spottest.MustWindow(t, schedule, "1m"); !w.Contains(at) || w.Contains(at.Add(-time.Second)) {
			t.Errorf("%s does not open at %s", w, open)
		}
	}
}

func TestDurationsMustBeMoreThanZero(t *testing.T) {
	for _, duration := range []string{"", "0", "0s", "-1h", "4", "4 hours"} {
		if _, err := policy.ParseWindow("0 2 * * *", duration, ""); err == nil {
			t.Errorf("%q is accepted", duration)
		}
	}
}

func TestATimeZoneIsNamedAsIANADoes(t *testing.T) {
	for _, zone := range []string{"", "UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5"} {
		if _, err := policy.ParseWindow("0 2 * * *", "1h", zone); err != nil {
			t.Errorf("%q: %v", zone, err)
		}
	}
	for _, zone := range []string{"Local", "Berlin", "+02:00", " UTC", "../Europe/Berlin", "/etc/localtime", "zone.tab"} {
		if _, err := policy.ParseWindow("0 2 * * *", "1h", zone); err == nil {
			t.Errorf("%q is accepted", zone)
		}
	}
}

func TestAWindowTellsHowLongItStaysOpen(t *testing.T) {
	for name, c := range map[string]struct {
		schedule, duration string
		at, open           time.Duration
		want               bool
	}{
		"at its start":                  {"0 4 * * *", "1h", 4 * time.Hour, time.Hour, true},
		"no longer than its duration":   {"0 4 * * *", "1h", 4 * time.Hour, time.Hour + time.Second, false},
		"near its end":                  {"0 4 * * *", "1h", 4*time.Hour + 58*time.Minute, 5 * time.Minute, false},
		"shut":                          {"0 4 * * *", "1h", 3 * time.Hour, 0, false},
		"the next opens as it shuts":    {"0 * * * *", "1h", 4*time.Hour + 58*time.Minute, 3 * time.Hour, true},
		"the next opens before it does": {"*/10 * * * *", "15m", 9 * time.Minute, time.Hour, true},
		"there is a gap":                {"*/10 * * * *", "9m", 8 * time.Minute, 5 * time.Minute, false},
	} {
		if got := spottest.MustWindow(t, c.schedule, c.duration).OpenFor(spottest.Epoch.Add(c.at), c.open); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
