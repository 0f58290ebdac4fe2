package fleet

import "time"

// FirstLife is the predicted lifetime of spot capacity that has just been found, or has just taken some back.
const FirstLife = 30 * time.Minute

// startWeight is how much the latest start time counts against those before.
const startWeight = 0.3

// History is what was seen of one capacity type of a member. The zero value has seen nothing. Times must not go backwards.
//
// Lifetimes of spot capacity have a heavy tail: what has lasted for some time lasts about as long again. So the prediction is
// the time for which capacity was seen to hold, and a loss starts it again; older losses say nothing more.
type History struct {
	held    time.Duration
	since   time.Time // since when it holds; zero: nothing runs there
	start   time.Duration
	started bool
}

// Ran says whether replicas run there from now on: only what runs shows that capacity holds.
func (h *History) Ran(now time.Time, running bool) {
	if !h.since.IsZero() {
		h.held += now.Sub(h.since)
	}
	h.since = time.Time{}
	if running {
		h.since = now
	}
}

// Lost says that the supply has taken replicas back, or had no room for one.
func (h *History) Lost(now time.Time) {
	h.held = 0
	if !h.since.IsZero() {
		h.since = now
	}
}

// Held returns from when on capacity has held without a break, were there none in what was seen, and how long it held where
// nothing runs now; the first is zero then.
func (h *History) Held() (since time.Time, held time.Duration) {
	if h.since.IsZero() {
		return time.Time{}, h.held
	}
	return h.since.Add(-h.held), 0
}

// Resume is the history of which that was said.
func Resume(since time.Time, held time.Duration) History { return History{since: since, held: held} }

// Started says that a replica has become ready, so long after it was asked for.
func (h *History) Started(took time.Duration) {
	if !h.started {
		h.start, h.started = took, true
		return
	}
	h.start += time.Duration(startWeight * float64(took-h.start))
}

// Life predicts how long it takes until replicas are taken back.
func (h *History) Life(now time.Time) time.Duration {
	held := h.held
	if !h.since.IsZero() {
		held += now.Sub(h.since)
	}
	return FirstLife + held
}

// Start predicts how long a replica takes to be ready; otherwise, where none was seen.
func (h *History) Start(otherwise time.Duration) time.Duration {
	if !h.started {
		return otherwise
	}
	return h.start
}
