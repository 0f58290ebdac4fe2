package intake

import (
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// fleetOf is a fleet's budget, and one for each member.
func fleetOf(bytes int64, members int) (*FleetBudget, []*MemberBudget) {
	f := NewFleetBudget(bytes)
	all := make([]*MemberBudget, members)
	for i := range all {
		all[i] = NewMemberBudget(f, 1<<20, 1<<20, 10)
		f.Join(all[i])
	}
	return f, all
}

// holding is a kind of a member that takes so many bytes.
func holding(g *WithT, of *MemberBudget, bytes int64) *KindBudget {
	kind := NewKindBudget(of)
	g.Expect(kind.add(bytes)).To(Succeed())
	return kind
}

// giveBack is what happens to a kind that has been told.
func giveBack(g *WithT, kind *KindBudget) {
	g.Expect(<-kind.Exceeded).To(MatchError(ErrTooLarge))
	g.Expect(kind.add(-kind.used.Load())).To(Succeed())
	kind.Release()
}

func TestTheLargestKindOfTheLargestMemberGivesWay(t *testing.T) {
	g := NewWithT(t)
	f, members := fleetOf(100, 3)
	small, large, most := holding(g, members[0], 30), holding(g, members[1], 20), holding(g, members[1], 25)
	g.Expect(most.Exceeded).To(BeEmpty(), "75 of 100")
	g.Expect(small.add(5)).To(Succeed())
	late := holding(g, members[2], 21)
	g.Expect(late.Exceeded).To(BeEmpty(), "though it has grown: it has less than an equal share")
	g.Expect(small.Exceeded).To(BeEmpty())
	g.Expect(large.Exceeded).To(BeEmpty())
	g.Expect(<-most.Exceeded).To(And(MatchError(ErrTooLarge), MatchError(ContainSubstring("more than 100 bytes")), MatchError(ContainSubstring("the 45 of this one"))))
	g.Expect(small.add(40)).To(Succeed())
	g.Expect(small.Exceeded).To(BeEmpty(), "one gives way at a time")
	g.Expect(most.add(-25)).To(Succeed())
	most.Release()
	g.Expect(small.Exceeded).To(HaveLen(1), "116 of 100, and it has the most")
	giveBack(g, small)
	g.Expect(f.used.Load()).To(BeEquivalentTo(41))
	for _, kind := range []*KindBudget{small, large, most, late} {
		g.Expect(kind.Exceeded).To(BeEmpty())
	}
}

func TestAMemberThatHasLeftGivesNothingBack(t *testing.T) {
	g := NewWithT(t)
	f, members := fleetOf(100, 2)
	gone := holding(g, members[0], 60)
	f.Leave(members[0])
	stays := holding(g, members[1], 50)
	g.Expect(gone.Exceeded).To(BeEmpty())
	giveBack(g, stays)
}

func TestKindsThatGrowAtTheSameTimeGiveWayUntilTheRestFits(t *testing.T) {
	g := NewWithT(t)
	f, members := fleetOf(1000, 4)
	var growing, leaving sync.WaitGroup
	var kinds []*KindBudget
	for _, member := range members {
		for range 4 {
			kind := NewKindBudget(member)
			kinds = append(kinds, kind)
			growing.Go(func() {
				for range 300 {
					g.Expect(kind.add(1)).To(Succeed())
				}
			})
		}
	}
	stop := make(chan struct{})
	for _, kind := range kinds {
		leaving.Go(func() {
			select {
			case err := <-kind.Exceeded:
				g.Expect(err).To(MatchError(ErrTooLarge))
				growing.Wait() // as a kind's caches have stopped when they are released
				g.Expect(kind.add(-kind.used.Load())).To(Succeed())
				kind.Release()
			case <-stop:
			}
		})
	}
	g.Eventually(f.used.Load).WithTimeout(time.Minute).Should(BeNumerically("==", 900), "three of 16 kinds with 300 each")
	close(stop)
	leaving.Wait()
	g.Expect(f.leaving).To(BeNil())
}

func TestWithoutABudgetNoMemberGivesWay(t *testing.T) {
	g := NewWithT(t)
	f, members := fleetOf(0, 1)
	kind := holding(g, members[0], 1<<19)
	kind.Release()
	f.Leave(members[0])
	g.Expect(kind.Exceeded).To(BeEmpty())
}
