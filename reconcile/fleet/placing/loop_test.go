package placing

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestRoundsArePacedHoweverOftenOneIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		rounds, kick := 0, make(chan struct{}, 1)
		loop(ctx, kick, func() time.Duration {
			kick <- struct{}{} // as a member's agent does that has its answer at once
			rounds++
			return 0
		})
		if rounds < 45 || rounds > 52 {
			t.Errorf("%d rounds in 10 s", rounds)
		}
	})
}

func TestARoundIsMadeEverySecondAndAtOnceWhenSomethingHasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5400*time.Millisecond)
		defer cancel()
		began, kick := time.Now(), make(chan struct{}, 1)
		var at []time.Duration
		time.AfterFunc(2500*time.Millisecond, func() { kick <- struct{}{} })
		loop(ctx, kick, func() time.Duration { at = append(at, time.Since(began)); return time.Millisecond })
		want := []time.Duration{0, 1000, 2000, 2500, 3500, 4500}
		for i := range want {
			if len(at) != len(want) || at[i] != want[i]*time.Millisecond {
				t.Fatalf("%v", at)
			}
		}
	})
}

func TestRoundsThatThinkForLongAreFewer(t *testing.T) {
	for thought, want := range map[time.Duration][2]time.Duration{
		0: {kickGap, beat}, 50 * time.Millisecond: {500 * time.Millisecond, beat}, 300 * time.Millisecond: {3 * time.Second, 3 * time.Second}, time.Hour: {maxRest, maxRest},
	} {
		if earliest, latest := gaps(thought); earliest != want[0] || latest != want[1] {
			t.Errorf("%s: %s, %s", thought, earliest, latest)
		}
	}
}

// A hub cluster that does not answer writes holds a round up once, and not for each FleetPlacement; and the next round comes as soon
// as after any other.
func TestAHubClusterThatHangsIsNotRestedFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := web(9, 3)
		other.Name, other.UID, other.Spec.TargetRef.Name = "other", "2", "other"
		b := newBench(t, web(9, 3), other)
		b.rounds(1)
		b.hubHung = true
		b.see()
		began := time.Now()
		thought := b.round(b.Context(), b.now)
		if took := time.Since(began); took != hubWrite || thought > time.Second {
			t.Errorf("it took %s, of which it thought %s", took, thought)
		}
		b.agents.wait()
	})
}
