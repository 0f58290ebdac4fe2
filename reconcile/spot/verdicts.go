package spot

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// relapseTime is how long after its end a verdict is remembered: one that comes back goes on with its back-off.
	relapseTime = time.Hour
	// sameDrought is how far two verdicts may lie apart to be of one drought, so that the probe of the easier shape speaks
	// for both. A shape that was dry long before an easier one has a reason of its own.
	sameDrought = 10 * time.Minute
)

// Drought knows for which shapes of pods the spot capacity of one member has no room, and what finds out when it has again.
//
// A spot pod that stays unschedulable for longer than its timeout is a verdict on its shape, and on all that are at least as
// hard to place, so that one impossible pod does not speak for all. The verdict ends when a pod of such a shape is bound to
// spot: a replica that was on its way or, as a rule, the probe.
//
// It is level-triggered: told the same facts in any order it says the same, and after a restart the probes tell what it knew.
// It is not safe for concurrent use.
type Drought struct {
	settings DroughtSettings

	pending  map[types.UID]SpotPod // unschedulable pods
	verdicts map[string]*verdict   // by the text of their shape
	past     map[string]ended
	probes   map[string]Probe // that exist, by name

	generation uint64
}

type verdict struct {
	Verdict
	text   string
	seen   time.Time // when a pod that supports it was last pending
	rested time.Time // when the last probe was over, else when the verdict was made
}

// ended is what is remembered of a verdict that is over.
type ended struct {
	Verdict
	at time.Time
}

// NewDrought returns the state of a member without droughts. A new one is told of the probes before the pods.
func NewDrought(s DroughtSettings) *Drought {
	return &Drought{settings: s, pending: map[types.UID]SpotPod{}, verdicts: map[string]*verdict{}, past: map[string]ended{},
		probes: map[string]Probe{}}
}

// Observe takes in what is known of a pod that is steered to spot, whether a node has it or not.
func (d *Drought) Observe(p SpotPod, now time.Time) {
	if p.UnschedulableSince.IsZero() || !p.BoundAt.IsZero() {
		delete(d.pending, p.UID)
	} else {
		d.pending[p.UID] = p
	}
	if p.BoundAt.IsZero() {
		return
	}
	for _, v := range d.verdicts {
		if p.BoundAt.After(v.seen) && p.Shape.AtLeast(v.Shape) && !d.supported(v, now) {
			d.end(v, now)
		}
	}
}

// Gone takes in that a pod is being deleted, is gone, or is no longer steered to spot.
func (d *Drought) Gone(uid types.UID) { delete(d.pending, uid) }

// ObserveProbe takes in what is known of a probe that exists. One of a verdict that this process does not know is the
// memory of a process before it.
func (d *Drought) ObserveProbe(p Probe, _ time.Time) {
	d.probes[p.Name] = p
	text := p.Shape.String()
	if over, ok := d.past[text]; ok && !p.Since.After(over.at) {
		return
	}
	v := d.verdicts[text]
	if v == nil {
		v = &verdict{Verdict: p.Verdict, text: text, seen: p.Since, rested: p.NextProbe.Add(-d.backoff(p.Tries))}
		d.verdicts[text] = v
		d.generation++
	} else if p.Since.Equal(v.Since) && p.Tries > v.Tries {
		v.Tries, v.NextProbe, v.rested = p.Tries, p.NextProbe, p.NextProbe.Add(-d.backoff(p.Tries))
	}
}

// ProbeGone takes in that a probe is gone, or is being deleted.
func (d *Drought) ProbeGone(name string) { delete(d.probes, name) }

// NodeJoined takes in that spot capacity has grown: a verdict whose last probe is over for the shortest back-off is probed
// now, or as soon as it is.
func (d *Drought) NodeJoined(now time.Time) {
	for _, v := range d.verdicts {
		if again := later(v.rested.Add(d.settings.FirstProbe), now); again.Before(v.NextProbe) {
			v.NextProbe = again
		}
	}
}

// Dry tells whether spot has no room for pods of a shape, and since when.
func (d *Drought) Dry(shape Shape) (since time.Time, dry bool) {
	for _, v := range d.verdicts {
		if shape.AtLeast(v.Shape) {
			since, dry = soonest(since, v.Since), true
		}
	}
	return since, dry
}

// Verdicts returns the verdicts that stand, in a fixed order.
func (d *Drought) Verdicts() []Verdict {
	list := make([]Verdict, 0, len(d.verdicts))
	for _, text := range slices.Sorted(maps.Keys(d.verdicts)) {
		list = append(list, d.verdicts[text].Verdict)
	}
	return list
}

// Generation changes whenever a verdict comes or goes: then the plans of the member's workloads may be different.
func (d *Drought) Generation() uint64 { return d.generation }

// Forget drops the verdicts that nobody needs: those for which needed is false have no owner left whose pods they are about.
func (d *Drought) Forget(needed func(Shape) bool, now time.Time) {
	for _, v := range d.verdicts {
		if !needed(v.Shape) {
			d.end(v, now)
		}
	}
}

// Step judges what was observed, and says what has to be done about the probes. It may be asked at any time; what was not
// done yet, it says again.
func (d *Drought) Step(now time.Time) DroughtPlan {
	var plan DroughtPlan
	maps.DeleteFunc(d.past, func(_ string, over ended) bool { return now.Sub(over.at) > relapseTime })
	for _, p := range d.pending {
		if overdue := d.pendingSince(&p).Add(p.Timeout); now.Before(overdue) {
			plan.Recheck = soonest(plan.Recheck, overdue)
		} else {
			d.judge(&p, now)
		}
	}
	for _, v := range d.verdicts {
		if p, exists := d.probes[probeName(v.text, &v.Verdict)]; exists && !p.BoundAt.IsZero() {
			d.end(v, now) // there is room again
		}
	}
	wanted := map[string]struct{}{}
	for _, text := range slices.Sorted(maps.Keys(d.verdicts)) {
		wanted[d.probe(d.verdicts[text], &plan, now)] = struct{}{}
	}
	for _, name := range slices.Sorted(maps.Keys(d.probes)) {
		if _, ok := wanted[name]; !ok {
			plan.Delete = append(plan.Delete, name)
		}
	}
	return plan
}

// pendingSince returns from when on a pod's waiting counts: not before the end of a verdict on it, for until then nobody
// expected that it would be placed.
func (d *Drought) pendingSince(p *SpotPod) time.Time {
	since := p.UnschedulableSince
	for _, over := range d.past {
		if p.Shape.AtLeast(over.Shape) {
			since = later(since, over.at)
		}
	}
	return since
}

// judge takes in that a pod has waited for too long.
func (d *Drought) judge(p *SpotPod, now time.Time) {
	covered := false
	for _, v := range d.verdicts {
		if v.Shape.AtLeast(p.Shape) {
			v.seen = now
		}
		covered = covered || p.Shape.AtLeast(v.Shape)
	}
	if covered {
		return
	}
	v := &verdict{Verdict: Verdict{Shape: p.Shape, Since: now.Truncate(time.Second)}, text: p.Shape.String(), seen: now, rested: now}
	if over, ok := d.past[v.text]; ok {
		v.Tries = over.Tries + 1
	}
	v.NextProbe = v.Since.Add(d.backoff(v.Tries))
	for _, harder := range d.verdicts {
		if harder.Shape.AtLeast(v.Shape) && v.Since.Sub(harder.Since) < sameDrought {
			d.end(harder, now)
		}
	}
	d.verdicts[v.text] = v
	d.generation++
}

// supported tells whether a pod that is no harder to place than the verdict's shape has waited for too long and still does.
func (d *Drought) supported(v *verdict, now time.Time) bool {
	for _, p := range d.pending {
		if v.Shape.AtLeast(p.Shape) && !now.Before(d.pendingSince(&p).Add(p.Timeout)) {
			return true
		}
	}
	return false
}

func (d *Drought) end(v *verdict, now time.Time) {
	delete(d.verdicts, v.text)
	d.past[v.text] = ended{Verdict: v.Verdict, at: now}
	d.generation++
}

// probe says what is to be done about the probe of a verdict, and returns the name of the one that should exist.
func (d *Drought) probe(v *verdict, plan *DroughtPlan, now time.Time) string {
	name := probeName(v.text, &v.Verdict)
	p, exists := d.probes[name]
	if over := p.OpenedAt.Add(d.settings.ProbeTime); exists && !p.Gated {
		if now.Before(over) {
			plan.Recheck = soonest(plan.Recheck, over)
			return name
		}
		v.Tries++
		v.rested = over.Truncate(time.Second)
		v.NextProbe = v.rested.Add(d.backoff(v.Tries))
		name, exists = probeName(v.text, &v.Verdict), false
	}
	switch {
	case !exists:
		plan.Create = append(plan.Create, Probe{Name: name, Verdict: v.Verdict, Gated: true})
	case now.Before(v.NextProbe):
		plan.Recheck = soonest(plan.Recheck, v.NextProbe)
	case d.easiest(v):
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

// backoff is the time to the next probe after some that were in vain.
func (d *Drought) backoff(tries int) time.Duration {
	if tries > 16 {
		return d.settings.MostBetween
	}
	return min(d.settings.FirstProbe<<tries, d.settings.MostBetween)
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
