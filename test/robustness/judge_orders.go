package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// An order is accepted, and then it is open until a reconcile answers it, or until its replica says that it will not: then a
// reconcile that begins later, by whoever acts then, has to make up for it.

// orderState is the state of the sequential model of one order.
type orderState int

const (
	absent    orderState = iota // not accepted yet
	open                        // accepted, and no reconcile has ended since
	answered                    // a reconcile that began afterwards has ended
	abandoned                   // its replica has said that it will not answer it
	madeUp                      // and somebody has reconciled the object since
)

// orderInput is what happened. Exactly one of its fields is set.
type orderInput struct {
	accepted bool
	gone     bool  // its replica has given it up or ended, by when somebody said so
	told     State // what a replica said of it
	ran      bool  // a reconcile of its object has begun
	rest     bool  // all has come to rest: the order must have come to its end
}

// told is legal when the order can be as a replica says; the second result is how it is then.
var told = map[State]map[orderState]orderState{
	Pending:    {open: open},
	Running:    {open: open},
	Done:       {open: answered, answered: answered},
	Failed:     {open: answered, answered: answered},
	Superseded: {abandoned: abandoned, madeUp: madeUp},
	// It is forgotten with the process that had it, whatever became of it.
	Unknown: {answered: answered, abandoned: abandoned, madeUp: madeUp},
}

// orderModel says what may happen to an order, one thing after the other.
var orderModel = porcupine.Model{
	Init: func() any { return absent },
	Step: func(state, input, _ any) (bool, any) {
		now, in := state.(orderState), input.(orderInput)
		switch {
		case in.accepted:
			return now == absent, open
		case in.gone:
			if now == open {
				now = abandoned
			}
			return now != absent, now
		case in.ran:
			if now == abandoned {
				now = madeUp
			}
			return true, now
		case in.rest:
			return now == answered || now == madeUp, now
		}
		next, legal := told[in.told][now]
		return legal, next
	},
}

// lostOrders finds orders whose history no sequence of the model explains. rested reports whether all had come to rest at the end:
// without that an order may still be open. changed reports whether the members may have had no
// owner, or another one, at some time in between: without that an order is not given up.
func lostOrders(orders []Order, runs []Execution, rested bool, changed func(from, to time.Time) bool) (lost []string) {
	for i := range orders {
		o := &orders[i]
		if reason := unexplained(o, runs, rested); reason != "" {
			lost = append(lost, fmt.Sprintf("order %s of %s, accepted at %s by %s: %s", o.Operation, o.Workload, o.Returned.Format(clock), o.Process, reason))
			continue
		}
		for _, a := range o.Answers {
			if (a.State == Superseded || a.State == Unknown) && !changed(o.Invoked, a.Returned) {
				lost = append(lost, fmt.Sprintf("order %s of %s, accepted at %s by %s: %s says at %s that it is %s (%s), and the members have had the same owner all the time",
					o.Operation, o.Workload, o.Returned.Format(clock), o.Process, a.Process, a.Returned.Format(clock), a.State, a.Message))
				break
			}
		}
	}
	return lost
}

// unexplained says what is wrong with the history of an order; empty: nothing.
func unexplained(o *Order, runs []Execution, rested bool) string {
	history := []porcupine.Operation{{Input: orderInput{accepted: true}, Call: o.Invoked.UnixNano(), Return: o.Returned.UnixNano()}}
	end := o.Returned
	gone := false
	for i, a := range o.Answers {
		history = append(history, porcupine.Operation{
			ClientId: i + 1, Input: orderInput{told: a.State}, Call: a.Invoked.UnixNano(), Return: a.Returned.UnixNano(),
		})
		end = latest(end, a.Returned)
		if !gone && (a.State == Superseded || a.State == Unknown) {
			// Nobody sees when. Whoever acts next may have reconciled the object before somebody asks about the order.
			gone = true
			history = append(history, porcupine.Operation{
				ClientId: len(o.Answers) + 1, Input: orderInput{gone: true}, Call: o.Invoked.UnixNano(), Return: a.Returned.UnixNano(),
			})
		}
	}
	for _, r := range runs {
		if r.Workload != o.Workload {
			continue
		}
		from, to := r.Started.Add(-r.Doubt), r.Started.Add(r.Doubt)
		history = append(history, porcupine.Operation{
			ClientId: len(history) + 2, Input: orderInput{ran: true}, Call: from.UnixNano(), Return: to.UnixNano(),
		})
		end = latest(end, to)
	}
	if rested {
		history = append(history, porcupine.Operation{
			ClientId: len(history) + 2, Input: orderInput{rest: true}, Call: end.UnixNano() + 1, Return: end.UnixNano() + 2,
		})
	}
	if porcupine.CheckOperations(orderModel, history) {
		return ""
	}
	return fmt.Sprintf("it did not come to an end, or not in an order that makes sense: %s", answerList(o.Answers))
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// answerList lists the answers for a message.
func answerList(answers []Answer) (list []string) {
	for _, a := range answers {
		list = append(list, fmt.Sprintf("%s-%s %s: %s (%s)", a.Invoked.Format(clock), a.Returned.Format(clock), a.Process, a.State, a.Message))
	}
	return list
}

// ownerChanged returns what reports whether the members may have had no owner, or another one, within a time: by the grants, and
// by what was done to the Lease by hand or with its store.
func ownerChanged(grants []Grant, faults []Injection) func(from, to time.Time) bool {
	grants = slices.Clone(grants)
	slices.SortStableFunc(grants, func(a, b Grant) int { return a.At.Compare(b.At) })
	type span struct{ from, to time.Time }
	var spans []span
	for i := 1; i < len(grants); i++ {
		before, now := grants[i-1], grants[i]
		if before.Process != now.Process || before.Holder != now.Holder || now.At.After(before.At.Add(before.Duration-writeTime)) {
			spans = append(spans, span{before.At, now.At.Add(leaseDuration)}) // who comes may have to wait
		}
	}
	for _, f := range faults {
		if disowning[f.Fault] {
			spans = append(spans, span{f.From, f.To.Add(2 * leaseDuration)})
		}
	}
	return func(from, to time.Time) bool {
		return slices.ContainsFunc(spans, func(s span) bool { return !s.from.After(to) && !s.to.Before(from) })
	}
}

// disowning are the faults after which a replica may not be the owner for a moment though nobody else writes the Lease.
var disowning = map[string]bool{
	"Lease deleted": true, "Lease emptied": true, "Lease given to a stranger": true, "Lease given to another": true,
	"hub restarted": true, "hub restored": true,
}
