package spot

import (
	"testing"
	"time"
)

func mustWindow(t testing.TB, schedule, duration string) *Window {
	t.Helper()
	w, err := ParseWindow(schedule, duration)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestAWindowIsOpenFromItsMinuteForItsDuration(t *testing.T) {
	w := mustWindow(t, "0 2 * * *", "4h")
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

func TestAWindowIsInUTCWhateverTheCallersZone(t *testing.T) {
	w := mustWindow(t, "0 2 * * *", "1h")
	tokyo := time.FixedZone("JST", 9*3600)
	if !w.Contains(time.Date(2026, 5, 1, 11, 30, 0, 0, tokyo)) {
		t.Error("11:30 in Tokyo is 02:30 in UTC")
	}
	if w.Contains(time.Date(2026, 5, 1, 2, 30, 0, 0, tokyo)) {
		t.Error("02:30 in Tokyo is 17:30 in UTC")
	}
}

func TestOverlappingWindowsStayOpen(t *testing.T) {
	w := mustWindow(t, "*/10 * * * *", "15m")
	start := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	for i := range 60 {
		if !w.Contains(start.Add(time.Duration(i) * time.Minute)) {
			t.Fatalf("closed at minute %d", i)
		}
	}
}

func TestSchedulesThatNeverMatchAreRefusedAtOnce(t *testing.T) {
	for _, schedule := range []string{"0 0 30 2 *", ", * * * *", "* , * * *", "* * , * *", "* * * , *", "* * * * ,",
		"TZ=", "CRON_TZ=UTC 0 0 * * *", "@every 1h", "0 2 * *", "0 0 2 * * *", "60 * * * *", "* * * * 8", ""} {
		if _, err := ParseWindow(schedule, "1h"); err == nil {
			t.Errorf("%q is accepted", schedule)
		}
	}
}

func TestDurationsMustBeMoreThanZero(t *testing.T) {
	for _, duration := range []string{"", "0", "0s", "-1h", "4", "4 hours"} {
		if _, err := ParseWindow("0 2 * * *", duration); err == nil {
			t.Errorf("%q is accepted", duration)
		}
	}
}
