package reconcile

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestWhatAnEndingMeans(t *testing.T) {
	const before, middle = 3, 0.5
	for name, tc := range map[string]struct {
		end  ending
		want decision
	}{
		"done":    {ending{}, decision{outcome: codeDone}},
		"gone":    {ending{outcome: codeGone}, decision{outcome: codeGone, next: nextGone}},
		"requeue": {ending{result: Requeue("r")}, decision{outcome: codeRequeue, attempts: 4, reason: "r", next: nextRetry, after: 8 * time.Second}},
		"after":   {ending{result: RequeueAfter(time.Hour, "r")}, decision{outcome: codeRequeue, reason: "r", next: nextWait, after: time.Hour}},
		"past":    {ending{result: RequeueAfter(-time.Hour, "r")}, decision{outcome: codeRequeue, reason: "r", next: nextWait}},
		"error": {ending{err: errors.New("e")},
			decision{outcome: codeError, attempts: 4, reason: "backing off after an error", err: "e", next: nextRetry, after: 8 * time.Second}},
		"error and result": {ending{err: errors.New("e"), result: RequeueAfter(time.Hour, "r")},
			decision{outcome: codeError, attempts: 4, reason: "backing off after an error", err: "e", next: nextRetry, after: 8 * time.Second}},
		"terminal": {ending{err: fmt.Errorf("x: %w", TerminalError(errors.New("e")))},
			decision{outcome: codeTerminal, attempts: 4, err: "x: e", next: nextChange}},
		"panic": {ending{err: errors.New("panic: e"), outcome: codePanic},
			decision{outcome: codePanic, attempts: 4, reason: "backing off after a panic", err: "panic: e", next: nextRetry, after: 8 * time.Second}},
		"timeout of a terminal error": {ending{err: TerminalError(errors.New("e")), outcome: codeTimeout},
			decision{outcome: codeTimeout, attempts: 4, reason: "backing off after a missed deadline", err: "e", next: nextRetry, after: 8 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, judge(tc.end, before, usualPace, middle), cmp.AllowUnexported(decision{}, asking{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBackOffGrowsUpToItsMost(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.Uint32Range(1, 1<<31).Draw(rt, "n")
		now, next := rapid.Float64Range(0, 0.999).Draw(rt, "now"), rapid.Float64Range(0, 0.999).Draw(rt, "next")
		d := backoff(n, now)
		if d < 900*time.Millisecond || d > 330*time.Second {
			rt.Fatalf("delay %d is %v", n, d)
		}
		if n < 9 && backoff(n+1, next) <= d {
			rt.Fatalf("delay %d is %v and the next %v", n, d, backoff(n+1, next))
		}
	})
	if d := backoff(1, 0.5); d != time.Second {
		t.Errorf("the first delay is %v", d)
	}
	if d := backoff(100, 0.5); d != 5*time.Minute {
		t.Errorf("the longest delay is %v", d)
	}
}

func TestAClippedTextIsValidAndShort(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := strings.Repeat(rapid.StringOfN(rapid.RuneFrom(nil, unicode.L, unicode.N, unicode.P), 1, 20, -1).Draw(rt, "s"), rapid.IntRange(1, 400).Draw(rt, "n"))
		got := clip(s)
		if len(got) > maxErrorLength || (len(s) <= maxErrorLength) != (got == s) || !strings.HasPrefix(s, strings.TrimSuffix(got, "…")) {
			rt.Fatalf("clip of %d bytes gives %d: %q", len(s), len(got), got)
		}
	})
}
