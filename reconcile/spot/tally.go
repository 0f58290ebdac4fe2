package spot

// tally counts by capacity type.
type tally struct{ all, spot, onDemand int }

// add counts n more of a capacity type.
func (t *tally) add(capacity Capacity, n int) {
	t.all += n
	switch capacity {
	case Spot:
		t.spot += n
	case OnDemand:
		t.onDemand += n
	}
}

// of returns how many are of a capacity type.
func (t *tally) of(capacity Capacity) int {
	if capacity == Spot {
		return t.spot
	}
	return t.onDemand
}

// capacityCode is a Capacity without a pointer.
type capacityCode uint8

// capacities are all types, by their codes.
var capacities = [...]Capacity{Unknown, Spot, OnDemand}

// codeOf returns the code of a capacity type.
func codeOf(capacity Capacity) capacityCode {
	switch capacity {
	case Spot:
		return 1
	case OnDemand:
		return 2
	}
	return 0
}

// capacity returns the capacity type of a code.
func (c capacityCode) capacity() Capacity { return capacities[c] }
