package policy

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
)

// MoveLimit is how many replicas of a workload may be on the move at a time. Use [ParseMoveLimit].
type MoveLimit struct {
	Percent int // of the replicas, rounded down; used when Count is 0
	Count   int
}

// ParseMoveLimit reads a number of replicas ("3") or a share of them ("10%").
func ParseMoveLimit(value string) (MoveLimit, error) {
	share, percent := strings.CutSuffix(value, "%")
	n, ok := phrase.Number(share, MaxSlot)
	if !ok || n == 0 || (percent && n > 100) {
		return MoveLimit{}, fmt.Errorf("max moves %q: want %s", phrase.Value(value), ruleMaxMoves)
	}
	if percent {
		return MoveLimit{Percent: n}, nil
	}
	return MoveLimit{Count: n}, nil
}

// String returns the limit as [ParseMoveLimit] reads it.
func (l MoveLimit) String() string {
	if l.Count > 0 {
		return strconv.Itoa(l.Count)
	}
	return strconv.Itoa(l.Percent) + "%"
}

// Of returns how many of n replicas may be on the move at a time; at least one.
func (l MoveLimit) Of(n int) int {
	if l.Count > 0 {
		return l.Count
	}
	return max(n*l.Percent/100, 1)
}

// Strategy is how a replica that serves is moved.
type Strategy string

// Strategies. The zero value is [StrategyEvict].
const (
	// StrategyEvict breaks before it makes: the pod is evicted, and its replacement starts while it ends.
	StrategyEvict Strategy = "evict"
	// StrategyRelease makes before it breaks: the pod leaves its ReplicaSet and keeps serving; it is evicted when its
	// replacement is ready. It is for pods of ReplicaSets; where it is not possible, pods are evicted.
	StrategyRelease Strategy = "release"
)

// ParseStrategy reads a strategy.
func ParseStrategy(value string) (Strategy, error) {
	if s := Strategy(value); s == StrategyEvict || s == StrategyRelease {
		return s, nil
	}
	return "", fmt.Errorf("strategy %q: want %s", phrase.Value(value), ruleStrategy)
}
