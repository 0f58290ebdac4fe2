package spot

import "time"

// Modes are what may be switched on for a workload beside its mix: on the workload itself or on its namespace.
type Modes struct {
	// ReadOnly is where read-only mode was switched on; SourceNone: nowhere below the member. Plans are made and shown, and
	// nothing is written: no pod is moved, stamped or placed.
	ReadOnly Source
	// Paused is where moves were paused; SourceNone: nowhere. Nothing is moved or released. New pods are placed.
	Paused Source
	// Strategy is how replicas are moved; empty: as the configuration says.
	Strategy       Strategy
	StrategySource Source
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
)

// Limits of a pending timeout: below, a node that is just starting would count as a drought; above, nobody would wait.
const (
	MinPendingTimeout = 5 * time.Second
	MaxPendingTimeout = time.Hour
)

// modes reads the modes of a workload.
func (r *reader) modes(keys Keys) Modes {
	m := Modes{ReadOnly: r.switched(keys.ReadOnly()), Paused: r.switched(keys.Paused())}
	if value, source := r.lookup(keys.Strategy()); source != SourceNone {
		m.Strategy, m.StrategySource = r.strategy(keys.Strategy(), value, source), source
	}
	if value, source := r.lookup(keys.PendingTimeout()); source != SourceNone {
		m.PendingTimeout, m.PendingTimeoutSource = r.pendingTimeout(keys.PendingTimeout(), value, source), source
	}
	return m
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
			r.problem(key, value, ruleSwitch, level.source)
		}
		if SwitchedOn(level.values, key) {
			on = level.source
		}
	}
	return on
}

// SwitchedOn tells whether an annotation switches a mode on: it is there, and anything but "false".
func SwitchedOn(annotations map[string]string, key string) bool {
	value, set := annotations[key]
	return set && value != "false"
}

func (r *reader) strategy(key, value string, source Source) Strategy {
	s, err := ParseStrategy(value)
	if err != nil {
		r.problem(key, value, ruleStrategy, source)
	}
	return s
}

func (r *reader) pendingTimeout(key, value string, source Source) time.Duration {
	d, err := time.ParseDuration(value)
	if err != nil || d < MinPendingTimeout || d > MaxPendingTimeout {
		r.problem(key, value, rulePendingTimeout, source)
		return 0
	}
	return d
}

// For returns the settings as they hold for one workload of a member.
func (s Settings) For(m Modes, readOnlyMember bool) Settings {
	if m.Strategy != "" {
		s.Strategy = m.Strategy
	}
	if m.PendingTimeout > 0 {
		s.PendingTimeout = m.PendingTimeout
	}
	s.Paused = s.Paused || m.Paused != SourceNone
	switch {
	case s.ReadOnly:
	case readOnlyMember:
		s.ReadOnly, s.ReadOnlyBy = true, "the member"
	case m.ReadOnly != SourceNone:
		s.ReadOnly, s.ReadOnlyBy = true, "the "+m.ReadOnly.String()
	}
	return s
}

// settingsFor returns the settings as they hold for one workload.
func (e *Engine) settingsFor(member string, p *Policy) Settings {
	return e.Settings.For(p.Modes, e.ReadOnlyMember != nil && e.ReadOnlyMember(member))
}
