package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
)

// Source says where a value of a policy comes from.
type Source uint8

// Sources, the strongest first.
const (
	SourceNone      Source = iota // set nowhere
	SourceWorkload                // an annotation of the workload
	SourceNamespace               // an annotation of its namespace
	SourceDefault                 // spot.defaults of the configuration
	SourceRequest                 // the question that a [report.Hypothesis] is
	SourceFleet                   // a fleet placement; see [FleetSplit]
)

// String returns the word for messages.
func (s Source) String() string {
	return [...]string{"none", "workload", "namespace", "default", "request", "fleet placement"}[min(s, SourceFleet)]
}

// Defaults are the values of spot.defaults, for workloads where neither they nor their namespace say. Nil or empty: unset.
type Defaults struct {
	Percentage, MinOnDemand *int
	// Schedule, Duration and Timezone of a disruption window, written as in the annotations: the first two both or neither,
	// the last only beside them.
	Schedule, Duration, Timezone string
}

// Clone returns a copy that shares nothing with d.
func (d Defaults) Clone() Defaults {
	if d.Percentage != nil {
		d.Percentage = new(*d.Percentage)
	}
	if d.MinOnDemand != nil {
		d.MinOnDemand = new(*d.MinOnDemand)
	}
	return d
}

// Validate returns an error that names the first value that no policy could use.
func (d Defaults) Validate() error {
	p := Parse(Keys{Prefix: DefaultPrefix}, nil, nil, d)
	if len(p.Problems) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %q: want %s", p.Problems[0].Key, p.Problems[0].Value, p.Problems[0].Rule)
}

// Severity is what a value that cannot be used costs.
type Severity uint8

const (
	// SeverityPlacement: nobody knows where replicas belong. New ones go on-demand, and none is moved.
	SeverityPlacement Severity = iota
	// SeverityMoves: nobody knows when replicas may be moved, so none is. New ones are placed by the mix.
	SeverityMoves
	// SeverityMinor: the value of the next level is used in its place.
	SeverityMinor
)

// Consequence says what a problem costs, as the second half of a sentence.
func (s Severity) Consequence() string {
	switch s {
	case SeverityMoves:
		return "no replica is moved to change the mix until it is corrected"
	case SeverityMinor:
		return "the value of the next level is used until it is corrected"
	default:
		return "new pods go on-demand and no replica is moved to change the mix until it is corrected"
	}
}

// Problem is a value that cannot be used.
type Problem struct {
	// Key of the annotation, or the path in the configuration.
	Key string
	// Value as it was written, shortened when it is long; empty also when a value is missing.
	Value string
	// Rule that the value breaks.
	Rule string
	// Source is where the value was read.
	Source Source
	// Severity is what that costs.
	Severity Severity
}

// String names key, value, source and rule.
func (p Problem) String() string {
	return fmt.Sprintf("%s %q (of the %s): want %s", p.Key, p.Value, p.Source, p.Rule)
}

// Policy is what a workload wants: every value from the nearest level that has it, each on its own.
type Policy struct {
	// Percentage is the share of replicas on spot capacity, 0 to 100. Nil: set nowhere, or invalid.
	Percentage       *int
	PercentageSource Source
	// MinOnDemand is the floor of on-demand replicas, 0 to 10000. Nil: set nowhere, or invalid.
	MinOnDemand       *int
	MinOnDemandSource Source
	// Window is when replicas may be moved. Nil: at any time.
	Window *Window
	// WindowSource is where the window's schedule comes from.
	WindowSource Source
	// WindowInvalid says that a value of the window cannot be used. It was meant to restrict moves, so it counts as a window that
	// never opens.
	WindowInvalid bool
	// Fleet is what a fleet placement wants; nil: none has the workload. Percentage and MinOnDemand then follow from it.
	Fleet *FleetSplit
	// Modes are what else is switched on or set.
	Modes
	// Problems are the values that cannot be used; values that a nearer level overrides are not looked at.
	Problems []Problem
}

// Valid reports whether it is known where replicas belong: no value that says so is unusable. Other values may be.
func (p *Policy) Valid() bool {
	return !slices.ContainsFunc(p.Problems, func(found Problem) bool { return found.Severity == SeverityPlacement })
}

// Managed reports whether a percentage or a floor is set anywhere, valid or not.
func (p *Policy) Managed() bool {
	return p.PercentageSource != SourceNone || p.MinOnDemandSource != SourceNone
}

// Mix returns the arithmetic of the policy.
//
// With a floor alone the percentage is 0, as it always was in the predecessor whose annotations these are: spot capacity
// is used where somebody asked for it. With a percentage alone the floor is 0. An invalid policy puts everything
// on-demand; there is no memory of an older value, so that a restart changes nothing. Its floor is not known, so that every
// on-demand replica counts as one of it.
func (p *Policy) Mix() Mix {
	switch {
	case !p.Valid():
		return Mix{Managed: true, Floor: maxMinOnDemand}
	case !p.Managed():
		return Mix{}
	}
	m := Mix{Managed: true}
	if p.Percentage != nil {
		m.Percent = *p.Percentage
	}
	if p.MinOnDemand != nil {
		m.Floor = *p.MinOnDemand
	}
	return m
}

// Rules of the values, as problems and errors quote them.
const (
	rulePercentage  = "a whole number from 0 to 100, with or without %"
	ruleMinOnDemand = "a whole number from 0 to 10000"

	maxMinOnDemand = 10000

	PathPercentage  = "spot.defaults.spotPercentage"
	PathMinOnDemand = "spot.defaults.minOnDemand"
)

// Parse reads the policy of a workload from its annotations, those of its namespace and the defaults. It always
// returns a policy; what cannot be used is in its Problems.
func Parse(keys Keys, workload, namespace map[string]string, defaults Defaults) Policy {
	r := reader{workload: workload, namespace: namespace}
	var p Policy
	p.Percentage, p.PercentageSource = r.number(keys.SpotPercentage(), PathPercentage, defaults.Percentage, parsePercentage, rulePercentage)
	p.MinOnDemand, p.MinOnDemandSource = r.number(keys.MinOnDemand(), PathMinOnDemand, defaults.MinOnDemand, parseMinOnDemand, ruleMinOnDemand)
	p.Window, p.WindowSource = r.window(keys, defaults)
	p.WindowInvalid = p.Window == nil && p.WindowSource != SourceNone
	p.Modes = r.modes(keys)
	p.Problems = r.problems
	return p
}

// reader looks values up level by level and collects problems.
type reader struct {
	workload, namespace map[string]string
	problems            []Problem
}

// lookup returns the value of the nearest annotation with the key. A value that is empty is a value.
func (r *reader) lookup(key string) (string, Source) {
	if value, ok := r.workload[key]; ok {
		return value, SourceWorkload
	}
	if value, ok := r.namespace[key]; ok {
		return value, SourceNamespace
	}
	return "", SourceNone
}

func (r *reader) number(key, path string, fallback *int, parse func(string) (int, bool), rule string) (*int, Source) {
	value, source := r.lookup(key)
	if source == SourceNone {
		if fallback == nil {
			return nil, SourceNone
		}
		key, value, source = path, strconv.Itoa(*fallback), SourceDefault
	}
	n, ok := parse(value)
	if !ok {
		r.problem(SeverityPlacement, key, value, rule, source)
		return nil, source
	}
	return &n, source
}

// windowLevel is what one level says about the disruption window. It counts as a whole: a level with any of the values
// hides those of the levels below it.
type windowLevel struct {
	source                   Source
	schedule, duration, zone windowValue
}

// windowValue is a value with the key under which a problem names it.
type windowValue struct {
	key, text string
	set       bool
}

func annotated(annotations map[string]string, key string) windowValue {
	text, set := annotations[key]
	return windowValue{key, text, set}
}

func configured(path, text string) windowValue { return windowValue{path, text, text != ""} }

// windowLevels returns what each level says, the nearest first.
func (r *reader) windowLevels(keys Keys, defaults Defaults) []windowLevel {
	levels := []windowLevel{{source: SourceWorkload}, {source: SourceNamespace}, {
		source:   SourceDefault,
		schedule: configured("spot.defaults.disruptionSchedule", defaults.Schedule),
		duration: configured("spot.defaults.disruptionDuration", defaults.Duration),
		zone:     configured("spot.defaults.disruptionTimezone", defaults.Timezone),
	}}
	for i, values := range []map[string]string{r.workload, r.namespace} {
		levels[i].schedule = annotated(values, keys.DisruptionSchedule())
		levels[i].duration = annotated(values, keys.DisruptionDuration())
		levels[i].zone = annotated(values, keys.DisruptionTimezone())
	}
	return levels
}

// window returns the window of the nearest level that says anything about it.
func (r *reader) window(keys Keys, defaults Defaults) (*Window, Source) {
	for _, level := range r.windowLevels(keys, defaults) {
		if level.schedule.set || level.duration.set || level.zone.set {
			return r.windowOf(level), level.source
		}
	}
	return nil, SourceNone
}

// windowOf returns the window of a level; nil with its problems where the values make none.
func (r *reader) windowOf(level windowLevel) *Window {
	found := len(r.problems)
	for _, value := range []windowValue{level.schedule, level.duration} {
		if !value.set {
			r.problem(SeverityMoves, value.key, "", ruleWindow, level.source)
		}
	}
	if len(r.problems) > found {
		return nil
	}
	spec, err := parseSchedule(level.schedule.text)
	if err != nil {
		r.problem(SeverityMoves, level.schedule.key, level.schedule.text, ruleSchedule, level.source)
	}
	d, err := parseDuration(level.duration.text)
	if err != nil {
		r.problem(SeverityMoves, level.duration.key, level.duration.text, ruleDuration, level.source)
	}
	location, err := parseTimezone(level.zone.text)
	if err != nil || (level.zone.set && level.zone.text == "") {
		r.problem(SeverityMoves, level.zone.key, level.zone.text, ruleTimezone, level.source)
	}
	if len(r.problems) > found {
		return nil
	}
	return newWindow(level.schedule.text, spec, d, location)
}

func (r *reader) problem(severity Severity, key, value, rule string, source Source) {
	r.problems = append(r.problems, Problem{Key: key, Value: phrase.Value(value), Rule: rule, Source: source, Severity: severity})
}

// minor reads a value that does not say where replicas belong. Of the annotations, the nearest that can be used counts; those
// before it that cannot are reported.
func minor[T any](r *reader, key, rule string, parse func(string) (T, bool)) (value T, source Source) {
	for _, level := range []struct {
		values map[string]string
		source Source
	}{{r.workload, SourceWorkload}, {r.namespace, SourceNamespace}} {
		text, set := level.values[key]
		if !set {
			continue
		}
		if value, ok := parse(text); ok {
			return value, level.source
		}
		r.problem(SeverityMinor, key, text, rule, level.source)
	}
	return value, SourceNone
}

func parsePercentage(value string) (int, bool) {
	return phrase.Number(strings.TrimSuffix(value, "%"), 100)
}

func parseMinOnDemand(value string) (int, bool) { return phrase.Number(value, maxMinOnDemand) }
