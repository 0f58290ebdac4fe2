package sim

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/slots"
)

// control runs the controllers of a workload once.
func (c *Cluster) control(w *Workload) {
	c.rollout(w)
	for _, s := range w.sets {
		for _, p := range c.sorted(func(p *Pod) bool { return p.controller == s.uid && s.hash != "" && p.Hash != s.hash }) {
			p.controller = "" // it does not match the selector any more
			c.write(p)
		}
		active := c.active(s)
		if w.ordinals {
			c.controlOrdinals(s, active)
			continue
		}
		for range s.replicas - len(active) - c.admitting(s) {
			c.create(s, "")
		}
		if over := len(active) - s.replicas; over > 0 {
			slices.SortFunc(active, func(a, b *Pod) int { return plantest.DeletedFirst(&a.Pod, &b.Pod) })
			for _, p := range active[:over] {
				c.end(p)
			}
		}
	}
}

// resize sets how many replicas a set wants.
func (c *Cluster) resize(s *Set, n int) {
	if s.replicas != n {
		s.replicas = n
		c.events = append(c.events, Event{at: c.now, set: s, size: n})
	}
}

// admitting counts the pods of a set that are admitted and not stored yet.
func (c *Cluster) admitting(s *Set) (n int) {
	for _, p := range c.inFlight {
		if p.set == s {
			n++
		}
	}
	return n
}

// rollout scales the sets of a Deployment: the newest up by a surge of one, the others down as it gets ready.
func (c *Cluster) rollout(w *Workload) {
	newest := w.sets[len(w.sets)-1]
	if len(w.sets) == 1 || w.ordinals {
		c.resize(newest, w.replicas)
		return
	}
	ready, total := 0, 0
	for _, p := range c.active(newest) {
		if p.Ready {
			ready++
		}
	}
	for _, s := range w.sets {
		total += s.replicas
	}
	c.resize(newest, min(w.replicas, max(newest.replicas, ready)+max(w.replicas+1-total, 0)))
	old := max(w.replicas-ready, 0)
	for _, s := range w.sets[:len(w.sets)-1] {
		c.resize(s, min(s.replicas, old))
		old -= s.replicas
	}
	w.sets = slices.DeleteFunc(w.sets, func(s *Set) bool {
		if s == newest || s.replicas > 0 || c.admitting(s) > 0 || len(c.sorted(func(p *Pod) bool { return p.controller == s.uid })) > 0 {
			return false
		}
		w.past = append(w.past, s)
		return true
	})
}

func (c *Cluster) controlOrdinals(s *Set, active []*Pod) {
	have, busy := map[int]bool{}, map[int]bool{}
	for _, p := range c.sorted(func(p *Pod) bool { return p.controller == s.uid }) {
		number, _ := phrase.Ordinal(p.Name)
		have[number] = true
		busy[number] = !p.Ready || !p.GoneBy.IsZero()
	}
	for _, p := range c.inFlight {
		if number, _ := phrase.Ordinal(p.Name); p.set == s {
			have[number], busy[number] = true, true
		}
	}
	for _, p := range active {
		if number, _ := phrase.Ordinal(p.Name); number >= s.replicas {
			c.end(p)
		}
	}
	for number := range s.replicas {
		if !have[number] {
			c.create(s, fmt.Sprintf("%s-%d", s.name, number))
		}
		if s.oneByOne && (!have[number] || busy[number]) {
			return
		}
	}
}

// create admits a pod and stores it, unless it is refused in between or its answer is lost.
func (c *Cluster) create(s *Set, name string) {
	c.serial++
	uid := types.UID(fmt.Sprintf("pod-%05d", c.serial))
	if name == "" {
		name = string(uid)
	}
	p := &Pod{set: s, controller: s.uid, admitted: c.now, Pod: plan.Pod{Name: name, UID: uid, Slot: plan.NoSlot, Hash: s.hash,
		Created: c.now.Truncate(time.Second), UnreadySince: c.now.Truncate(time.Second)}}
	lost := !c.strict && c.rand.Float64() < c.loses
	if !lost {
		c.admit(s, p)
	}
	if !c.strict && c.rand.Float64() < c.rejects {
		return
	}
	c.inFlight = append(c.inFlight, p)
	c.store()
}

// store stores pods that were admitted, each after a time of its own.
func (c *Cluster) store() {
	c.inFlight = slices.DeleteFunc(c.inFlight, func(p *Pod) bool {
		if c.late && c.now.Sub(p.admitted) < slots.StoreTime && c.rand.IntN(2) == 0 {
			return false
		}
		c.pods[p.UID], c.ordered = p, append(c.ordered, p)
		c.write(p)
		return true
	})
}

// recreate deletes a Deployment and makes it again: the garbage collector ends the pods of its sets. Released ones are nobody's.
func (c *Cluster) recreate(w *Workload) {
	gone := map[types.UID]bool{}
	for _, s := range append(w.sets, w.past...) {
		gone[s.uid] = true
	}
	w.sets, w.past = nil, nil
	c.inFlight = slices.DeleteFunc(c.inFlight, func(p *Pod) bool { return gone[p.controller] })
	for _, p := range c.of(w) {
		if gone[p.controller] {
			c.end(p)
		}
	}
	c.newSet(w, w.replicas)
}
