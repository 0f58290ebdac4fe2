package depend

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/members"
)

// An entry is a target that something depends on, and what is known about it.
type entry struct {
	target     target
	dependents map[*dependent][]Dependency // with what of the target each needs
	watch      *placeWatch
	facts      facts
	known      bool // facts come from the target, not from a failure to look
	readAt     time.Time
	events     uint64    // how many the watch delivered
	readable   bool      // the last live look was not refused; holds until the next one, also of another instance of the member
	lookedAt   time.Time // when the member was asked live last; zero: it was not
	turn       bool      // may be asked for although another of the place was just refused; until it is, or others have their turn
}

// serves reports whether what is known about the target answers for a dependency now. What no watch keeps is good for half the
// time until it is looked at again.
func (e *entry) serves(d Dependency) bool {
	if e.known && e.watch != nil && e.watch.synced {
		return e.facts.sufficient(d)
	}
	recent := time.Since(e.readAt) < retryInside/2
	return recent && (e.facts.problem != "" || e.facts.sufficient(d))
}

// refused reports whether the member need not be asked, because it just refused to show another of the place: that is how rights are
// given, mostly. As rights may be for names, what it did show is asked for all the same, and the others by turns. The lock is held.
func (e *entry) refused() bool {
	if e.readable || time.Since(e.watch.refused) >= watchPause {
		return false
	}
	e.watch.giveTurns(time.Now())
	return !e.turn
}

// turnsAtOnce is how many entries of a place that refuses are asked for in a watchPause.
const turnsAtOnce = 16

// giveTurns lets those be asked for that have not been for the longest, at most once in a watchPause. The lock is held.
func (w *placeWatch) giveTurns(now time.Time) {
	if now.Sub(w.turnsAt) < watchPause {
		return
	}
	w.turnsAt = now
	var waiting []*entry
	for _, e := range w.entries {
		if e.turn = false; !e.readable {
			waiting = append(waiting, e)
		}
	}
	slices.SortFunc(waiting, func(a, b *entry) int { return a.lookedAt.Compare(b.lookedAt) })
	for _, e := range waiting[:min(len(waiting), turnsAtOnce)] {
		e.turn = true
	}
}

// looked notes whether the member showed the entry when it was asked. The lock is held.
func (e *entry) looked(there *members.Instance, f facts) {
	e.readable, e.lookedAt, e.turn = f.problem != mayNotRead, time.Now(), false
	if !e.readable && e.watch.instance == there {
		e.watch.refused = time.Now()
	}
}

// A wakeUp is a key to wake once the lock is given up.
type wakeUp struct {
	flow *Flow
	key  types.NamespacedName
}

func wakeAll(all []wakeUp) {
	for _, w := range all {
		w.flow.wake(w.key)
	}
}

// update takes new facts of a target, and returns whom they concern: those for whom they change the answer, or may.
func (e *entry) update(f facts) (concerned []wakeUp) {
	e.events++
	before, knew := e.facts, e.known
	e.known = true
	if knew && before.problem == "" && before.version == f.version {
		return nil // what is known about its keys still holds
	}
	e.facts = f
	same := func(d Dependency) bool {
		return knew && before.sufficient(d) && f.sufficient(d) && before.why(d) == f.why(d)
	}
	for one, needs := range e.dependents {
		if !slices.ContainsFunc(needs, func(d Dependency) bool { return !same(d) }) {
			continue
		}
		concerned = append(concerned, wakeUp{one.flow, one.key})
	}
	return concerned
}

// everybody is all who depend on the target.
func (e *entry) everybody() []wakeUp {
	all := make([]wakeUp, 0, len(e.dependents))
	for one := range e.dependents {
		all = append(all, wakeUp{one.flow, one.key})
	}
	return all
}

// memberChanged follows what is depended on in a member that came, was replaced or left.
func (ds *Index) memberChanged(name string) {
	ds.mu.Lock()
	var concerned []wakeUp
	there := ds.instances.Get(name)
	for _, w := range slices.Collect(maps.Values(ds.watches)) {
		if w.place.member != name || w.instance == there {
			continue
		}
		w.stop()
		for _, e := range w.entries {
			e.known, e.readAt = false, time.Time{}
			concerned = append(concerned, e.everybody()...)
		}
		w.start(there)
	}
	ds.mu.Unlock()
	wakeAll(concerned)
}
