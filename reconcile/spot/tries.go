package spot

import (
	"maps"
	"slices"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/when"
)

// Step judges what was observed, and says what has to be done about the probes. It may be asked at any time; what was not
// done yet, it says again.
func (d *Drought) Step(now time.Time) DroughtPlan {
	plan := DroughtPlan{Recheck: d.Judge(now)}
	for _, v := range d.verdicts {
		if p, exists := d.probes[probeName(v.text, &v.Verdict)]; exists && !p.BoundAt.IsZero() {
			d.learn(v.waited, p.NodeJoined, now)
			d.end(v, now).probed = true // there is room again
		}
	}
	wanted := map[string]struct{}{}
	for _, text := range slices.Sorted(maps.Keys(d.verdicts)) {
		wanted[d.try(d.verdicts[text], &plan, now)] = struct{}{}
	}
	for _, name := range slices.Sorted(maps.Keys(d.probes)) {
		if _, ok := wanted[name]; !ok {
			plan.Delete = append(plan.Delete, name)
		}
	}
	return plan
}

// try says what is to be done about the probe of a verdict, and returns the name of the one that should exist.
func (d *Drought) try(v *verdict, plan *DroughtPlan, now time.Time) string {
	name := probeName(v.text, &v.Verdict)
	p, exists := d.probes[name]
	if over := d.probeOver(&p); exists && !p.Gated {
		if now.Before(over) {
			plan.Recheck = when.Earlier(plan.Recheck, over)
			return name
		}
		v.Tries++
		v.rested = over.Truncate(time.Second)
		v.NextProbe = d.nextProbe(v, v.rested)
		name, exists = probeName(v.text, &v.Verdict), false
	}
	switch {
	case !exists:
		plan.Create = append(plan.Create, Probe{Name: name, Verdict: v.Verdict, Gated: true})
	case now.Before(v.NextProbe):
		plan.Recheck = when.Earlier(plan.Recheck, v.NextProbe)
	case d.easiest(v) && !d.tells(v):
		plan.Open = append(plan.Open, name)
	}
	return name
}

// easiest tells whether no verdict stands on an easier shape: as long as one does, a probe of this one is in vain.
func (d *Drought) easiest(v *verdict) bool {
	for _, other := range d.verdicts {
		if other != v && v.Shape.AtLeast(other.Shape) {
			return false
		}
	}
	return true
}

// tells tells whether a replica that is no harder to place waits anyway: then no probe is needed, which would be one pod more
// for which an autoscaler brings a node.
func (d *Drought) tells(v *verdict) bool {
	for _, p := range d.pending {
		if v.Shape.AtLeast(p.Shape) {
			return true
		}
	}
	return false
}

// AskOf returns the probes that wait for a node and will have done so for too long within some time, by name: whether a node
// is coming for them is to be found out, and told to [Drought.ProbeSign].
func (d *Drought) AskOf(within time.Duration, now time.Time) []Probe {
	var ask []Probe
	for _, name := range slices.Sorted(maps.Keys(d.probes)) {
		if p := d.probes[name]; !p.Gated && p.BoundAt.IsZero() && !now.Add(within).Before(p.OpenedAt.Add(d.settings.ProbeTime)) {
			ask = append(ask, p)
		}
	}
	return ask
}

// ProbeSign takes in whether a node is coming for a probe: then it is given until [DroughtSettings.NodeStart].
func (d *Drought) ProbeSign(name string, coming bool, now time.Time) {
	if _, exists := d.probes[name]; exists {
		s := d.signs[name]
		s.see(coming, now)
		d.signs[name] = s
	}
}

// backoff is the time to the next probe after some that were in vain.
func (d *Drought) backoff(tries int) time.Duration {
	return doubled(d.settings.FirstProbe, tries, d.settings.MostBetween)
}

// nextProbe is when a verdict is probed whose last probe, if any, was over at a time. After relapses that is not before the
// verdict has stood for long enough, whatever the probes say.
func (d *Drought) nextProbe(v *verdict, rested time.Time) time.Time {
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
