package shortage

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/when"
)

// sameDrought is how far two decisions may lie apart to be of one shortage, so that the probe of the easier requirements speaks for both.
// Requirements that were dry long before easier ones have a reason of their own.
const sameDrought = 10 * time.Minute

// Tracker knows for which scheduling requirements of pods the capacity of one type of a member has no room, and what finds out when it has again.
//
// A pod that stays unschedulable for longer than its timeout, and for which no node is coming, is a decision on its requirements, and on
// all that are at least as hard to place, so that one impossible pod does not speak for all. It holds for the pod's namespace: why a pod finds no
// node is not all in its requirements, and a tenant may have pods that never find one. It holds for all namespaces when pods of three have shown it, or
// when its probe has found no node. Pods whose requirements have more than 128 parts are not judged. The decision ends when a pod of
// such requirements is bound to a node of the type: a replica that was on its way or, as a rule, the probe.
//
// It is level-triggered: from the same facts in any order it decides the same, and after a restart the probes show what it knew.
// It is not safe for concurrent use.
type Tracker struct {
	settings Settings
	capacity capacity.Type
	starts   *StartTimes

	pending   map[types.UID]waiting // unschedulable pods
	decisions map[string]*decision  // by the text of their requirements
	sizes     map[string]size       // of the decisions, by the namespaces that they were made for
	bytes     int                   // of the texts of all decisions
	past      map[string]*ended
	probes    map[string]Probe // that exist, by name
	signs     map[string]sign  // of nodes that come for probes, by their names
	tried     tried

	generation uint64
}

// maxParts is how many parts the requirements of a pod may have that is judged. Each is compared with those of all decisions, and calls
// about other pods wait for it; whoever writes a template chooses how many there are.
const maxParts = 128

// judged reports whether decisions are made on some requirements.
func judged(shape capacity.Requirements) bool {
	return len(shape.Constraints)+len(shape.Tolerations)+len(shape.Other) <= maxParts
}

// manyNamespaces is how many namespaces have to have pods that find no node until a decision holds for all.
const manyNamespaces = 3

type decision struct {
	Decision
	text     string
	of       string // the namespace that it was made for; empty: not known, for only its probe is left
	made     time.Time
	by       map[string]time.Time // namespaces whose pods show it, at most manyNamespaces, and when one was last pending
	rested   time.Time            // when the last probe was over, else when the decision was made
	waited   time.Time            // since when the pod had waited that it was made for; zero: not known
	excluded bool                 // the nodes that there are leave such pods out
}

// NewSpotTracker returns the state of a member's spot capacity without shortages. A new one is notified of the probes before the pods.
func NewSpotTracker(s Settings) *Tracker { return NewTracker(capacity.Spot, s, &StartTimes{}) }

// NewTracker is [NewSpotTracker] for a capacity type, with start times that several may share.
func NewTracker(capacityType capacity.Type, s Settings, starts *StartTimes) *Tracker {
	return &Tracker{settings: s, capacity: capacityType, starts: starts, pending: map[types.UID]waiting{}, decisions: map[string]*decision{},
		sizes: map[string]size{}, past: map[string]*ended{}, probes: map[string]Probe{}, signs: map[string]sign{}, tried: tried{at: map[string]time.Time{}}}
}

// Observe takes in what is known about a pod that is steered to the capacity type, whether a node has it or not.
func (d *Tracker) Observe(p Pod, now time.Time) {
	known, waited := d.pending[p.UID]
	if !p.UnschedulableSince.IsZero() && p.BoundAt.IsZero() {
		if !judged(p.Requirements) {
			delete(d.pending, p.UID)
			return
		}
		known.Pod = p
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
	for _, v := range d.decisions {
		if (waited || p.BoundAt.After(v.seen(p.Namespace))) && p.Requirements.AtLeast(v.Requirements) && !d.supported(v, p.Namespace, now) {
			d.learn(v.waited, p.NodeJoined, now)
			d.end(v, now)
		}
	}
}

// Gone takes in that a pod is being deleted, is gone, or is no longer steered to the capacity type.
func (d *Tracker) Gone(uid types.UID) { delete(d.pending, uid) }

// Exclude takes in whether the nodes of the type that there are leave out pods of some requirements by their labels, which pods of a namespace
// have. That is a decision at once, for no pod has to wait to find it out; it ends with the first node that fits. Where the namespace has too
// many there is none, and no probe: that the nodes leave its pods out is known without it.
func (d *Tracker) Exclude(shape capacity.Requirements, namespace string, excluded bool, now time.Time) {
	text := shape.String()
	v := d.decisions[text]
	switch {
	case !excluded && v != nil && v.excluded:
		d.end(v, now)
	case excluded && judged(shape) && !d.covers(shape, nil) && d.makeRoom(namespace, len(text), now):
		d.declare(&decision{Decision: Decision{Requirements: shape}, text: text, of: namespace, excluded: true}, now)
	}
}

// clockSkew is how far the clocks of two replicas of the hub may be apart, and a bit more.
const clockSkew = 5 * time.Minute

// credible reports whether the hub may have written a decision on a probe: it judges no such requirements, and writes no such times.
func (d *Tracker) credible(p *Probe, now time.Time) bool {
	latest := now.Add(clockSkew)
	return judged(p.Requirements) && !p.Since.After(latest) && !p.NextProbe.After(latest.Add(max(d.settings.MostBetween, mostAfterRelapses)))
}

// ObserveProbe takes in what is known about a probe that exists. One of a decision that this process does not know is the
// memory of a process before it, unless the hub cannot have written it: then it is deleted.
func (d *Tracker) ObserveProbe(p Probe, now time.Time) {
	if p.Capacity != d.capacity {
		return
	}
	d.probes[p.Name] = p
	if !d.credible(&p, now) {
		return
	}
	text := p.Requirements.String()
	if over, ok := d.past[text]; ok && !p.Since.After(over.at) {
		return
	}
	v := d.decisions[text]
	if v == nil {
		v = &decision{Decision: p.Decision, text: text, made: p.Since, rested: p.NextProbe.Add(-d.backoff(p.Tries))}
		for _, namespace := range p.Namespaces {
			v.support(namespace, p.Since)
		}
		if len(p.Namespaces) == 1 {
			v.of = p.Namespaces[0]
		}
		d.put(v)
		d.generation++
		return
	}
	d.join(v, p.Namespaces, now)
	if p.Since.Equal(v.Since) && p.Tries > v.Tries {
		v.Tries, v.NextProbe, v.rested = p.Tries, p.NextProbe, p.NextProbe.Add(-d.backoff(p.Tries))
	}
}

// ProbeGone takes in that a probe is gone, or is being deleted.
func (d *Tracker) ProbeGone(name string) {
	delete(d.probes, name)
	delete(d.signs, name)
}

// NodeJoined takes in that the capacity has grown: a decision whose last probe is over for the shortest back-off is probed
// now, or as soon as it is. Where probes were easier to place than replicas, a further node is no reason to believe the next one.
func (d *Tracker) NodeJoined(now time.Time) {
	for _, v := range d.decisions {
		again := when.Later(v.rested.Add(d.settings.FirstProbe), now)
		if again.Before(v.NextProbe) && !v.doubtful() {
			v.NextProbe = again
		}
	}
}

// Dry reports whether the capacity has no room for pods of some requirements in a namespace, and since when.
func (d *Tracker) Dry(shape capacity.Requirements, namespace string) (since time.Time, dry bool) {
	for _, v := range d.decisions {
		if v.appliesTo(namespace) && shape.AtLeast(v.Requirements) {
			since, dry = when.Earlier(since, v.Since), true
		}
	}
	return since, dry
}

// Standing is a decision as it was when it last began to hold for somebody: its probes may have gone on since.
type Standing struct {
	Decision
	Text string // of the requirements
}

// standing returns the decisions that stand.
func (d *Tracker) standing() []Standing {
	all := make([]Standing, 0, len(d.decisions))
	for _, v := range d.decisions {
		all = append(all, Standing{v.Decision, v.text})
	}
	return all
}

// Decisions returns the decisions that stand, in a fixed order.
func (d *Tracker) Decisions() []Decision {
	list := make([]Decision, 0, len(d.decisions))
	for _, text := range slices.Sorted(maps.Keys(d.decisions)) {
		list = append(list, d.decisions[text].Decision)
	}
	return list
}

// Generation changes whenever a decision comes or goes: then the plans of the member's workloads may be different.
func (d *Tracker) Generation() uint64 { return d.generation }

// Forget ends the decision on the requirements of some text, if it stands since a time.
func (d *Tracker) Forget(text string, since, now time.Time) {
	if v := d.decisions[text]; v != nil && v.Since.Equal(since) {
		d.end(v, now)
	}
}

// Judge makes the decisions that are due, and returns when the next pod will have waited for too long; zero: none waits.
func (d *Tracker) Judge(now time.Time) (next time.Time) {
	d.forgetPast(now)
	refused := map[string]struct{}{}
	for _, p := range d.pending {
		switch overdue := d.overdue(&p, now); {
		case now.Before(overdue):
			next = when.Earlier(next, overdue)
		case !p.Unasked:
			d.judge(&p.Pod, refused, now)
		}
	}
	return next
}

// covers reports whether a decision stands on some requirements, or on easier ones, that holds for some namespaces; nil: for all.
func (d *Tracker) covers(shape capacity.Requirements, namespaces []string) bool {
	for _, v := range d.decisions {
		if v.appliesToAll(namespaces) && shape.AtLeast(v.Requirements) {
			return true
		}
	}
	return false
}

// judge takes in that a pod has waited for too long. refused are the namespaces for which there was no room for a decision: the text of
// requirements takes long to write, and is not written for each of their pods.
func (d *Tracker) judge(p *Pod, refused map[string]struct{}, now time.Time) {
	for _, v := range d.decisions {
		if v.Requirements.AtLeast(p.Requirements) && v.support(p.Namespace, now) {
			d.show(v)
		}
	}
	namespaces := []string{p.Namespace}
	if _, full := refused[p.Namespace]; full || d.covers(p.Requirements, namespaces) {
		return
	}
	text := p.Requirements.String()
	if !d.makeRoom(p.Namespace, len(text), now) {
		refused[p.Namespace] = struct{}{}
		return
	}
	over := d.past[text]
	v := &decision{Decision: Decision{Requirements: p.Requirements, Namespaces: namespaces}, text: text, of: p.Namespace, waited: d.pendingSince(p)}
	d.declare(v, now)
	v.support(p.Namespace, now)
	if over != nil && over.probed && p.Replica != "" {
		d.tried.add(p.Replica, now)
	}
}

// seen is when a pod of a namespace that supports the decision was last pending, or else when the decision was made.
func (v *decision) seen(namespace string) time.Time {
	if at, ok := v.by[namespace]; ok {
		return at
	}
	return v.made
}

// support notes that a pod of a namespace shows the decision, and reports whether that is news.
func (v *decision) support(namespace string, now time.Time) (news bool) {
	_, known := v.by[namespace]
	if !known && len(v.by) >= manyNamespaces {
		return false
	}
	if v.by == nil {
		v.by = make(map[string]time.Time, 1)
	}
	v.by[namespace] = now
	return !known
}

// show makes a decision hold for the namespaces whose pods have shown it.
func (d *Tracker) show(v *decision) {
	if v.Namespaces == nil {
		return
	}
	if len(v.by) >= manyNamespaces {
		d.widen(v)
		return
	}
	v.Namespaces = slices.Sorted(maps.Keys(v.by))
	d.generation++
}

// widen makes a decision hold for all namespaces.
func (d *Tracker) widen(v *decision) {
	if v.Namespaces != nil {
		v.Namespaces = nil
		d.generation++
	}
}

// join takes in for which namespaces another process has found that a decision holds; nil: for all.
func (d *Tracker) join(v *decision, namespaces []string, now time.Time) {
	if namespaces == nil {
		d.widen(v)
	}
	for _, namespace := range namespaces {
		if _, known := v.by[namespace]; !known && v.support(namespace, now) {
			d.show(v)
		}
	}
}

// declare makes a decision on requirements, for which there is room. One that comes back goes on with its back-off.
func (d *Tracker) declare(v *decision, now time.Time) {
	v.Capacity, v.Since, v.made, v.rested = d.capacity, now.Truncate(time.Second), now, now
	if over, ok := d.past[v.text]; ok {
		over.resume(v)
	}
	v.NextProbe = d.nextProbe(v, v.Since)
	for _, harder := range d.decisions {
		if harder.Requirements.AtLeast(v.Requirements) && v.Since.Sub(harder.Since) < sameDrought && v.appliesToAll(harder.Namespaces) {
			d.end(harder, now)
		}
	}
	d.put(v)
	d.generation++
}

// supported reports whether pods that are no harder to place than the decision says have waited for too long and still do: one of a namespace
// of which another was placed, or some of many namespaces.
func (d *Tracker) supported(v *decision, namespace string, now time.Time) bool {
	return d.waitIn(v, namespace, func(p *waiting) bool { return !p.Unasked && !now.Before(d.overdue(p, now)) })
}

// waitIn reports whether pods that are no harder to place than a decision says wait, of which something is true: one of a namespace, or some of many
// namespaces.
func (d *Tracker) waitIn(v *decision, namespace string, is func(p *waiting) bool) bool {
	var others [manyNamespaces]string
	n := 0
	for _, p := range d.pending {
		if !v.Requirements.AtLeast(p.Requirements) || !is(&p) {
			continue
		}
		if p.Namespace == namespace {
			return true
		}
		if !slices.Contains(others[:n], p.Namespace) {
			if others[n], n = p.Namespace, n+1; n == manyNamespaces {
				return true
			}
		}
	}
	return false
}

func (d *Tracker) end(v *decision, now time.Time) *ended {
	over := &ended{Decision: v.Decision, at: now}
	d.drop(v)
	d.past[v.text] = over
	d.boundPast()
	d.generation++
	return over
}
