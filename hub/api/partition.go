package api

import (
	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
)

// partition is what a list is cut into, and authorized by, where that is not the members.
type partition struct {
	// names returns all parts, in any order.
	names func() []string
	// there reports whether there is such a part still.
	there func(name string) bool
	// narrow makes of an access to all parts one to a part.
	narrow func(needs auth.Access, name string) auth.Access
}

// ofMember narrows an access to a member.
func ofMember(needs auth.Access, member string) auth.Access {
	needs.Member = member
	return needs
}

// parts are what lists are cut into; without a partition of their own, members.
func (c *core) parts(by *partition) *partition {
	if by != nil {
		return by
	}
	return &partition{
		names:  c.names,
		there:  func(member string) bool { _, registered := c.members.Status(member); return registered },
		narrow: ofMember,
	}
}
