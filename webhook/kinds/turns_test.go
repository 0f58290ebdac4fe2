package kinds

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
)

func TestCallsOfOneMemberWaitBeforeTheyHoldUpOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		turns := newTurns()
		var held []func()
		for range 2 {
			giveBack, err := turns.take(t.Context(), "greedy", maxBytesOfMember/2)
			g.Expect(err).NotTo(HaveOccurred())
			held = append(held, giveBack)
		}
		_, err := turns.take(t.Context(), "greedy", 1)
		g.Expect(err).To(MatchError(context.DeadlineExceeded))
		other, err := turns.take(t.Context(), "modest", maxConversion)
		g.Expect(err).NotTo(HaveOccurred())
		other()
		waiting := make(chan error, 1)
		go func() {
			giveBack, err := turns.take(t.Context(), "greedy", 1)
			if err == nil {
				giveBack()
			}
			waiting <- err
		}()
		time.Sleep(time.Second)
		held[0]()
		g.Expect(<-waiting).To(Succeed())
		held[1]()
		time.Sleep(time.Minute)
		last, err := turns.take(t.Context(), "modest", 1)
		g.Expect(err).NotTo(HaveOccurred())
		last()
		g.Expect(turns.members).To(BeEmpty(), "nothing is kept of members without calls")
	})
}

func TestLargeCallsAboutWebAppsOfOneMemberWaitForTimeToPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, turns := NewWithT(t), newTurns()
		take := func(member string, bytes int64) error {
			giveBack, err := turns.take(t.Context(), member, bytes)
			if err == nil {
				giveBack()
			}
			return err
		}
		began := time.Now()
		for read := int64(0); read < largeBurst; read += maxConversion {
			g.Expect(take("greedy", maxConversion)).To(Succeed())
		}
		g.Expect(time.Since(began)).To(BeZero())
		g.Expect(take("greedy", largeCall)).To(Succeed())
		g.Expect(take("modest", maxConversion)).To(Succeed())
		g.Expect(time.Since(began)).To(BeZero(), "its usual calls and those of others do not wait")
		g.Expect(take("greedy", maxConversion)).To(Succeed())
		g.Expect(time.Since(began)).To(Equal(time.Second * maxConversion / largeRate))
		g.Expect(take("greedy", maxConversion)).To(Succeed())
		waits := make(chan error)
		go func() { waits <- take("greedy", maxConversion) }()
		synctest.Wait()
		g.Expect(take("greedy", maxConversion)).NotTo(Succeed(), "its turn would come too late")
		g.Expect(<-waits).To(Succeed())
	})
}
