package limits

import (
	"context"
	"time"
)

const (
	// questionRate is how much processor time the plans that a caller asks for may take on a replica in a second, and questionBurst
	// how much at once, in microseconds.
	questionRate  = 200_000
	questionBurst = 2_000_000
	// PlanBudget is the reason of questions of a caller whose plans have taken more than that.
	PlanBudget = "PLAN_BUDGET_SPENT"
)

// Questions have plans made that nothing comes of, one at a time: explanations and what-ifs. What they take is charged to who asks. Nil
// bounds nothing. Safe for concurrent use.
type Questions struct {
	turn    chan struct{}
	callers *Budgets
}

// NewQuestions lets each caller have a fifth of a processor, and two seconds of one at once.
func NewQuestions() *Questions {
	return &Questions{turn: make(chan struct{}, 1), callers: NewBudgets(questionRate, questionBurst)}
}

// Ask calls plan when nobody else's is being made. It returns an error without calling it when ctx ends first, or when earlier plans have cost their
// caller more than there is: RESOURCE_EXHAUSTED, with when they have some again.
func (q *Questions) Ask(ctx context.Context, whose string, plan func()) error {
	if q == nil {
		plan()
		return nil
	}
	if err := q.solvent(whose); err != nil {
		return err
	}
	select {
	case q.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-q.turn }()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := q.solvent(whose); err != nil { // others of the same caller were before
		return err
	}
	began := time.Now()
	defer func() { q.callers.Owe(whose, uint64(time.Since(began).Microseconds())) }()
	plan()
	return nil
}

// solvent returns an error when a caller owes for the plans that they have had.
func (q *Questions) solvent(whose string) error {
	return q.callers.solvent(whose, 0, PlanBudget,
		"the plans that you have asked for have taken more of a processor than a caller's may in so short a time: ask again later")
}
