package clusters

import (
	"testing"

	. "github.com/onsi/gomega"
)

// Caches are of one cluster. A server that refuses once to say which it is must not hide that another one answers afterwards.
func TestAnotherClusterIsNoticedAlsoAfterARefusalToSayWhichItIs(t *testing.T) {
	g := NewWithT(t)
	h := &health{breaker: &breaker{member: "a", onChange: func(bool) {}}}
	h.succeeded(identity{uid: "A"}, 0)
	h.succeeded(identity{}, 0)
	g.Expect(h.report().stranger).To(BeFalse())
	g.Expect(h.report().identity.uid).To(Equal("A"))
	h.succeeded(identity{uid: "B"}, 0)
	g.Expect(h.report().stranger).To(BeTrue())
	g.Expect(h.report().reachable).To(BeFalse())
}
