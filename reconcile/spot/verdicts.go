package spot

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/when"
)

// sameDrought is how far two verdicts may lie apart to be of one drought, so that the probe of the easier shape speaks for both.
// A shape that was dry long before an easier one has a reason of its own.
const sameDrought = 10 * time.Minute

// Drought knows for which shapes of pods the capacity of one type of a member has no room, and what finds out when it has again.
//
// A pod that stays unschedulable for longer than its timeout, and for which no node is coming, is a verdict on its shape, and on
// all that are at least as hard to place, so that one impossible pod does not speak for all. The verdict ends when a pod of such
// a shape is bound to a node of the type: a replica that was on its way or, as a rule, the probe.
//
// It is level-triggered: told the same facts in any order it says the same, and after a restart the probes tell what it knew.
// It is not safe for concurrent use.
type Drought struct {
	settings DroughtSettings
	capacity capacity.Type
	starts   *startTimes

	pending  map[types.UID]waiting // unschedulable pods
	verdicts map[string]*verdict   // by the text of their shape
	past     map[string]*ended
	probes   map[string]Probe     // that exist, by name
	signs    map[string]sign      // of nodes that come for probes, by their names
	tried    map[string]time.Time // replicas that found no room although a probe had, and when

	generation uint64
}

type verdict struct {
	Verdict
	text     string
	seen     time.Time // when a pod that supports it was last pending
	rested   time.Time // when the last probe was over, else when the verdict was made
	waited   time.Time // since when the pod had waited that it was made for; zero: not known
	excluded bool      // the nodes that there are leave such pods out
}

// NewDrought returns the state of a member's spot capacity without droughts. A new one is told of the probes before the pods.
func NewDrought(s DroughtSettings) *Drought { return newDrought(capacity.Spot, s, &startTimes{}) }

func newDrought(capacityType capacity.Type, s DroughtSettings, starts *startTimes) *Drought {
	return &Drought{settings: s, capacity: capacityType, starts: starts, pending: map[types.UID]waiting{}, verdicts: map[string]*verdict{},
		past: map[string]*ended{}, probes: map[string]Probe{}, signs: map[string]sign{}, tried: map[string]time.Time{}}
}

// Observe takes in what is known of a pod that is steered to the capacity type, whether a node has it or not.
func (d *Drought) Observe(p SpotPod, now time.Time) {
	known, waited := d.pending[p.UID]
	if !p.UnschedulableSince.IsZero() && p.BoundAt.IsZero() {
		known.SpotPod = p
		known.see(p.NodeComing, now)
		d.pending[p.UID] = known
		return
	}
	delete(d.pending, p.UID)
	if p.BoundAt.IsZero() {
		return
	}
	if waited {
		p.BoundAt = when.Later(p.BoundAt, now)
		d.learn(known.UnschedulableSince, p.NodeJoined, now)
	}
	d.prove(&p)
	for _, v := range d.verdicts {
		if p.BoundAt.After(v.seen) && p.Shape.AtLeast(v.Shape) && !d.supported(v, now) {
			d.learn(v.waited, p.NodeJoined, now)
			d.end(v, now)
		}
	}
}

// Gone takes in that a pod is being deleted, is gone, or is no longer steered to the capacity type.
func (d *Drought) Gone(uid types.UID) { delete(d.pending, uid) }

// Exclude takes in whether the nodes of the type that there are leave out pods of a shape by their labels. That is a verdict at
// once, for no pod has to wait to find it out; it ends with the first node that fits.
func (d *Drought) Exclude(shape capacity.Requirements, excluded bool, now time.Time) {
	v := d.verdicts[shape.String()]
	switch {
	case !excluded && v != nil && v.excluded:
		d.end(v, now)
	case excluded && !d.covers(shape):
		d.declare(shape, now).excluded = true
	}
}

// ObserveProbe takes in what is known of a probe that exists. One of a verdict that this process does not know is the
// memory of a process before it.
func (d *Drought) ObserveProbe(p Probe, _ time.Time) {
	if p.Capacity != d.capacity {
		return
	}
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
func (d *Drought) ProbeGone(name string) {
	delete(d.probes, name)
	delete(d.signs, name)
}

// NodeJoined takes in that the capacity has grown: a verdict whose last probe is over for the shortest back-off is probed
// now, or as soon as it is. Where probes were easier to place than replicas, a further node is no reason to believe the next one.
func (d *Drought) NodeJoined(now time.Time) {
	for _, v := range d.verdicts {
		again := when.Later(v.rested.Add(d.settings.FirstProbe), now)
		if again.Before(v.NextProbe) && !v.doubtful() {
			v.NextProbe = again
		}
	}
}

// Dry tells whether the capacity has no room for pods of a shape, and since when.
func (d *Drought) Dry(shape capacity.Requirements) (since time.Time, dry bool) {
	for _, v := range d.verdicts {
		if shape.AtLeast(v.Shape) {
			since, dry = when.Earlier(since, v.Since), true
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
func (d *Drought) Forget(needed func(capacity.Requirements) bool, now time.Time) {
	for _, v := range d.verdicts {
		if !needed(v.Shape) {
			d.end(v, now)
		}
	}
}

// Judge makes the verdicts that are due, and tells when the next pod will have waited for too long; zero: none waits.
func (d *Drought) Judge(now time.Time) (next time.Time) {
	d.forgetPast(now)
	for _, p := range d.pending {
		switch overdue := d.overdue(&p, now); {
		case now.Before(overdue):
			next = when.Earlier(next, overdue)
		case !p.Unasked:
			d.judge(&p.SpotPod, now)
		}
	}
	return next
}

// covers tells whether a verdict stands on a shape, or on an easier one.
func (d *Drought) covers(shape capacity.Requirements) bool {
	_, dry := d.Dry(shape)
	return dry
}

// judge takes in that a pod has waited for too long.
func (d *Drought) judge(p *SpotPod, now time.Time) {
	for _, v := range d.verdicts {
		if v.Shape.AtLeast(p.Shape) {
			v.seen = now
		}
	}
	if d.covers(p.Shape) {
		return
	}
	waited := d.pendingSince(p)
	over := d.past[p.Shape.String()]
	d.declare(p.Shape, now).waited = waited
	if over != nil && over.probed && p.Replica != "" {
		d.tried[p.Replica] = now
	}
}

// declare makes a verdict. One that comes back goes on with its back-off.
func (d *Drought) declare(shape capacity.Requirements, now time.Time) *verdict {
	v := &verdict{Verdict: Verdict{Shape: shape, Capacity: d.capacity, Since: now.Truncate(time.Second)}, text: shape.String(), seen: now, rested: now}
	if over, ok := d.past[v.text]; ok {
		over.resume(v)
	}
	v.NextProbe = d.nextProbe(v, v.Since)
	for _, harder := range d.verdicts {
		if harder.Shape.AtLeast(v.Shape) && v.Since.Sub(harder.Since) < sameDrought {
			d.end(harder, now)
		}
	}
	d.verdicts[v.text] = v
	d.generation++
	return v
}

// supported tells whether a pod that is no harder to place than the verdict's shape has waited for too long and still does.
func (d *Drought) supported(v *verdict, now time.Time) bool {
	for _, p := range d.pending {
		if v.Shape.AtLeast(p.Shape) && !p.Unasked && !now.Before(d.overdue(&p, now)) {
			return true
		}
	}
	return false
}

func (d *Drought) end(v *verdict, now time.Time) *ended {
	over := &ended{Verdict: v.Verdict, at: now}
	delete(d.verdicts, v.text)
	d.past[v.text] = over
	d.generation++
	return over
}
