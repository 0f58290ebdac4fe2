package clusters

import (
	"context"
	"slices"
)

// shownIdentity is what the server behind a registration has said that it is.
type shownIdentity struct {
	endpoint, uid string
	late          bool // it did not say it at first
	turned        bool // it has said something else before
}

// note takes down what the server at an endpoint says now. One that does not say it, with a 403 for instance, has said nothing
// else: what it said before counts.
func (s *shownIdentity) note(endpoint, uid string) {
	switch {
	case s.endpoint != endpoint:
		*s = shownIdentity{endpoint: endpoint, uid: uid}
	case uid == "" || uid == s.uid:
	case s.uid == "":
		s.uid, s.late = uid, true
	default:
		s.uid, s.turned = uid, true
	}
}

// settleIdentity claims the clusters that were found behind the credentials, and admits, refuses or restarts members by
// who wins.
func (a *actor) settleIdentity(ctx context.Context, want *desired) {
	if a.running != nil && a.running.member.report().stranger {
		a.turned(ctx, a.running)
	}
	if a.candidate != nil && a.candidate.member.report().stranger {
		a.turned(ctx, a.candidate)
	}
	a.p.claim(a.name, a.claims(want)...)
	if a.running != nil {
		rival, is := a.rival(a.running, want)
		if rival != nil && (!is.silent || a.running.member.report().reachable) { // else it answers nobody
			a.restart(ctx, a.running, 0)
		}
	}
	a.comparing = false
	if a.candidate == nil {
		return
	}
	rival, is := a.rival(a.candidate, want)
	if rival != nil {
		if a.candidate.member.isAdmitted() {
			a.restart(ctx, a.candidate, 0)
		}
		a.refusal = rival
		return
	}
	if a.refusal != nil && slices.Contains(ofIdentity, a.refusal.reason) {
		a.refusal = nil
	}
	if a.comparing = is.pending && !a.candidate.member.isAdmitted(); !a.comparing && a.candidate.member.report().reachable {
		a.candidate.member.admit()
	}
}

// ofIdentity are the reasons for which a claim is not granted.
var ofIdentity = []string{ReasonDuplicateCluster, ReasonOverlappingNamespaces, ReasonIdentityNotShown}

// claims are what the running member and the candidate represent, as far as it has been found out who they are.
func (a *actor) claims(want *desired) []claim {
	var claims []claim
	for _, e := range []*engagement{a.running, a.candidate} {
		if e == nil {
			continue
		}
		if seen := e.member.report(); seen.identified {
			a.shown.note(e.vetted.Endpoint(), seen.identity.uid)
		}
		if mine := a.claim(e, want); len(mine.ids) > 0 && (len(claims) == 0 || !mine.equal(claims[0])) {
			claims = append(claims, mine)
		}
	}
	return claims
}

// claim is what e represents. A cluster that has not shown its UID is known by where it is.
func (a *actor) claim(e *engagement, want *desired) claim {
	c := claim{name: a.name, created: want.created, namespaces: e.vetted.Namespaces, lease: want.lease, witness: e.member.prober}
	seen := e.member.report()
	uid := seen.identity.uid
	if a.shown.endpoint == e.vetted.Endpoint() {
		c.late, c.turned, uid = a.shown.late, a.shown.turned, a.shown.uid
	}
	if seen.identified {
		c.ids = append(c.ids, e.vetted.Endpoint())
		if uid != "" {
			c.ids = append(c.ids, uid)
		}
	}
	return c
}

// rival says which other registration keeps e from what it represents; nil if none does, or it is not known yet.
func (a *actor) rival(e *engagement, want *desired) (*problem, standing) {
	mine := a.claim(e, want)
	rival, namespace, is := a.p.claims.rival(mine)
	if rival == nil {
		return nil, is
	}
	return rival.refusal(mine, namespace, is.silent), is
}
