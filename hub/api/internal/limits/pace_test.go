package limits

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
)

func TestACallerHasALimitOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPace(10)
		calls := func(user string, n int) (refused int) {
			for range n {
				if err := p.Allow(auth.Identity{User: user}); err != nil {
					if status.Code(err) != codes.ResourceExhausted || apierror.ReasonOf(err) != "TOO_MANY_CALLS" {
						t.Fatal(err)
					}
					refused++
				}
			}
			return refused
		}
		if refused := calls("alice", 50); refused != 30 {
			t.Errorf("%d of 50 calls at once are refused, want all but 20", refused)
		}
		if refused := calls("bob", 20); refused != 0 {
			t.Errorf("%d calls of another are refused", refused)
		}
		time.Sleep(time.Second)
		if refused := calls("alice", 15); refused != 5 {
			t.Errorf("%d of 15 calls a second later are refused, want 5", refused)
		}
		if refused := func() int { p = NewPace(-1); return calls("alice", 10_000) }(); refused != 0 {
			t.Errorf("%d calls are refused without a limit", refused)
		}
	})
}

// Connections are cheap to make: all who share a name have a limit together.
func TestCallersWhoShareANameHaveALimitTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, allowed := NewPace(10), 0
		const connections = 10 * allApart
		for n := range 20 * connections { // each makes no more calls than it may
			if p.Allow(auth.Identity{User: "unauthenticated", Connection: fmt.Sprint("127.0.0.1:", n%connections)}) == nil {
				allowed++
			}
		}
		if want := 20 * allApart; allowed != want {
			t.Errorf("%d calls at once of %d connections are let in, want %d", allowed, connections, want)
		}
	})
}

// A caller has what the limit gives over any time, and not a full bucket every now and then.
func TestALimitThatIsReachedForLongIsNotFilledInBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, allowed := NewPace(10), 0
		const seconds = 60
		for range seconds * 100 {
			if p.Allow(auth.Identity{User: "alice"}) == nil {
				allowed++
			}
			time.Sleep(10 * time.Millisecond)
		}
		if most := 10*seconds + 20; allowed > most+1 {
			t.Errorf("%d calls in a minute, want at most %d", allowed, most)
		}
		time.Sleep(2 * paceFor)
		if err := p.Allow(auth.Identity{User: "alice"}); err != nil {
			t.Errorf("after a pause: %v", err)
		}
	})
}
