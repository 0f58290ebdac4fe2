package reconcile

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/retry"
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
			if diff := cmp.Diff(tc.want, judge(tc.end, before, retry.Usual, middle), cmp.AllowUnexported(decision{}, asking{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
