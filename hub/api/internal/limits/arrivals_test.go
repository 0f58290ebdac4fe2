package limits

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestCallsThatArriveGiveTheirPlacesBackOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		a := NewArrivals(4, time.Second)
		begin := func(of context.Context) context.Context {
			ctx, err := a.Begin(of, "here")
			g.Expect(err).NotTo(HaveOccurred())
			return ctx
		}
		full := func() {
			_, err := a.Begin(t.Context(), "here")
			g.ExpectWithOffset(1, status.Code(err)).To(Equal(codes.ResourceExhausted))
		}
		first, end := context.WithCancel(t.Context())
		ended, arrives := begin(first), begin(t.Context())
		full()

		Arrived(arrives)
		Arrived(arrives)
		begins := begin(t.Context())
		full()

		end()
		synctest.Wait()
		Arrived(ended)
		begin(t.Context())
		full()

		time.Sleep(2 * time.Second)
		synctest.Wait()
		g.Expect(begins.Err()).To(MatchError(context.Canceled), "it took too long")
		g.Expect(arrives.Err()).NotTo(HaveOccurred(), "it has arrived in time")
		begin(t.Context())
		begin(t.Context())
		full()
		Arrived(t.Context()) // was not counted
		full()
	})
}

func TestACallThatItsCallerReadsHasItsPlaceUntilItLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		a := NewArrivals(2, time.Second)
		g.Expect(a.Patience()).To(Equal(time.Second))
		leave, err := a.Enter("here")
		g.Expect(err).NotTo(HaveOccurred())
		time.Sleep(time.Minute)
		_, err = a.Enter("here")
		g.Expect(status.Code(err)).To(Equal(codes.ResourceExhausted))
		leave()
		leave, err = a.Enter("here")
		g.Expect(err).NotTo(HaveOccurred())
		leave()
	})
}
