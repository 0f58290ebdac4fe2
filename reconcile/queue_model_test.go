package reconcile

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/retry"
)

// model drives the queues of three controllers in four members with everything that can happen to them, and after each
// step compares them with what must be true.
type model struct {
	*bench
	t       *rapid.T
	running map[Key]bool      // what workers hold, replaced engagements included
	hands   []*hand           // workers that wait
	owed    map[*record]bool  // news that no reconcile has begun for
	shut    map[string]int    // holds by member, as bits
	given   map[string]bool   // members that are detached by force
	orders  map[string]Record // operations by id, with the record when they were accepted
	begun   map[Key]int       // reconciles begun, by key
	orderAt map[string]int    // begun[key] when an operation was accepted, plus one if it must not count what ran then
	told    map[string]bool   // members whose ownership was held or released one by one, which overrides what is said of all
	retired bool              // the replica is about to stop
}

const (
	modelWorkers   = 3
	modelPerMember = 2
	modelAllowed   = 6 // workers of a queue, of which it keeps one for members of which no key runs
	modelResync    = 40 * time.Second
)

var (
	modelMembers = []string{"a", "b", "c", "d"}
	modelKeys    = []string{"1", "2", "3"}
)

func newModel(t *rapid.T, tb testing.TB) *model {
	m := &model{
		t: t, running: map[Key]bool{}, owed: map[*record]bool{}, shut: map[string]int{}, given: map[string]bool{}, told: map[string]bool{},
		orders: map[string]Record{}, begun: map[Key]int{}, orderAt: map[string]int{},
	}
	m.bench = newBench(tb, Options{WorkersPerMember: modelWorkers, Workers: modelAllowed, Operations: 1000},
		&queue{name: "x", perMember: modelPerMember, resync: modelResync}, &queue{name: "y", perMember: modelPerMember},
		&queue{name: "z", perMember: modelWorkers})
	return m
}

func (m *model) queue() *queue {
	return m.queues[rapid.IntRange(0, len(m.queues)-1).Draw(m.t, "queue")]
}
func (m *model) member() string {
	return rapid.SampledFrom(modelMembers).Draw(m.t, "member")
}

// flow draws an engaged flow.
func (m *model) flow() *flow {
	q, member := m.queue(), m.member()
	l := q.flows[member]
	if l == nil {
		m.t.Skip("not engaged")
	}
	return l
}

func (m *model) key(l *flow, name string) Key {
	return Key{Controller: l.queue.name, Member: l.member.name, NamespacedName: nsName(name)}
}

// begin notes what waiting workers were given.
func (m *model) begin(q *queue, out handout) {
	key := Key{Controller: q.name, Member: out.req.ClusterName.String(), NamespacedName: out.req.NamespacedName}
	if m.running[key] {
		m.t.Fatalf("%v runs twice at once", key)
	}
	m.running[key] = true
	m.begun[key]++
	if m.shut[key.Member] != 0 || m.given[key.Member] {
		m.t.Fatalf("%v was handed out behind a hold, or in a member that was detached", key)
	}
	run := q.running[out.req]
	delete(m.owed, run.record)
	if run.waited < 0 {
		m.t.Fatalf("%v waited %v", key, run.waited)
	}
}

func (m *model) collect() {
	m.hands = slices.DeleteFunc(m.hands, func(h *hand) bool {
		out, ok := h.got()
		if ok {
			m.begin(h.queue, out)
		}
		return ok
	})
}

func (m *model) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"change":  func(t *rapid.T) { m.t = t; m.change() },
		"crowd":   func(t *rapid.T) { m.t = t; m.crowd() },
		"look":    func(t *rapid.T) { m.t = t; m.look() },
		"work":    func(t *rapid.T) { m.t = t; m.hands = append(m.hands, m.sit(m.queue())) },
		"finish":  func(t *rapid.T) { m.t = t; m.finishOne() },
		"finish2": func(t *rapid.T) { m.t = t; m.finishOne() },
		"hold":    func(t *rapid.T) { m.t = t; m.hold() },
		"detach":  func(t *rapid.T) { m.t = t; m.detach() },
		"attach":  func(t *rapid.T) { m.t = t; m.attach(m.member()) },
		"join":    func(t *rapid.T) { m.t = t; m.joinOne() },
		"leave":   func(t *rapid.T) { m.t = t; m.queue().leaveIfAny(m.member()) },
		"order":   func(t *rapid.T) { m.t = t; m.order() },
		"delete":  func(t *rapid.T) { m.t = t; m.remove() },
		"retire":  func(t *rapid.T) { m.t = t; m.retire() },
		"time": func(t *rapid.T) {
			m.t = t
			m.pass(time.Duration(rapid.IntRange(1, 400).Draw(t, "seconds")) * time.Second)
		},
		"": func(t *rapid.T) { m.t = t; m.collect(); m.check() },
	}
}

// pass lets time pass, by moving the beginning of time: the bubble's own stands still, so that rapid's deadlines do not come.
func (m *model) pass(d time.Duration) {
	m.rt.mu.Lock()
	m.rt.epoch = m.rt.epoch.Add(-d)
	m.rt.mu.Unlock()
	m.rt.fire()
}

func (q *queue) leaveIfAny(member string) {
	if l := q.flows[member]; l != nil {
		q.leave(l)
	}
}

func (m *model) change() { m.changed(m.flow(), rapid.SampledFrom(modelKeys).Draw(m.t, "key")) }

func (m *model) changed(l *flow, name string) {
	l.queue.wake(l, nsName(name), PriorityChanged, nil)
	m.collect()
	m.owe(l, name)
}

// crowd has as many workers wait as a queue may have, and everything change in some members.
func (m *model) crowd() {
	q := m.queue()
	for range modelAllowed - len(q.running) - len(q.idle) {
		m.hands = append(m.hands, m.sit(q))
	}
	for _, member := range modelMembers {
		if l := q.flows[member]; l != nil && rapid.Bool().Draw(m.t, member) {
			for _, name := range modelKeys {
				m.changed(l, name)
			}
		}
	}
}

// owe notes that a change was seen; unless a reconcile has begun for it already, one must. Nothing is owed in a member that
// was given up: when it is taken back, everything is looked at again.
func (m *model) owe(l *flow, name string) {
	r := l.records[nsName(name)]
	if m.given[l.member.name] {
		return
	}
	if r != nil && (r.state != keyRunning || r.again < priorities) {
		m.owed[r] = true
	}
}

func (m *model) look() {
	l, name := m.flow(), rapid.SampledFrom(modelKeys).Draw(m.t, "key")
	l.queue.wake(l, nsName(name), PriorityBackground, nil)
}

func (m *model) remove() {
	l, name := m.flow(), rapid.SampledFrom(modelKeys).Draw(m.t, "key")
	r := l.records[nsName(name)]
	l.queue.lost(l, nsName(name), rapid.Bool().Draw(m.t, "keeps"))
	if l.records[nsName(name)] == nil {
		delete(m.owed, r)
	}
}

func (m *model) order() {
	l, name := m.flow(), rapid.SampledFrom(modelKeys).Draw(m.t, "key")
	key := m.key(l, name)
	_, known := l.records[nsName(name)]
	began := m.begun[key]
	operation, err := m.rt.Requeue(key)
	if (known && !m.retired) != (err == nil) || known && m.retired && !errors.Is(err, ErrRetired) {
		m.t.Fatalf("requeue %v: %v, known: %v, retired: %v", key, err, known, m.retired)
	}
	if err == nil {
		m.orders[operation.ID] = operation.Record
		m.orderAt[operation.ID] = began
	}
}

func (m *model) finishOne() {
	var held []Key
	for key := range m.running {
		held = append(held, key)
	}
	if len(held) == 0 {
		m.t.Skip("nothing runs")
	}
	slices.SortFunc(held, compareKeys)
	key := rapid.SampledFrom(held).Draw(m.t, "finished")
	q := m.rt.queues[key.Controller]
	end := rapid.SampledFrom([]ending{
		{}, {}, {outcome: codeGone}, {err: fmt.Errorf("broken")}, {err: TerminalError(fmt.Errorf("bad"))},
		{result: Requeue("not yet")}, {result: RequeueAfter(time.Minute, "later")}, {result: RequeueAfter(0, "at once")},
	}).Draw(m.t, "ending")
	req := request(key.Member, key.NamespacedName)
	v := judge(end, q.running[req].record.attempts, retry.Usual, 0.5)
	delete(m.running, key)
	m.finish(q, req, v)
}

func (m *model) joinOne() {
	q, member := m.queue(), m.member()
	m.join(q, member)
}

func (m *model) hold() {
	member, g := m.member(), rapid.SampledFrom([]Hold{HoldOwnership, HoldBreaker}).Draw(m.t, "hold")
	m.told[member] = m.told[member] || g == HoldOwnership
	if rapid.Bool().Draw(m.t, "close") {
		m.shut[member] |= 1 << g
		m.rt.Hold(member, g, "closed")
		return
	}
	m.shut[member] &^= 1 << g
	m.rt.Release(member, g)
}

// retire has the replica stop, at times: nothing begins from then on, and no order is taken that could not run.
func (m *model) retire() {
	if rapid.IntRange(0, 7).Draw(m.t, "really") > 0 {
		m.t.Skip("it continues")
	}
	m.retired = true
	for _, member := range modelMembers {
		if !m.told[member] {
			m.shut[member] |= 1 << HoldOwnership
		}
	}
	m.rt.Retire("this replica stops")
}

// detach gives a member up by force.
func (m *model) detach() {
	member := m.member()
	m.given[member] = true
	m.rt.Detach(member, "burnt down")
	for r := range m.owed {
		if r.flow.member.name == member {
			delete(m.owed, r)
		}
	}
}

// attach takes a member back: all of its keys are looked at again, after the runs that are under way.
func (m *model) attach(member string) {
	if !m.given[member] {
		return
	}
	delete(m.given, member)
	m.rt.Attach(member)
	m.collect()
	for _, q := range m.queues {
		if l := q.flows[member]; l != nil {
			for key, r := range l.records {
				if r.state != keyRunning {
					m.owe(l, key.Name)
				}
			}
		}
	}
}

// The model looks at the queue without its lock, so nothing may happen beside it. In a bubble no timer fires by itself.
func TestTheQueueKeepsItsPromises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(inBubble{t}, func(rt *rapid.T) {
			m := newModel(rt, t)
			for _, q := range m.queues {
				for _, member := range modelMembers {
					m.join(q, member)
				}
			}
			rt.Repeat(m.actions())
			m.t = rt
			m.settleDown()
		})
	})
}

// inBubble hides that a test is a *testing.T, whose deadline nobody may ask for in a bubble.
type inBubble struct{ rapid.TB }

// settleDown releases all holds and lets workers finish everything: then nothing may be owed, held or open.
func (m *model) settleDown() {
	for _, member := range modelMembers {
		for g := range holds {
			m.shut[member] = 0
			m.rt.Release(member, g)
		}
		m.attach(member)
	}
	for range 1000 {
		m.collect()
		for key := range m.running {
			delete(m.running, key)
			m.finish(m.rt.queues[key.Controller], request(key.Member, key.NamespacedName), done)
		}
		for _, q := range m.queues {
			m.hands = append(m.hands, m.sit(q))
		}
		m.collect()
		if len(m.running) == 0 {
			break
		}
	}
	m.check()
	if len(m.owed) > 0 || m.rt.active.n > 0 {
		m.t.Fatalf("%d changes are owed and %d run at the end", len(m.owed), m.rt.active.n)
	}
	for id := range m.orders {
		rc, _ := m.rt.Operation(id)
		if m.rt.queues[rc.Key.Controller].flows[rc.Key.Member] == nil {
			continue // its member may be back
		}
		m.t.Fatalf("the operation of %v is open at the end: %+v", rc.Key, rc.Record)
	}
}
