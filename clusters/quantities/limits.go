package quantities

// Limits bound what a text may become. Zero values bound nothing.
type Limits struct {
	// Objects of a list.
	Objects int
	// Memory in bytes that the decoded objects take, about: each element of an array, each entry of a map, and each struct that a pointer
	// leads to counts as much as its Go type has bytes, however short it is written.
	Memory int
	// Token is how many bytes a text may have that is a field of the metadata of an object, of a list, of the objects in it, or of the object
	// of an event, such as a resource version or the token with which a list continues.
	Token int
	// Untyped says that JSON may be decoded into maps of any values, as unstructured objects are: each object counts as a map, and each value
	// with what an interface refers to.
	Untyped bool
	// Taken, unless it is nil, is increased by that memory, and by the bytes that decoding reads again, however the text was found.
	Taken *int
}

// tally counts what a text becomes.
type tally struct {
	limits          Limits
	objects, memory int
	again           int // bytes that decoding reads again
	err             error
}

func (t *tally) count() bool {
	t.objects++
	return t.within(t.objects, t.limits.Objects)
}

func (t *tally) spend(bytes int) bool {
	t.memory += bytes
	return t.within(t.memory, t.limits.Memory)
}

// short reports whether a text of metadata is as short as it must be.
func (t *tally) short(text []byte) bool {
	if t.limits.Token > 0 && len(text) > t.limits.Token {
		t.err = ErrLongToken
		return false
	}
	return true
}

func (t *tally) within(is, most int) bool {
	if most > 0 && is > most {
		t.err = ErrTooLarge
		return false
	}
	return true
}

// tooDeep ends a walk through what is nested deeper than it may be.
func (t *tally) tooDeep() bool {
	t.err = ErrTooDeep
	return false
}

// end says how much memory was counted.
func (t *tally) end() {
	if t.limits.Taken != nil {
		*t.limits.Taken += t.memory + t.again
	}
}

// failure is why a walk could not go on.
func (t *tally) failure() error {
	if t.err != nil {
		return t.err
	}
	return ErrMalformed
}
