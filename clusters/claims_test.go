package clusters

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

func TestWhatAClaimGetsDoesNotDependOnTheOrderOfClaims(t *testing.T) {
	namespaces := [][]string{nil, {"a"}, {"b"}, {"a", "b"}, {"c"}}
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) claim {
			return claim{
				created:    time.Unix(int64(rapid.IntRange(0, 3).Draw(t, "age")), 0),
				ids:        rapid.SampledFrom([][]string{{"here"}, {"there"}, {"here", "there"}}).Draw(t, "ids"),
				namespaces: rapid.SampledFrom(namespaces).Draw(t, "namespaces"),
			}
		}), 1, 6).Draw(t, "claims")
		order := rapid.Permutation(indices(len(all))).Draw(t, "order")
		c, again := newClaims(), newClaims()
		for i := range all {
			all[i].name = name(i)
			c.set(name(i), all[i])
		}
		for _, i := range order {
			again.set(name(i), all[i])
		}
		var granted []claim
		for i := range all {
			rival, _, _ := c.rival(all[i])
			other, _, _ := again.rival(all[i])
			if (rival == nil) != (other == nil) || rival != nil && rival.name != other.name {
				t.Fatalf("claim %+v lost to %+v, and to %+v in order %v", all[i], rival, other, order)
			}
			if rival == nil {
				if beaten, _ := c.beaten(all[i], granted); beaten != nil {
					t.Fatalf("both %+v and %+v are granted", all[i], beaten)
				}
				granted = append(granted, all[i])
			} else if rival.created.After(all[i].created) {
				t.Fatalf("%+v lost to the younger %+v", all[i], rival)
			}
		}
	})
}

func TestTenantsOfOneClusterShareNoNamespace(t *testing.T) {
	g := NewWithT(t)
	c := newClaims()
	claimOf := func(name string, age int64, namespaces ...string) claim {
		return claim{name: name, created: time.Unix(age, 0), ids: []string{"uid"}, namespaces: namespaces}
	}
	shop, pay, both, whole := claimOf("shop", 1, "a", "b"), claimOf("pay", 2, "c"), claimOf("both", 3, "b", "d"), claimOf("whole", 4)
	for _, one := range []claim{whole, both, pay, shop} {
		c.set(one.name, one)
	}
	g.Expect(rivalOf(c, shop)).To(BeNil())
	g.Expect(rivalOf(c, pay)).To(BeNil())
	rival, namespace, _ := c.rival(both)
	g.Expect(rival.refusal(both, namespace, false).message).To(Equal("namespace b of the same cluster is registered by an older Secret"))
	rival, namespace, _ = c.rival(whole)
	g.Expect(rival.refusal(whole, namespace, false).message).To(Equal("namespace a of the same cluster is registered by an older Secret"))
	g.Expect(c.set("shop")).To(ConsistOf("pay", "both", "whole"))
	g.Expect(rivalOf(c, both)).To(BeNil(), "what was in its way has gone")
}

func TestWhoseServerSaysThatItIsAnotherClusterComesLast(t *testing.T) {
	g := NewWithT(t)
	c := newClaims()
	evil := claim{name: "evil", created: time.Unix(1, 0), ids: []string{"uid"}, turned: true}
	good := claim{name: "good", created: time.Unix(2, 0), ids: []string{"uid"}}
	c.set("good", good)
	g.Expect(c.set("evil", evil)).To(ConsistOf("good"))
	g.Expect(rivalOf(c, good)).To(BeNil())
	rival, namespace, _ := c.rival(evil)
	g.Expect(rival.refusal(evil, namespace, false).message).To(ContainSubstring("said something else before"))
	c.set("good")
	g.Expect(rivalOf(c, evil)).To(BeNil(), "nobody else has it")
}

func TestWhoseServerDidNotSayAtFirstWhatItIsComesBehindOthersAndMayShowIt(t *testing.T) {
	g := NewWithT(t)
	c := newClaims()
	older, younger := claimWithLease("older", 1, "a:443"), claimWithLease("younger", 2, "b:443")
	older.late = true
	c.set("older", older)
	c.set("younger", younger)
	g.Expect(proven(c, "older", twoClusters)).To(HaveLen(1), "it has said nothing else before, so there is something to be shown")
	g.Expect(rivalOf(c, older)).To(BeNil())
	g.Expect(rivalOf(c, younger)).To(BeNil())

	older.lease = ""
	c.set("older", older)
	g.Expect(rivalOf(c, younger)).To(BeNil(), "who was silent until another came does not push that out")
	rival, namespace, _ := c.rival(older)
	g.Expect(rival.refusal(older, namespace, false).message).To(ContainSubstring("did not say at first"))
}

func TestAServerThatDoesNotSayWhatItIsHasSaidNothingElse(t *testing.T) {
	for want, said := range map[shownIdentity][]string{
		{endpoint: "h", uid: "A"}:               {"A", "", "A", ""},
		{endpoint: "h", uid: "A", late: true}:   {"", "A", "", "A"},
		{endpoint: "h", uid: "B", turned: true}: {"A", "", "B"},
		{endpoint: "h", uid: "A", turned: true}: {"A", "B", "A"},
		{endpoint: "h"}:                         {"", ""},
	} {
		var shown shownIdentity
		shown.note("elsewhere", "C")
		for _, uid := range said {
			shown.note("h", uid)
		}
		if shown != want {
			t.Errorf("after %q: %+v, want %+v", said, shown, want)
		}
	}
}

func rivalOf(c *claims, mine claim) *claim {
	rival, _, _ := c.rival(mine)
	return rival
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
	a := claim{name: "a", created: late, ids: []string{"one"}}
	b := claim{name: "b", created: early, ids: []string{"one", "two"}}
	g.Expect(c.set("a", a)).To(BeEmpty())
	g.Expect(c.set("b", b)).To(ConsistOf("a"))
	rival, _, _ := c.rival(a)
	g.Expect(rival.refusal(a, "", false).message).To(Equal("the same cluster is registered by an older Secret"))
	g.Expect(c.set("b", b)).To(BeEmpty(), "nothing changed")
	b.ids = []string{"two"}
	g.Expect(c.set("b", b)).To(ConsistOf("a"))
	g.Expect(rivalOf(c, a)).To(BeNil())
	g.Expect(c.set("a")).To(BeEmpty())
	g.Expect(c.set("b")).To(BeEmpty())
	g.Expect(c.byID).To(BeEmpty(), "nothing is left behind")
	g.Expect(c.byName).To(BeEmpty())
}

func TestTheMessageOfARefusalNamesNoOtherRegistration(t *testing.T) {
	secret, mine, turned := claim{name: "secret-project"}, claim{name: "mine"}, claim{name: "mine", turned: true}
	for _, p := range []*problem{secret.refusal(mine, "", false), secret.refusal(mine, "shop", false), secret.refusal(turned, "", false)} {
		status := assess(view{refusal: p}, Status{}, time.Now())
		shown := status.Message
		for _, condition := range status.Conditions {
			shown += " " + condition.Message
		}
		if strings.Contains(shown, "secret-project") {
			t.Errorf("whoever may see member mine reads %q", shown)
		}
		if status.Rival != "secret-project" {
			t.Errorf("log and Event would name %q", status.Rival)
		}
	}
}
