package calls

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
)

func TestTheRefusalsOfAMemberWaitOnceTheyAreMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		r := NewRefusals()
		took := func(ctx context.Context, of string) time.Duration {
			started := time.Now()
			r.Wait(ctx, of)
			return time.Since(started)
		}
		for range RefusalBurst {
			g.Expect(took(t.Context(), "bad")).To(BeZero())
		}
		g.Expect(took(t.Context(), "bad")).To(Equal(refusalDelay))
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
