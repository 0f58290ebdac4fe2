package shortage

import (
	"maps"
	"slices"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/when"
)

// Step judges what was observed, and says what has to be done about the probes. It may be asked at any time; what was not
// done yet, it says again.
func (d *Tracker) Step(now time.Time) Plan {
	plan := Plan{Recheck: d.Judge(now)}
	for _, v := range d.decisions {
		if p, exists := d.probes[ProbeName(v.text, &v.Decision)]; exists && !p.BoundAt.IsZero() {
			d.learn(v.waited, p.NodeJoined, now)
			d.end(v, now).probed = true // there is room again
		}
	}
	wanted := map[string]struct{}{}
	for _, text := range slices.Sorted(maps.Keys(d.decisions)) {
		wanted[d.try(d.decisions[text], &plan, now)] = struct{}{}
	}
	for _, name := range slices.Sorted(maps.Keys(d.probes)) {
		if _, ok := wanted[name]; !ok {
			plan.Delete = append(plan.Delete, name)
		}
	}
	return plan
}

// try says what is to be done about the probe of a decision, and returns the name of the one that should exist.
func (d *Tracker) try(v *decision, plan *Plan, now time.Time) string {
	name := ProbeName(v.text, &v.Decision)
	p, exists := d.probes[name]
	if over := d.probeOver(&p); exists && !p.Gated {
		if now.Before(over) {
			plan.note(&p, v)
			plan.Recheck = when.Earlier(plan.Recheck, over)
			return name
		}
		v.Tries++
		d.widen(v)
		v.rested = over.Truncate(time.Second)
		v.NextProbe = d.nextProbe(v, v.rested)
		name, exists = ProbeName(v.text, &v.Decision), false
	}
	if !exists {
		plan.Create = append(plan.Create, Probe{Name: name, Decision: v.Decision, Gated: true})
		return name
	}
	plan.note(&p, v)
	switch latest := v.NextProbe.Add(d.settings.FirstProbe); {
	case now.Before(v.NextProbe):
		plan.Recheck = when.Earlier(plan.Recheck, v.NextProbe)
	case !d.easiest(v):
	case now.Before(latest) && d.waitAnyway(v):
		plan.Recheck = when.Earlier(plan.Recheck, latest)
	default:
		plan.Open = append(plan.Open, name)
	}
	return name
}

// note has the namespaces written on a probe that its decision holds for, if others are on it: they are lost with this process otherwise.
func (p *Plan) note(probe *Probe, v *decision) {
	if !slices.Equal(probe.Namespaces, v.Namespaces) {
		p.Note = append(p.Note, Probe{Name: probe.Name, Decision: v.Decision})
	}
}

// easiest reports whether no decision that holds for the same namespaces stands on easier requirements: as long as one does, a probe of this one
// is unsuccessful.
func (d *Tracker) easiest(v *decision) bool {
	for _, other := range d.decisions {
		if other != v && other.appliesToAll(v.Namespaces) && v.Requirements.AtLeast(other.Requirements) {
			return false
		}
	}
	return true
}

// waitAnyway reports whether replicas of many namespaces that are no harder to place wait anyway: then the probe has time, which would be one pod more
// for which an autoscaler brings a node. Those of few may wait for other reasons, and so may all of them: it has time for [Settings.FirstProbe].
func (d *Tracker) waitAnyway(v *decision) bool {
	return d.waitIn(v, noNamespace, func(*waiting) bool { return true })
}

// noNamespace is the name of none.
const noNamespace = "/"

// AskOf returns the probes that wait for a node and will have done so for too long within some time, by name: whether a node
// is coming for them is to be found out, and given to [Tracker.ProbeSign].
func (d *Tracker) AskOf(within time.Duration, now time.Time) []Probe {
	var ask []Probe
	for _, name := range slices.Sorted(maps.Keys(d.probes)) {
		if p := d.probes[name]; !p.Gated && p.BoundAt.IsZero() && !now.Add(within).Before(p.OpenedAt.Add(d.settings.ProbeTime)) {
			ask = append(ask, p)
		}
	}
	return ask
}

// ProbeSign takes in whether a node is coming for a probe: then it is given until [Settings.NodeStart].
func (d *Tracker) ProbeSign(name string, coming bool, now time.Time) {
	if _, exists := d.probes[name]; exists {
		s := d.signs[name]
		s.see(coming, now)
		d.signs[name] = s
	}
}

// backoff is the time to the next probe after some that were unsuccessful.
func (d *Tracker) backoff(tries int) time.Duration {
	return doubled(d.settings.FirstProbe, tries, d.settings.MostBetween)
}

// nextProbe is when a decision is probed whose last probe, if any, was over at a time. After relapses that is not before the
// decision has stood for long enough, whatever the probes say.
func (d *Tracker) nextProbe(v *decision, rested time.Time) time.Time {
	next := rested.Add(d.backoff(v.Tries))
	if v.doubtful() {
		next = when.Later(next, v.Since.Add(doubled(d.settings.FirstProbe, 2*v.Relapses-1, mostAfterRelapses)))
	}
	return next
}

// doubled is a time doubled n times, at most some other.
func doubled(d time.Duration, n int, most time.Duration) time.Duration {
	if n > 16 {
		return most
	}
	return min(d<<n, most)
}
