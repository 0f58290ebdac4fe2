package hub

import (
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/clusters"
)

func TestAMemberIsOutOfReachSinceItsLastAnswer(t *testing.T) {
	now := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct{ answered, want time.Time }{
		"it answered some time ago": {now.Add(-25 * time.Second), now.Add(-25 * time.Second)},
		"it never answered":         {time.Time{}, now},
		"clocks have been set back": {now.Add(time.Hour), now},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lostSince(&clusters.Status{LastAnswer: test.answered, LastProbe: now}, now); !got.Equal(test.want) {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}
