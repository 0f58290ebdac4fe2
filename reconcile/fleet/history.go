package fleet

import (
	"math"
	"time"
)

// What is assumed of a supply of which little was seen, and how long what was seen counts.
const (
	// PriorLife is the lifetime of spot capacity of which nothing was seen: it weighs as much as one loss in that time.
	PriorLife = 2 * time.Hour
	// HalfLife is after how long a loss, and time without one, count half.
	HalfLife = 12 * time.Hour
	// startWeight is how much the latest start time counts against those before.
	startWeight = 0.3
)

// History is what was seen of one capacity type of a member. The zero value has seen nothing. Times must not go backwards.
type History struct {
	losses, exposed float64 // decayed: events, seconds
	at              time.Time
	running         bool
	start           time.Duration
}

// Ran says whether replicas run there from now on: lifetimes are learned from the time in which some did.
func (h *History) Ran(now time.Time, running bool) {
	h.advance(now)
	h.running = running
}

// Lost says that the supply has taken replicas back. Several at one moment are one loss.
func (h *History) Lost(now time.Time) {
	h.advance(now)
	h.losses++
}

// Started says that a replica has become ready, so long after it was asked for.
func (h *History) Started(took time.Duration) {
	if h.start == 0 {
		h.start = took
		return
	}
	h.start += time.Duration(startWeight * float64(took-h.start))
}

// Life predicts how long it takes until replicas are taken back: the time in which some ran, by the losses in it, both
// counting less the longer ago they were.
func (h *History) Life(now time.Time) time.Duration {
	seen := *h
	seen.advance(now)
	return time.Duration((PriorLife.Seconds() + seen.exposed) / (1 + seen.losses) * float64(time.Second))
}

// Start predicts how long a replica takes to be ready; otherwise, where none was seen.
func (h *History) Start(otherwise time.Duration) time.Duration {
	if h.start == 0 {
		return otherwise
	}
	return h.start
}

func (h *History) advance(now time.Time) {
	passed := now.Sub(h.at).Seconds()
	if h.at.IsZero() {
		passed = 0
	}
	h.at = now
	if passed <= 0 {
		return
	}
	rate := math.Ln2 / HalfLife.Seconds()
	left := math.Exp(-rate * passed)
	h.losses *= left
	h.exposed *= left
	if h.running {
		h.exposed += (1 - left) / rate
	}
}
