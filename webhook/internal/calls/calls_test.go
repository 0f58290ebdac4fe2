package calls

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
)

func TestTheRefusalsOfAMemberAreSentOneAfterTheOtherOnceTheyAreMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		r := NewRefusals()
		took := func(ctx context.Context, of string) time.Duration {
			started := time.Now()
			r.Wait(ctx, of)
			return time.Since(started)
		}
		const apart = time.Second / refusalRate
		for range RefusalBurst {
			g.Expect(took(t.Context(), "bad")).To(BeZero())
		}
		for range 3 {
			g.Expect(took(t.Context(), "bad")).To(Equal(apart))
		}
		delays := make(chan time.Duration, 10*maxRefusalDebt)
		for range cap(delays) {
			go func() { delays <- took(t.Context(), "bad") }()
		}
		var all, longest time.Duration
		for range cap(delays) {
			delay := <-delays
			all, longest = all+delay, max(longest, delay)
		}
		g.Expect(longest).To(Equal(maxRefusalDelay), "however many there are")
		g.Expect(all).To(BeNumerically(">", time.Duration(cap(delays)-maxRefusalDebt)*maxRefusalDelay))
		g.Expect(took(t.Context(), "bad")).To(BeNumerically("<=", 2*apart), "those that waited for the longest time leave nothing behind")

		gone, leave := context.WithCancel(t.Context())
		leave()
		time.Sleep(time.Minute) // the member is quiet for a while
		for range RefusalBurst {
			g.Expect(took(gone, "bad")).To(BeZero())
		}
		g.Expect(took(gone, "bad")).To(BeZero(), "who called is gone")
	})
}

func TestACallSaysHowLongItIs(t *testing.T) {
	g := NewWithT(t)
	g.Expect(RefusedLength(-1, 10)).To(Equal(http.StatusLengthRequired))
	g.Expect(RefusedLength(11, 10)).To(Equal(http.StatusRequestEntityTooLarge))
	g.Expect(RefusedLength(10, 10)).To(BeZero())
}
