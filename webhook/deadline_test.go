package webhook

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestADeadlineContextBehavesLikeOneOfTheLibrary(t *testing.T) {
	type step func(ctx context.Context, cancelParent, cancel func())
	for name, steps := range map[string]step{
		"its time is over":                    func(context.Context, func(), func()) { time.Sleep(2 * time.Second) },
		"its time is over, Done asked before": func(ctx context.Context, _, _ func()) { ctx.Done(); time.Sleep(2 * time.Second) },
		"the call is gone":                    func(_ context.Context, cancelParent, _ func()) { cancelParent() },
		"the call is gone, Done asked before": func(ctx context.Context, cancelParent, _ func()) { ctx.Done(); cancelParent() },
		"it was cancelled":                    func(_ context.Context, _, cancel func()) { cancel() },
		"it was cancelled, Done asked before": func(ctx context.Context, _, cancel func()) { ctx.Done(); cancel() },
		"nothing happened":                    func(context.Context, func(), func()) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				parent, cancelParent := context.WithCancel(t.Context())
				defer cancelParent()
				until := time.Now().Add(time.Second)
				want, cancelWant := context.WithDeadline(parent, until)
				defer cancelWant()
				got := withDeadline(parent, until)
				defer got.cancel()
				steps(got, cancelParent, func() { got.cancel(); cancelWant() })
				synctest.Wait()
				if !errors.Is(got.Err(), want.Err()) {
					t.Errorf("error %v, want %v", got.Err(), want.Err())
				}
				if at, ok := got.Deadline(); !ok || !at.Equal(until) {
					t.Errorf("deadline %v", at)
				}
				derived, stop := context.WithCancel(got)
				defer stop()
				synctest.Wait()
				if (derived.Err() != nil) != (want.Err() != nil) {
					t.Errorf("a context derived from it says %v, want %v", derived.Err(), want.Err())
				}
				select {
				case <-got.Done():
					if want.Err() == nil {
						t.Error("it is done")
					}
				default:
					if want.Err() != nil {
						t.Error("it is not done")
					}
				}
			})
		})
	}
}
