package policy

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func policyOf(percent, floor int) Policy {
	return Policy{Percentage: &percent, PercentageSource: SourceWorkload, MinOnDemand: &floor, MinOnDemandSource: SourceWorkload}
}

func drawMix(t *rapid.T) Mix {
	return Mix{
		Percent: rapid.OneOf(rapid.IntRange(0, 100), rapid.SampledFrom([]int{0, 30, 50, 70, 100})).Draw(t, "percent"),
		Floor:   rapid.OneOf(rapid.IntRange(0, 30), rapid.IntRange(0, 3)).Draw(t, "floor"), Managed: true,
	}
}

var testKeys = Keys{Prefix: DefaultPrefix}

func annotations(pairs ...string) map[string]string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[testKeys.Prefix+"/"+pairs[i]] = pairs[i+1]
	}
	return m
}

// mustWindow parses a window in UTC or, where one is given, another zone.
func mustWindow(t testing.TB, schedule, duration string, zone ...string) *Window {
	t.Helper()
	w, err := ParseWindow(schedule, duration, strings.Join(zone, ""))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
