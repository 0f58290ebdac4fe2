package spot

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/shortage"
)

// EventType says what a [Event] is about.
type EventType string

// The types of events.
const (
	EventMove                      EventType = "Move"
	EventInsufficientCapacityBegan EventType = "InsufficientCapacityBegan"
	EventInsufficientCapacityEnded EventType = "InsufficientCapacityEnded"
	EventInterruption              EventType = "Interruption"
)

// Event is one thing that happened in a member, for [Options.OnEvent].
type Event struct {
	At     time.Time
	Type   EventType
	Member string
	// Workload is that of a move; zero: it is about none.
	Workload policy.WorkloadKey
	// Subject is the pod of a move, the node of an interruption, the capacity type of a drought.
	Subject string
	// Reason is the purpose of a move, the notice of an interruption, the shape of a drought.
	Reason string
	// Message is a sentence for people.
	Message string
}

// handOn hands an event on.
func (e *Engine) handOn(h Event) {
	if e.options.OnEvent != nil {
		e.options.OnEvent(h)
	}
}

// reportMove reports a move that was done.
func (e *Engine) reportMove(member string, key policy.WorkloadKey, m report.Move) {
	done := "evicted"
	if m.Strategy == policy.StrategyRelease {
		done = "released"
	}
	e.handOn(Event{
		At: m.At, Type: EventMove, Member: member, Workload: key, Subject: m.Pod, Reason: string(m.For),
		Message: strings.TrimSuffix(fmt.Sprintf("pod %s was %s from %s: %s", m.Pod, done, m.From, m.Why), ": "),
	})
}

// reportInterruption reports that a node is about to go, once for each notice.
func (e *Engine) reportInterruption(member string, before, now *plan.Interruption) {
	if now == nil || now.Gone || before != nil && before.Notice == now.Notice {
		return
	}
	e.handOn(Event{
		At: now.Since, Type: EventInterruption, Member: member, Subject: now.Node, Reason: now.Notice,
		Message: fmt.Sprintf("node %s is about to be terminated: %s", now.Node, now.Notice),
	})
}

// dryShape is a shape of pods that a capacity type has no room for.
type dryShape struct {
	capacity capacity.Type
	shape    string
}

// dryShapes are the decisions that stand, with the time since when.
func dryShapes(d *shortage.Trackers) map[dryShape]time.Time {
	found := map[dryShape]time.Time{}
	for _, decided := range d.All() {
		found[dryShape{decided.Capacity, decided.Requirements.String()}] = decided.Since
	}
	return found
}

// inOrder are the keys in one order, so that what happens at once is always reported in it.
func inOrder(droughts map[dryShape]time.Time) []dryShape {
	return slices.SortedFunc(maps.Keys(droughts), func(a, b dryShape) int {
		return cmp.Or(cmp.Compare(a.capacity, b.capacity), cmp.Compare(a.shape, b.shape))
	})
}

// event says what happened to a drought. The shape's text, which whoever creates pods writes, is clipped.
func (d dryShape) event(what EventType, member, happened string, at time.Time) Event {
	return Event{
		At: at, Type: what, Member: member, Subject: string(d.capacity), Reason: object.Clip(d.shape),
		Message: object.Clip(fmt.Sprintf("%s %s %s", d.capacity, happened, d.shape)),
	}
}

// reportDroughts reports which droughts have begun and ended since known, and returns those that stand now.
func (e *Engine) reportDroughts(member string, known map[dryShape]time.Time, d *shortage.Trackers, now time.Time) map[dryShape]time.Time {
	if len(known) == 0 && !d.AnyDry.Load() {
		return known
	}
	stand := dryShapes(d)
	for _, dry := range inOrder(stand) {
		if _, is := known[dry]; !is {
			e.handOn(dry.event(EventInsufficientCapacityBegan, member, "has no room for pods like", stand[dry]))
		}
	}
	for _, dry := range inOrder(known) {
		if _, is := stand[dry]; !is {
			e.handOn(dry.event(EventInsufficientCapacityEnded, member, "no longer counts as full for pods like", now))
		}
	}
	return stand
}
