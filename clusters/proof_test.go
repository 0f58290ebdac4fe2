package clusters

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
)

func TestWhatTwoNoncesShow(t *testing.T) {
	seen, unseen := crossing{written: yes, kept: yes, found: yes}, crossing{written: yes, kept: yes, found: no, stayed: yes}
	mute, dumb := crossing{written: silent}, crossing{written: yes, kept: silent}
	unread := crossing{written: yes, kept: yes, found: silent}
	unkept := crossing{written: yes, kept: no}
	overwritten, lost := crossing{written: yes}, crossing{written: yes, kept: yes, found: no, stayed: no}
	for name, c := range map[string]struct {
		ab, ba crossing
		want   decision
	}{
		"both are seen":                            {seen, seen, oneCluster},
		"neither is seen":                          {unseen, unseen, twoClusters},
		"one is relayed by a liar":                 {seen, unseen, twoClusters},
		"the first takes no nonce":                 {mute, seen, firstSilent},
		"the second takes no nonce":                {unseen, mute, secondSilent},
		"the second does not show its own":         {unseen, dumb, secondSilent},
		"the second cannot be read":                {unread, unseen, secondSilent},
		"the first cannot be read":                 {unseen, unread, firstSilent},
		"the first neither takes nor shows any":    {mute, unread, firstSilent},
		"neither does anything":                    {mute, mute, bothSilent},
		"somebody else wrote at once":              {overwritten, seen, disturbed},
		"somebody else wrote later":                {lost, seen, disturbed},
		"somebody else wrote to one of two":        {lost, unseen, twoClusters},
		"the first never keeps what is written":    {unkept, unseen, firstSilent},
		"the second never keeps what is written":   {unseen, unkept, secondSilent},
		"one does not keep, the other is not read": {unkept, mute, bothSilent},
	} {
		NewWithT(t).Expect(conclude(c.ab, c.ba)).To(Equal(c.want), name)
	}
}

// fakeCluster is the Lease of a cluster, as one or more registrations reach it.
type fakeCluster struct {
	nonce   string
	version int
	refuse  error
	forget  bool // what is written
}

func (f *fakeCluster) writeNonce(_ context.Context, _, nonce string) (string, error) {
	if f.refuse == nil && !f.forget {
		f.nonce = nonce
		f.version++
	}
	return strconv.Itoa(f.version), f.refuse
}

func (f *fakeCluster) readNonce(context.Context, string) (string, string, error) {
	return f.nonce, strconv.Itoa(f.version), f.refuse
}

// overwrite is what another replica does, or another registration of the cluster.
func (f *fakeCluster) overwrite() {
	f.nonce = newNonce()
	f.version++
}

// recovering refuses so many writes.
type recovering struct {
	fakeCluster
	left int
}

func (f *recovering) writeNonce(ctx context.Context, namespace, nonce string) (string, error) {
	if f.left > 0 {
		f.left--
		return "", errors.New("not now")
	}
	return f.fakeCluster.writeNonce(ctx, namespace, nonce)
}

// reading calls before each read.
type reading struct {
	witness
	before func()
}

func (f *reading) readNonce(ctx context.Context, namespace string) (string, string, error) {
	f.before()
	return f.witness.readNonce(ctx, namespace)
}

// relaying knows what another cluster's Lease holds, and shows that; of its own it shows what was written once.
type relaying struct {
	fakeCluster
	of *fakeCluster
}

func (f *relaying) readNonce(context.Context, string) (string, string, error) {
	if own := f.nonce; own != "" {
		f.nonce = ""
		return own, "", nil
	}
	return f.of.nonce, "", nil
}

// Who is asked chooses how long that takes, and when others write meanwhile.
func TestAMemberWhoseNonceOthersOverwriteIsNotSilent(t *testing.T) {
	for name, c := range map[string]struct {
		pair func() (good, liar witness)
		want decision
	}{
		"in the last attempt, while the liar holds its read": {func() (witness, witness) {
			good, liar := &fakeCluster{}, &recovering{left: proofAttempts - 1}
			return good, &reading{liar, func() {
				if liar.left == 0 {
					good.overwrite()
				}
			}}
		}, twoClusters},
		"in every attempt, while the liar holds its read": {func() (witness, witness) {
			good := &fakeCluster{}
			return good, &reading{&fakeCluster{}, good.overwrite}
		}, twoClusters},
		"by who writes all the time": {func() (witness, witness) {
			good := &fakeCluster{}
			return &reading{good, good.overwrite}, &relaying{of: good}
		}, disturbed},
		"says a liar of its own": {func() (witness, witness) {
			good := &fakeCluster{}
			return good, &relaying{of: good}
		}, disturbed},
		"and is silent in the last attempt": {func() (witness, witness) {
			good, reads := &fakeCluster{}, 0
			return &reading{good, func() {
				if reads++; reads > 2*(proofAttempts-1) { // it is read twice in each attempt
					good.refuse = errors.New("not now")
				}
			}}, &relaying{of: good}
		}, disturbed},
		"and was silent in the first one": {func() (witness, witness) {
			good := &recovering{left: 1}
			return good, &relaying{of: &good.fakeCluster}
		}, disturbed},
	} {
		synctest.Test(t, func(t *testing.T) {
			good, liar := c.pair()
			if found := tryToProve(t.Context(), "ns", good, liar, time.Second); found != c.want {
				t.Errorf("%s, the good one first: %s", name, found)
			}
			good, liar = c.pair()
			if found := tryToProve(t.Context(), "ns", liar, good, time.Second); found != c.want {
				t.Errorf("%s, the liar first: %s", name, found)
			}
		})
	}
}

func TestWhoIsSilentOrKeepsNothingInEveryAttemptIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(tryToProve(t.Context(), "ns", &fakeCluster{forget: true}, &fakeCluster{}, time.Second)).To(Equal(firstSilent))
		g.Expect(tryToProve(t.Context(), "ns", &recovering{left: 1}, &fakeCluster{refuse: errors.New("no")}, time.Second)).To(Equal(secondSilent), "the first was so only once")
		nothing := &fakeCluster{forget: true}
		g.Expect(tryToProve(t.Context(), "ns", nothing, nothing, time.Second)).To(Equal(bothSilent))
	})
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

// Replicas disturb each other for a while; whoever goes on with it gets no more than by not showing the other's nonce.
func TestAProofThatStaysDisturbedTakesNothingFromAnybody(t *testing.T) {
	g := NewWithT(t)
	c, older, younger := newClaims(), claimWithLease("older", 1, "a:443"), claimWithLease("younger", 2, "b:443")
	c.set("older", older)
	c.set("younger", younger)
	task := proven(c, "older", disturbed)[0]
	_, _, is := c.rival(younger)
	g.Expect(is.pending).To(BeTrue(), "it is tried again first")
	g.Expect(c.expire(task)).To(BeTrue())
	proven(c, "older", disturbed)
	for _, one := range []claim{older, younger} {
		rival, _, is := c.rival(one)
		g.Expect(rival).To(BeNil())
		g.Expect(is).To(Equal(standing{}))
	}
	g.Expect(c.expire(task)).To(BeTrue())
	proven(c, "older", oneCluster)
	g.Expect(nameOf(rivalOf(c, younger))).To(Equal("older"), "it goes on until it is shown")
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
