package clusters

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

func TestTheWinnerOfAClusterDoesNotDependOnTheOrderOfClaims(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ages := rapid.SliceOfN(rapid.IntRange(0, 3), 1, 6).Draw(t, "ages")
		order := rapid.Permutation(indices(len(ages))).Draw(t, "order")
		c := newClaims()
		for _, i := range order {
			c.set(name(i), time.Unix(int64(ages[i]), 0), "uid")
		}
		best := 0
		for i, age := range ages {
			if age < ages[best] {
				best = i
			}
		}
		if winner := c.winner("uid"); winner != name(best) {
			t.Fatalf("winner %s, want %s of ages %v in order %v", winner, name(best), ages, order)
		}
	})
}

func name(i int) string { return fmt.Sprintf("member-%d", i) }

func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func TestThoseWhomAClaimConcernsAreNamed(t *testing.T) {
	g := NewWithT(t)
	c, early, late := newClaims(), time.Unix(1, 0), time.Unix(2, 0)
	g.Expect(c.set("a", late, "one")).To(BeEmpty())
	g.Expect(c.set("b", early, "one", "two")).To(ConsistOf("a"))
	g.Expect(c.winner("one")).To(Equal("b"))
	g.Expect(c.set("b", early, "one", "two")).To(BeEmpty(), "nothing changed")
	g.Expect(c.set("b", early, "two")).To(ConsistOf("a"))
	g.Expect(c.winner("one")).To(Equal("a"))
	g.Expect(c.set("a", late)).To(BeEmpty())
	g.Expect(c.winner("one")).To(BeEmpty())
	g.Expect(c.set("b", early)).To(BeEmpty())
	g.Expect(c.byUID).To(BeEmpty(), "nothing is left behind")
	g.Expect(c.byName).To(BeEmpty())
}
