package clusters

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
)

func TestWhatTwoNoncesShow(t *testing.T) {
	seen, unseen := crossing{written: yes, found: yes}, crossing{written: yes, found: no, kept: yes}
	mute := crossing{written: silent}
	unread := crossing{written: yes, found: silent}
	lost := crossing{written: yes, found: no, kept: no}
	for name, c := range map[string]struct {
		ab, ba crossing
		last   bool
		want   decision
	}{
		"both are seen":                            {seen, seen, false, oneCluster},
		"neither is seen":                          {unseen, unseen, false, twoClusters},
		"one is relayed by a liar":                 {seen, unseen, false, twoClusters},
		"the first takes no nonce":                 {mute, seen, false, firstSilent},
		"the second takes no nonce":                {unseen, mute, false, secondSilent},
		"the second cannot be read":                {unread, unseen, false, secondSilent},
		"the first cannot be read":                 {unseen, unread, false, firstSilent},
		"the first neither takes nor shows any":    {mute, unread, false, firstSilent},
		"neither does anything":                    {mute, mute, false, bothSilent},
		"somebody else wrote":                      {lost, unseen, false, disturbed},
		"the first never keeps what is written":    {lost, unseen, true, firstSilent},
		"the second never keeps what is written":   {unseen, lost, true, secondSilent},
		"one does not keep, the other is not read": {lost, mute, true, bothSilent},
	} {
		NewWithT(t).Expect(conclude(c.ab, c.ba, c.last)).To(Equal(c.want), name)
	}
}

// fakeCluster is the Lease of a cluster, as one or more registrations reach it.
type fakeCluster struct {
	nonce  string
	refuse error
	reads  int
}

func (f *fakeCluster) writeNonce(_ context.Context, _, nonce string) error {
	if f.refuse == nil {
		f.nonce = nonce
	}
	return f.refuse
}

func (f *fakeCluster) readNonce(context.Context, string) (string, error) {
	f.reads++
	return f.nonce, f.refuse
}

// recovering refuses so many requests.
type recovering struct {
	fakeCluster
	left int
}

func (f *recovering) writeNonce(ctx context.Context, namespace, nonce string) error {
	if f.left > 0 {
		f.left--
		return errors.New("not now")
	}
	return f.fakeCluster.writeNonce(ctx, namespace, nonce)
}

func TestAProofIsTriedAgainBeforeSomebodyCountsAsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		one, other := &fakeCluster{}, &fakeCluster{}
		g.Expect(tryToProve(t.Context(), "ns", one, one, time.Second)).To(Equal(oneCluster))
		g.Expect(tryToProve(t.Context(), "ns", one, other, time.Second)).To(Equal(twoClusters))
		g.Expect(tryToProve(t.Context(), "ns", one, &recovering{left: proofAttempts - 1}, time.Second)).To(Equal(twoClusters))
		began := time.Now()
		g.Expect(tryToProve(t.Context(), "ns", one, &fakeCluster{refuse: errors.New("no")}, time.Second)).To(Equal(secondSilent))
		g.Expect(time.Since(began)).To(BeNumerically(">=", (proofAttempts-1)*time.Second))
	})
}

func claimWithLease(name string, age int64, server string, namespaces ...string) claim {
	return claim{name: name, created: time.Unix(age, 0), ids: []string{server, "uid"}, namespaces: namespaces, lease: "ns"}
}

// nameOf is that of a claim, "" of none.
func nameOf(c *claim) string {
	if c == nil {
		return ""
	}
	return c.name
}

// proven has the proofs of a name concluded as given.
func proven(c *claims, name string, found decision) (tasks []proofTask) {
	tasks = c.due(name)
	for _, task := range tasks {
		c.concluded(task, found)
	}
	return tasks
}

func TestAClaimIsLostOnlyWhenItIsShownToBeForTheSameCluster(t *testing.T) {
	older, younger := claimWithLease("older", 1, "a:443"), claimWithLease("younger", 2, "b:443")
	for found, want := range map[decision]struct{ older, younger string }{
		oneCluster:   {"", "older"},
		twoClusters:  {"", ""},
		bothSilent:   {"", "older"},
		firstSilent:  {"younger", ""}, // the first by name
		secondSilent: {"", "older"},
	} {
		g := NewWithT(t)
		c := newClaims()
		c.set("older", older)
		g.Expect(c.set("younger", younger)).To(ConsistOf("older"))
		for _, one := range []claim{older, younger} {
			rival, _, is := c.rival(one)
			g.Expect(rival).To(BeNil(), "nobody loses before it is shown")
			g.Expect(is.pending).To(BeTrue())
		}
		g.Expect(proven(c, "younger", found)).To(HaveLen(1))
		g.Expect(c.due("older")).To(BeEmpty(), "it is asked once")
		for one, rival := range map[*claim]string{&older: want.older, &younger: want.younger} {
			lost, _, is := c.rival(*one)
			g.Expect(is.pending).To(BeFalse())
			g.Expect(nameOf(lost)).To(Equal(rival), "%s of %s", one.name, found)
		}
	}
}

func TestAProofIsForgottenWhenAClaimChanges(t *testing.T) {
	g := NewWithT(t)
	c, older, younger := newClaims(), claimWithLease("older", 1, "a:443"), claimWithLease("younger", 2, "b:443")
	c.set("older", older)
	c.set("younger", younger)
	task := c.due("older")[0]
	c.set("older")
	g.Expect(c.concluded(task, oneCluster)).To(BeFalse(), "of a claim that has gone")
	c.set("older", older)
	_, _, is := c.rival(younger)
	g.Expect(is.pending).To(BeTrue())
	proven(c, "older", twoClusters)
	c.set("younger")
	c.set("older")
	g.Expect(c.proofs).To(BeEmpty())
}

func TestWhoCannotShowAnythingIsJudgedByAgeAndWhoHasTurnedComesLast(t *testing.T) {
	g := NewWithT(t)
	c := newClaims()
	older, younger := claimWithLease("older", 1, "a:443"), claimWithLease("younger", 2, "b:443")
	older.lease = ""
	c.set("older", older)
	c.set("younger", younger)
	g.Expect(c.due("younger")).To(BeEmpty())
	g.Expect(nameOf(rivalOf(c, younger))).To(Equal("older"))

	older.lease, older.turned = "ns", true
	c.set("older", older)
	g.Expect(c.due("younger")).To(BeEmpty(), "it has said something else before, so there is nothing to be shown")
	g.Expect(rivalOf(c, younger)).To(BeNil())
	g.Expect(nameOf(rivalOf(c, older))).To(Equal("younger"))

	older.turned, older.lease = false, "elsewhere"
	c.set("older", older)
	g.Expect(c.due("younger")).To(BeEmpty(), "they have no Lease in common")
	g.Expect(nameOf(rivalOf(c, younger))).To(Equal("older"))
}

func TestTenantsThatShareNoNamespaceHaveNothingToShow(t *testing.T) {
	g := NewWithT(t)
	c := newClaims()
	shop, pay, both := claimWithLease("shop", 1, "a:443", "shop"), claimWithLease("pay", 2, "b:443", "pay"), claimWithLease("both", 3, "c:443", "pay", "shop")
	c.set("shop", shop)
	c.set("pay", pay)
	g.Expect(c.due("shop")).To(BeEmpty())
	c.set("both", both)
	_, _, is := c.rival(both)
	g.Expect(is.pending).To(BeTrue())
	g.Expect(proven(c, "both", oneCluster)).To(HaveLen(1), "one at a time")
	g.Expect(proven(c, "both", oneCluster)).To(HaveLen(1))
	rival, namespace, _ := c.rival(both)
	g.Expect(nameOf(rival)).To(Equal("shop"))
	g.Expect(namespace).To(Equal("shop"))
}

func TestOnlyTheNonceOfAProofPassesTheFence(t *testing.T) {
	for path, want := range map[string]bool{
		identityPath("plimsoll-system"):                                               true,
		"/k8s/c-1" + identityPath("plimsoll-system"):                                  true,
		identityPath("plimsoll-system") + "/status":                                   false,
		"/apis/coordination.k8s.io/v1/namespaces/plimsoll-system/leases/plimsoll-hub": false,
		"/api/v1/namespaces/plimsoll-system/leases/" + IdentityLease:                  false,
		"/leases/" + IdentityLease:                                                    false,
	} {
		if isIdentity(path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
}
