package notify

// Wake wakes one goroutine, which receives from it. Any number of goroutines may signal. Nil never wakes.
type Wake chan struct{}

// New returns a Wake that nobody has signalled.
func New() Wake { return make(Wake, 1) }

// Signal wakes the goroutine: now if it waits, else as soon as it waits again, once for all signals until then. It never blocks.
func (w Wake) Signal() {
	select {
	case w <- struct{}{}:
	default:
	}
}
