package depend

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/members"
)

// readPatience bounds one live look at what is depended on.
const readPatience = 5 * time.Second

// Index is the reverse index of what objects depend on: from a target to the keys that wake when it changes. Edges
// are drawn while a key is reconciled and kept until a later reconcile does without, the object is gone, or its member
// leaves. What is depended on in a member is watched there; see watch.go.
//
// mu is never held while a key is woken, which takes locks of its own.
type Index struct {
	instances *members.Instances
	Outside   *Outside
	log       *slog.Logger
	flights   singleflight.Group

	mu        sync.Mutex // held for short steps, never over I/O
	entries   map[target]*entry
	watches   map[place]*placeWatch
	nodes     map[node]map[*dependent]struct{}
	endpoints map[Dependency]*endpoint

	calls chan struct{} // one for each call of an endpoint that is under way
}

// A dependent is one key that depends on something.
type dependent struct {
	flow  *Flow
	key   types.NamespacedName
	needs []Dependency // each once; few, and there is one dependent for each key
	unmet []Dependency // of its last reconcile
}

// Flow are the dependents among the keys of one controller in one member, as long as it works there. Guarded by
// Index.mu, but for n and what never changes.
type Flow struct {
	index  *Index
	member string
	kind   schema.GroupKind // that the controller reconciles
	wake   func(key types.NamespacedName)

	n    atomic.Int32 // how many there are, so that keys without dependencies cost nothing
	by   map[types.NamespacedName]*dependent
	over bool
}

// NewIndex creates an index. It looks for members in instances, and calls endpoints as outside lets it.
func NewIndex(instances *members.Instances, outside *Outside, log *slog.Logger) *Index {
	ds := &Index{
		instances: instances, Outside: outside, log: log, entries: map[target]*entry{}, watches: map[place]*placeWatch{}, nodes: map[node]map[*dependent]struct{}{},
		endpoints: map[Dependency]*endpoint{}, calls: make(chan struct{}, callsAtOnce),
	}
	instances.Listen(ds.memberChanged)
	return ds
}

// NewFlow creates the dependents of a controller that has come to a member. wake is called, without a lock of the index, for each
// key that is to look again.
func (ds *Index) NewFlow(member string, kind schema.GroupKind, wake func(key types.NamespacedName)) *Flow {
	return &Flow{index: ds, member: member, kind: kind, wake: wake}
}

// Dependents is how many keys depend on something.
func (l *Flow) Dependents() int { return int(l.n.Load()) }

// Needs is what one run of a key asks of the dependencies.
type Needs struct {
	flow     *Flow
	key      types.NamespacedName
	declared map[Dependency]struct{}
	unmet    []Dependency
}

// NewNeeds begins a run of a key.
func NewNeeds(l *Flow, key types.NamespacedName) *Needs { return &Needs{flow: l, key: key} }

// Require checks dependencies for a run, in their order.
func (n *Needs) Require(ctx context.Context, all []Dependency) *Unmet {
	ds, member := n.flow.index, n.flow.member
	var u Unmet
	for _, d := range all {
		d = d.of(member, n.key.Namespace)
		m := ds.check(ctx, n, d)
		if m.why == "" {
			continue
		}
		n.unmet = append(n.unmet, d)
		if m.dependency = d; d.member == member {
			m.dependency.member = ""
		}
		u.missing = append(u.missing, m)
	}
	if len(u.missing) == 0 {
		return nil
	}
	return &u
}

func (ds *Index) check(ctx context.Context, n *Needs, d Dependency) missing {
	if why := d.invalid(); why != "" {
		return missing{why: why}
	}
	ds.note(n, d) // before looking, so that no change is missed
	if d.external() {
		return missing{why: ds.ask(ctx, d)}
	}
	f := ds.factsFor(ctx, d)
	m := missing{why: f.why(d)}
	if m.why != "" && d.condition != "" {
		if circle := ds.circle(n, d); circle != "" {
			m.why, m.cycle = m.why+" ("+circle+")", true
		}
	}
	return m
}

// note draws the edge from a dependency to the key that has it.
func (ds *Index) note(n *Needs, d Dependency) {
	if n.declared == nil {
		n.declared = map[Dependency]struct{}{}
	}
	n.declared[d] = struct{}{}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	one := ds.dependentOf(n)
	if one == nil {
		return
	}
	if slices.Contains(one.needs, d) {
		return
	}
	one.needs = append(one.needs, d)
	if d.external() {
		ds.endpointOf(d).dependents[one] = struct{}{}
		return
	}
	t := d.target()
	e := ds.entries[t]
	if e == nil {
		e = &entry{target: t, dependents: map[*dependent][]Dependency{}}
		ds.entries[t] = e
		ds.follow(e)
	}
	e.dependents[one] = append(e.dependents[one], d)
}

// dependentOf finds or makes the dependent of a run; nil when its flow is over.
func (ds *Index) dependentOf(n *Needs) *dependent {
	l := n.flow
	if l.over {
		return nil
	}
	one := l.by[n.key]
	if one != nil {
		return one
	}
	one = &dependent{flow: l, key: n.key}
	if l.by == nil {
		l.by = map[types.NamespacedName]*dependent{}
	}
	l.by[n.key] = one
	l.n.Add(1)
	self := one.node()
	if ds.nodes[self] == nil {
		ds.nodes[self] = map[*dependent]struct{}{}
	}
	ds.nodes[self][one] = struct{}{}
	return one
}

// factsFor returns what is known about a dependency's target: what its watch keeps, else what a look at the member shows.
func (ds *Index) factsFor(ctx context.Context, d Dependency) facts {
	t := d.target()
	ds.mu.Lock()
	e := ds.entries[t]
	if e != nil && e.serves(d) {
		f := e.facts
		ds.mu.Unlock()
		return f
	}
	refused := e != nil && e.refused()
	ds.mu.Unlock()
	if refused {
		return facts{problem: mayNotRead}
	}
	there := ds.instances.Get(d.member)
	if there == nil {
		return facts{problem: "the member is not there"}
	}
	look := ds.flights.DoChan(fmt.Sprintf("%v %t", t, d.keys != ""), func() (any, error) {
		return ds.look(there, d), nil
	})
	select {
	case <-ctx.Done():
		return facts{problem: "the member has not answered in time"}
	case answer := <-look:
		return answer.Val.(facts)
	}
}

// look asks the member, and keeps what it says unless a watch was faster.
func (ds *Index) look(there *members.Instance, d Dependency) facts {
	ctx, cancel := context.WithTimeout(there.Context, readPatience)
	defer cancel()
	before := ds.eventsOf(d.target())
	f := observe(ctx, members.LiveReader(there.Cluster), d)
	ds.mu.Lock()
	defer ds.mu.Unlock()
	e := ds.entries[d.target()]
	if e == nil {
		return f
	}
	e.looked(there, f)
	switch {
	case f.problem != "":
		if !e.known {
			e.facts, e.readAt = f, time.Now()
		}
	case e.events == before || e.facts.version == f.version:
		e.facts, e.known, e.readAt = f, true, time.Now()
	}
	return f
}

func (ds *Index) eventsOf(t target) uint64 {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if e := ds.entries[t]; e != nil {
		return e.events
	}
	return 0
}

// Settle ends a run: edges that a complete run did without go.
func (n *Needs) Settle(complete bool) {
	ds, l := n.flow.index, n.flow
	if len(n.declared) == 0 && l.n.Load() == 0 {
		return
	}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	one := l.by[n.key]
	if one == nil {
		return
	}
	one.unmet = n.unmet
	if !complete {
		return
	}
	for _, d := range slices.Clone(one.needs) {
		if _, still := n.declared[d]; !still {
			ds.undo(one, d)
		}
	}
	if len(one.needs) == 0 {
		ds.remove(one)
	}
}

// Forget drops the edges of a key that is gone. The caller may hold locks that wake takes.
func (l *Flow) Forget(key types.NamespacedName) {
	ds := l.index
	if l.n.Load() == 0 {
		return
	}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if one := l.by[key]; one != nil {
		ds.remove(one)
	}
}

// Leave drops the edges of all keys, for good. The caller may hold locks that wake takes.
func (l *Flow) Leave() {
	ds := l.index
	ds.mu.Lock()
	defer ds.mu.Unlock()
	l.over = true
	for _, one := range l.by {
		ds.remove(one)
	}
}

func (ds *Index) remove(one *dependent) {
	for _, d := range slices.Clone(one.needs) {
		ds.undo(one, d)
	}
	self := one.node()
	if delete(ds.nodes[self], one); len(ds.nodes[self]) == 0 {
		delete(ds.nodes, self)
	}
	delete(one.flow.by, one.key)
	one.flow.n.Add(-1)
}

// undo takes back one edge, and what nothing depends on any more.
func (ds *Index) undo(one *dependent, d Dependency) {
	one.needs = slices.DeleteFunc(one.needs, func(other Dependency) bool { return other == d })
	if d.external() {
		if p := ds.endpoints[d]; p != nil {
			if delete(p.dependents, one); len(p.dependents) == 0 {
				delete(ds.endpoints, d)
			}
		}
		return
	}
	t := d.target()
	e := ds.entries[t]
	if left := slices.DeleteFunc(e.dependents[one], func(other Dependency) bool { return other == d }); len(left) > 0 {
		e.dependents[one] = left
		return
	}
	if delete(e.dependents, one); len(e.dependents) == 0 {
		delete(ds.entries, t)
		ds.unfollow(e)
	}
}

// Size is how much the index holds: targets, watches, objects that depend on something, and endpoints.
func (ds *Index) Size() int {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	return len(ds.entries) + len(ds.watches) + len(ds.nodes) + len(ds.endpoints)
}
