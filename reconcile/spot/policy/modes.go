package policy

import "time"

// Modes are what may be switched on for a workload beside its mix: on the workload itself or on its namespace.
type Modes struct {
	// ReadOnly is where read-only mode was switched on; SourceNone: nowhere below the member. Plans are made and shown, and
	// nothing is written: no pod is moved or placed, or assigned a slot.
	ReadOnly Source
	// Paused is where moves were paused; SourceNone: nowhere. Nothing is moved or released. New pods are placed.
	Paused Source
	// Strategy is how replicas are moved; empty: as the configuration says.
	Strategy       Strategy
	StrategySource Source
	// MaxMoves is how many replicas may be on the move at a time; only looked at if its source is set.
	MaxMoves       MoveLimit
	MaxMovesSource Source
	// Cooldown is the least time between two batches of moves; only looked at if its source is set.
	Cooldown       time.Duration
	CooldownSource Source
	// PendingTimeout is how long a spot pod may be unschedulable until spot counts as dry for its shape; 0: as the
	// configuration says.
	PendingTimeout       time.Duration
	PendingTimeoutSource Source
}

// Rules of the values, as problems quote them.
const (
	ruleSwitch         = "true or false"
	ruleStrategy       = "evict or release"
	rulePendingTimeout = "a Go duration from 5s to 1h"
	ruleMaxMoves       = "a number of replicas from 1, or 1% to 100% of them"
	ruleCooldown       = "a Go duration from 0s to 1h"
)

// MaxCooldown is the longest cool-down that an annotation may ask for: a longer one is a disruption window.
const MaxCooldown = time.Hour

// Limits of a pending timeout: below, a node that is just starting would count as a drought; above, nobody would wait.
const (
	MinPendingTimeout = 5 * time.Second
	MaxPendingTimeout = time.Hour
)

// modes reads the modes of a workload.
func (r *reader) modes(keys Keys) Modes {
	m := Modes{ReadOnly: r.switched(keys.ReadOnly()), Paused: r.switched(keys.Paused())}
	m.Strategy, m.StrategySource = minor(r, keys.Strategy(), ruleStrategy, func(value string) (Strategy, bool) {
		s, err := ParseStrategy(value)
		return s, err == nil
	})
	m.MaxMoves, m.MaxMovesSource = minor(r, keys.MaxMoves(), ruleMaxMoves, func(value string) (MoveLimit, bool) {
		limit, err := ParseMoveLimit(value)
		return limit, err == nil
	})
	m.Cooldown, m.CooldownSource = minor(r, keys.Cooldown(), ruleCooldown, durationBetween(0, MaxCooldown))
	m.PendingTimeout, m.PendingTimeoutSource = minor(r, keys.PendingTimeout(), rulePendingTimeout, durationBetween(MinPendingTimeout, MaxPendingTimeout))
	return m
}

func durationBetween(least, most time.Duration) func(string) (time.Duration, bool) {
	return func(value string) (time.Duration, bool) {
		d, err := time.ParseDuration(value)
		return d, err == nil && d >= least && d <= most
	}
}

// switched returns the nearest level at which something is switched on. It is on if it is on anywhere: who may change a
// workload must not undo what was ordered for its namespace. A value that cannot be read was meant to stop something, so it
// does.
func (r *reader) switched(key string) Source {
	on := SourceNone
	for _, level := range []struct {
		values map[string]string
		source Source
	}{{r.namespace, SourceNamespace}, {r.workload, SourceWorkload}} {
		value, set := level.values[key]
		if set && value != "true" && value != "false" {
			r.problem(SeverityMoves, key, value, ruleSwitch, level.source)
		}
		if SwitchedOn(level.values, key) {
			on = level.source
		}
	}
	return on
}

// SwitchedOn reports whether an annotation switches a mode on: it is there, and anything but "false".
func SwitchedOn(annotations map[string]string, key string) bool {
	value, set := annotations[key]
	return set && value != "false"
}
