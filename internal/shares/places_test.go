package shares

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestNobodyTakesMoreThanHalfOfThePlaces(t *testing.T) {
	g := NewWithT(t)
	places := NewPlaces(12)
	take := func(whose string) (n int) {
		for places.Enter(whose) {
			n++
		}
		return n
	}
	g.Expect(take("first")).To(Equal(6))
	g.Expect(take("second")).To(Equal(3))
	g.Expect(places.Enter("third")).To(BeTrue(), "there is always one for somebody else")
	places.Leave("third")
	for range 6 {
		places.Leave("first")
	}
	g.Expect(take("second")).To(Equal(3), "half of them, with what it has")
}
