package capacity

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Requirements is what makes a pod easy or hard to place: how much it asks for, and which nodes it can do with. They have a partial
// order; see [Requirements.AtLeast]. Use [RequirementsOf]. They are never changed.
type Requirements struct {
	// CPU in thousandths of a core, and Memory in bytes.
	CPU    int64 `json:"cpu,omitempty"`
	Memory int64 `json:"memory,omitempty"`
	// Other requests by resource, ordered by name.
	Other []Request `json:"other,omitempty"`
	// Constraints are what narrows the choice of nodes, ordered: each begins with its kind and a colon. What steers to a
	// capacity type is none of them.
	Constraints []string `json:"constraints,omitempty"`
	// Tolerations widen the choice of nodes, ordered.
	Tolerations []string `json:"tolerations,omitempty"`
	// Priority lets a pod take the place of others that have less.
	Priority int32 `json:"priority,omitempty"`
}

// Request is a request for a resource, in its base unit, rounded up.
type Request struct {
	Name   string `json:"name"`
	Amount int64  `json:"amount"`
}

// AtLeast reports whether a pod with these requirements is at least as hard to place as one of the other: it asks for as much or more of
// everything, has all the constraints of the other, and no toleration or priority beyond those of the other.
func (s Requirements) AtLeast(other Requirements) bool {
	return s.CPU >= other.CPU && s.Memory >= other.Memory && s.Priority <= other.Priority && s.asksFor(other.Other) &&
		contains(s.Constraints, other.Constraints) && contains(other.Tolerations, s.Tolerations)
}

// NarrowsNodesLike reports whether these requirements ask of nodes all that the other does.
func (s Requirements) NarrowsNodesLike(other Requirements) bool {
	for _, constraint := range other.Constraints {
		ofNodes := strings.HasPrefix(constraint, ConstraintSelector) || strings.HasPrefix(constraint, constraintNode) || strings.HasPrefix(constraint, constraintNodes)
		if _, has := slices.BinarySearch(s.Constraints, constraint); ofNodes && !has {
			return false
		}
	}
	return true
}

// asksFor reports whether the other requests are as large as some, or larger.
func (s Requirements) asksFor(some []Request) bool {
	own := s.Other
	for _, r := range some {
		for len(own) > 0 && own[0].Name < r.Name {
			own = own[1:]
		}
		if len(own) == 0 || own[0].Name != r.Name || own[0].Amount < r.Amount {
			return false
		}
	}
	return true
}

// contains reports whether every element of part is one of all; both are ordered.
func contains(all, part []string) bool {
	for _, element := range part {
		for len(all) > 0 && all[0] < element {
			all = all[1:]
		}
		if len(all) == 0 || all[0] != element {
			return false
		}
	}
	return true
}

// BeyondProbes reports whether there are constraints that no probe can have, so that a probe may find room where no replica
// does: a volume or device that only some nodes reach, replicas of the same namespace to be spread from, a scheduler with rules of
// its own.
func (s Requirements) BeyondProbes() bool {
	return slices.ContainsFunc(s.Constraints, func(c string) bool {
		return strings.HasPrefix(c, ConstraintVolume) || strings.HasPrefix(c, constraintDevice) ||
			strings.HasPrefix(c, constraintSpread) || strings.HasPrefix(c, constraintScheduler)
	})
}

// String returns the requirements as text: equal ones have equal texts, and [ParseRequirements] reads them.
func (s Requirements) String() string {
	text, err := json.Marshal(s)
	if err != nil {
		return "" // numbers and strings can always be written
	}
	return string(text)
}

// MaxText is how long the text of requirements may be, in bytes.
const MaxText = 64 << 10

// ParseRequirements reads what [Requirements.String] wrote.
func ParseRequirements(text string) (Requirements, error) {
	var s Requirements
	if len(text) > MaxText {
		return s, fmt.Errorf("scheduling requirements: want at most %d bytes", MaxText)
	}
	err := json.Unmarshal([]byte(text), &s)
	return s, err
}
