package spot

// tally counts by capacity type.
type tally struct{ all, spot, onDemand int }

func (t *tally) add(capacity Capacity, n int) {
	t.all += n
	switch capacity {
	case Spot:
		t.spot += n
	case OnDemand:
		t.onDemand += n
	}
}

func (t *tally) of(capacity Capacity) int {
	if capacity == Spot {
		return t.spot
	}
	return t.onDemand
}

// capacityCode is a Capacity without a pointer.
type capacityCode uint8

var capacities = [...]Capacity{Unknown, Spot, OnDemand}

func codeOf(capacity Capacity) capacityCode {
	switch capacity {
	case Spot:
		return 1
	case OnDemand:
		return 2
	}
	return 0
}

func (c capacityCode) capacity() Capacity { return capacities[c] }
