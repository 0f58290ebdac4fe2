package webhook

import (
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/clusters"
)

var tokenKey = []byte(strings.Repeat("k", 32))

// registered is one registration that a test may change.
type registered map[string]*clusters.Registration

func (r registered) look(member string) (clusters.Registration, bool) {
	if found := r[member]; found != nil {
		return *found, true
	}
	return clusters.Registration{}, false
}

func (r registered) generation(member, value string) {
	r[member].Annotations = map[string]string{TokenGenerationAnnotation: value}
}

func current(g Gomega, tokens *Tokens, member string) string {
	token, err := tokens.Current(member)
	g.Expect(err).NotTo(HaveOccurred())
	return token
}

func TestATokenIsThirtyTwoCharactersThatNeedNoEscape(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := registered{"eu": {UID: rapid.String().Draw(t, "uid")}}
		token := current(NewWithT(t), NewTokens(rapid.SliceOfN(rapid.Byte(), 32, 64).Draw(t, "key"), members.look), "eu")
		if !regexp.MustCompile(`^[A-Za-z0-9_-]{32}$`).MatchString(token) {
			t.Fatal(token)
		}
	})
}

func TestATokenIsGoodForItsMemberAndRegistrationOnly(t *testing.T) {
	g := NewWithT(t)
	members := registered{"a": {UID: "1"}, "ab": {UID: "1"}, "b": {UID: "2"}}
	tokens := NewTokens(tokenKey, members.look)
	token := current(g, tokens, "a")
	g.Expect(tokens.Verify("a", token)).To(BeTrue())
	g.Expect(current(g, NewTokens(tokenKey, members.look), "a")).To(Equal(token), "another replica, and a restart, derive the same")

	for _, other := range []string{"ab", "b", "", "A", "a "} {
		g.Expect(tokens.Verify(other, token)).To(BeFalse(), other)
	}
	for _, wrong := range []string{"", token[:31], token + "A", strings.ToLower(token), token + "\x00", strings.Repeat("A", 32)} {
		g.Expect(tokens.Verify("a", wrong)).To(BeFalse(), wrong)
	}
	members["a"].UID = "3"
	g.Expect(tokens.Verify("a", token)).To(BeFalse(), "a member that was registered again has another token")
	g.Expect(NewTokens([]byte(strings.Repeat("x", 32)), members.look).Verify("b", current(g, tokens, "b"))).To(BeFalse(), "another hub")
	gone := current(g, tokens, "b")
	delete(members, "b")
	g.Expect(tokens.Verify("b", gone)).To(BeFalse())
	nobody := registered{"b": {}} // what an unknown member must not be treated as
	g.Expect(tokens.Verify("b", current(g, NewTokens(tokenKey, nobody.look), "b"))).To(BeFalse())
	_, err := tokens.Current("b")
	g.Expect(err).To(MatchError("member b: webhook token: not registered"))
}

// The parts of what is signed must not run into each other.
func TestNoTwoRegistrationsShareAToken(t *testing.T) {
	g := NewWithT(t)
	seen := map[string]string{}
	for _, member := range []string{"a", "a1", "1", ""} {
		for _, uid := range []string{"", "1", "11"} {
			for _, generation := range []string{"0", "1", "11"} {
				members := registered{member: {UID: uid}}
				members.generation(member, generation)
				token, what := current(g, NewTokens(tokenKey, members.look), member), member+"/"+uid+"/"+generation
				g.Expect(seen).NotTo(HaveKey(token), what)
				seen[token] = what
			}
		}
	}
}

func TestRaisingTheGenerationRotatesTheTokenAndKeepsTheOneBefore(t *testing.T) {
	g := NewWithT(t)
	members := registered{"eu": {UID: "1"}}
	tokens := NewTokens(tokenKey, members.look)
	first := current(g, tokens, "eu")
	members.generation("eu", "0")
	g.Expect(current(g, tokens, "eu")).To(Equal(first), "0 is the default")

	members.generation("eu", "1")
	second := current(g, tokens, "eu")
	g.Expect(second).NotTo(Equal(first))
	g.Expect(tokens.Verify("eu", second)).To(BeTrue())
	g.Expect(tokens.Verify("eu", first)).To(BeTrue(), "until the member has the new one")

	members.generation("eu", "2")
	g.Expect(tokens.Verify("eu", second)).To(BeTrue())
	g.Expect(tokens.Verify("eu", first)).To(BeFalse())
	members.generation("eu", "1")
	g.Expect(tokens.Verify("eu", current(g, tokens, "eu"))).To(BeTrue())
}

func TestABadGenerationMakesNoTokenGoodAndIsNamed(t *testing.T) {
	for _, bad := range []string{"", "-1", "+1", "1.5", " 1", "one", "2147483648", "99999999999999999999"} {
		g := NewWithT(t)
		members := registered{"eu": {UID: "1"}}
		tokens := NewTokens(tokenKey, members.look)
		first := current(g, tokens, "eu")
		members.generation("eu", bad)
		g.Expect(tokens.Verify("eu", first)).To(BeFalse(), bad)
		_, err := tokens.Current("eu")
		g.Expect(err).To(MatchError(And(ContainSubstring(TokenGenerationAnnotation), ContainSubstring("whole number from 0 to 2147483647"))), bad)
	}
}

func TestTheBaseURLIsHTTPSWithAHostAndNothingElse(t *testing.T) {
	g := NewWithT(t)
	for text, want := range map[string]string{
		"https://hub.example":             "https://hub.example/webhook/v1/members/eu/t0k_-/pods",
		"https://127.0.0.1:9443/":         "https://127.0.0.1:9443/webhook/v1/members/eu/t0k_-/pods",
		"https://gateway.example/hub/one": "https://gateway.example/hub/one/webhook/v1/members/eu/t0k_-/pods",
	} {
		base, err := ParseBaseURL(text)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(callURL(base, "eu", "t0k_-")).To(Equal(want))
	}
	for _, bad := range []string{"", "hub.example", "http://hub.example", "https://", "https://:9443", "https://hub.example?x=1", "https://hub.example#x", "https://u:canary-1@hub.example", "https://u:canary-1@hub example"} {
		_, err := ParseBaseURL(bad)
		g.Expect(err).To(MatchError(HavePrefix("webhook URL")), bad)
		g.Expect(err.Error()).NotTo(ContainSubstring("canary"))
	}
}

func BenchmarkVerify(b *testing.B) {
	members := registered{"eu": {UID: "0f5d7f0e-5d5c-4f58-8d6e-0a4a2f3f8f2e"}}
	tokens := NewTokens(tokenKey, members.look)
	token, err := tokens.Current("eu")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if !tokens.Verify("eu", token) {
			b.Fatal("refused")
		}
	}
}

func TestATokenIsGoodForOnePurpose(t *testing.T) {
	g := NewWithT(t)
	pods := NewTokens(tokenKey, registered{"eu": {UID: "1"}}.look)
	all := []*Tokens{pods, pods.For("webapps"), pods.For(ForConversions)}
	for i, of := range all {
		for j, other := range all {
			g.Expect(other.Verify("eu", current(g, of, "eu"))).To(Equal(i == j), "%q for %q", of.purpose, other.purpose)
		}
	}
}
