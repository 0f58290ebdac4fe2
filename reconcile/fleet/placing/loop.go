package placing

import (
	"context"
	"time"
)

const (
	// beat is how often a round is made when nothing asks for one: all that it looks at is in memory.
	beat = time.Second
	// kickGap is how long after a round the next one begins at the earliest. Whoever asks for rounds gets five a second.
	kickGap = 200 * time.Millisecond
	// restTimes is how many times as long as a round took to think the next one waits at least, up to maxRest.
	restTimes = 10
	maxRest   = 10 * time.Second
)

// gaps are how long after a round that took so long to think the next one begins: at the earliest, when one is asked for, and
// at the latest.
func gaps(thought time.Duration) (earliest, latest time.Duration) {
	rest := min(restTimes*thought, maxRest)
	return max(kickGap, rest), max(beat, rest)
}

// loop makes rounds until ctx ends. A round returns how long it took to think.
func loop(ctx context.Context, kick <-chan struct{}, round func() time.Duration) {
	late, soon := time.NewTimer(0), time.NewTimer(0)
	defer late.Stop()
	defer soon.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-soon.C:
		}
		select {
		case <-ctx.Done():
			return
		case <-late.C:
		case <-kick:
		}
		earliest, latest := gaps(round())
		soon.Reset(earliest)
		late.Reset(latest)
	}
}
