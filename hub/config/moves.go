package config

import (
	"strconv"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// MoveLimit is [policy.MoveLimit] as it stands in a configuration.
type MoveLimit struct{ policy.MoveLimit }

// Strategy is [policy.Strategy] as it stands in a configuration.
type Strategy policy.Strategy

// UnmarshalText reads evict or release.
func (s *Strategy) UnmarshalText(text []byte) error {
	strategy, err := policy.ParseStrategy(string(text))
	*s = Strategy(strategy)
	return err
}

const moveLimitRule = `a number of replicas from 1, or a percentage from "1%" to "100%"`

// UnmarshalText reads a number of replicas or a percentage of them.
func (l *MoveLimit) UnmarshalText(text []byte) (err error) {
	l.MoveLimit, err = policy.ParseMoveLimit(string(text))
	return err
}

// String gives the limit as it stands in a configuration.
func (l MoveLimit) String() string {
	if l.Count > 0 {
		return strconv.Itoa(l.Count)
	}
	return strconv.Itoa(l.Percent) + "%"
}
