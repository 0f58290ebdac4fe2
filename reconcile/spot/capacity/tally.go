package capacity

// Tally counts by capacity type.
type Tally struct{ All, Spot, OnDemand int }

// Add counts n more of a capacity type.
func (t *Tally) Add(capacity Type, n int) {
	t.All += n
	switch capacity {
	case Spot:
		t.Spot += n
	case OnDemand:
		t.OnDemand += n
	}
}

// Of returns how many are of a capacity type.
func (t *Tally) Of(capacity Type) int {
	if capacity == Spot {
		return t.Spot
	}
	return t.OnDemand
}

// Code is a [Type] without a pointer.
type Code uint8

// Types are all types, by their codes.
var Types = [...]Type{Unknown, Spot, OnDemand}

// CodeOf returns the code of a capacity type.
func CodeOf(capacity Type) Code {
	switch capacity {
	case Spot:
		return 1
	case OnDemand:
		return 2
	}
	return 0
}

// Type returns the capacity type of a code.
func (c Code) Type() Type { return Types[c] }
