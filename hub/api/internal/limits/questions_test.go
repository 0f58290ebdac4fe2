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

func TestAQuestionThatIsCancelledPlansNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		q, end := NewQuestions(), make(chan struct{})
		go func() { _ = q.Ask(t.Context(), "ana", func() { <-end }) }()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		answer := make(chan error, 1)
		go func() { answer <- q.Ask(ctx, "ben", func() { t.Error("it was planned") }) }()
		synctest.Wait()
		cancel()
		g.Expect(<-answer).To(MatchError(context.Canceled))
		close(end)
		g.Expect(q.Ask(ctx, "ben", func() { t.Error("it was planned") })).To(MatchError(context.Canceled))
		g.Expect(q.Ask(t.Context(), "ben", func() {})).To(Succeed())
	})
}

func TestACallerWhosePlansTakeLongLeavesRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		q := NewQuestions()
		slow, planned := func() { time.Sleep(time.Second) }, 0
		for range 100 {
			if q.Ask(t.Context(), "ana", slow) != nil {
				break
			}
			planned++
		}
		g.Expect(planned).To(BeNumerically("<=", 3), "two seconds at once, and what she had not used")
		err := q.Ask(t.Context(), "ana", slow)
		g.Expect(status.Code(err)).To(Equal(codes.ResourceExhausted))
		g.Expect(q.Ask(t.Context(), "ben", func() {})).To(Succeed())
		time.Sleep(6 * time.Second)
		g.Expect(q.Ask(t.Context(), "ana", func() {})).To(Succeed())
		g.Expect((*Questions)(nil).Ask(t.Context(), "ana", func() {})).To(Succeed())
	})
}
