package jsonscan

// Walk goes through the fields of an object or the items of an array. While it is under way, whoever called next must
// take exactly one value of the scanner before calling it again.
type Walk struct {
	s     *Scanner
	close byte
	begun bool
	ended bool
	// Key is the name of the field that comes next; it is good until the next call.
	Key []byte
}

// Object enters an object; null has no fields.
func (s *Scanner) Object() Walk { return s.enter('{', '}') }

// Array enters an array; null has no items.
func (s *Scanner) Array() Walk { return s.enter('[', ']') }

func (s *Scanner) enter(open, closing byte) Walk {
	w := Walk{s: s, close: closing}
	switch s.peek() {
	case open:
		s.pos++
		if s.depth++; s.depth > maxDepth {
			s.fail(errDepth)
		}
	case 'n':
		s.literal("null")
		w.ended = true
	default:
		s.mismatch()
	}
	return w
}

// Next goes to the next item of an array: false at the end, or after an error.
func (w *Walk) Next() bool {
	s := w.s
	if s.Err != nil || w.ended {
		return false
	}
	s.rest()
	c := s.peek()
	if c == w.close {
		s.pos++
		s.depth--
		w.ended = true
		return false
	}
	if s.values++; s.MaxValues > 0 && s.values > s.MaxValues {
		s.fail(errTooMany)
		return false
	}
	if !w.begun {
		w.begun = true
		return true
	}
	if c != ',' {
		s.fail(errSyntax)
		return false
	}
	s.pos++
	if s.peek() == w.close { // nothing may follow a comma but an item
		s.fail(errSyntax)
		return false
	}
	return true
}

// NextField goes to the next field of an object and reads its key: false at the end, or after an error.
func (w *Walk) NextField() bool {
	s := w.s
	if !w.Next() {
		return false
	}
	if s.peek() != '"' {
		s.fail(errSyntax)
		return false
	}
	raw, plain := s.rawString()
	if s.Err == nil && !plain {
		raw = []byte(s.keep(raw, plain))
	}
	w.Key = raw
	return s.colon()
}

func (s *Scanner) colon() bool {
	if s.Err != nil {
		return false
	}
	if s.peek() != ':' {
		s.fail(errSyntax)
		return false
	}
	s.pos++
	return true
}

// Seen remembers which fields of an object were read, one bit each.
type Seen uint16

// Once refuses a field that was read before.
func (f *Seen) Once(s *Scanner, field Seen) {
	if *f&field != 0 {
		s.fail(errDuplicate)
	}
	*f |= field
}

// StringMap reads an object of strings, those of the keys that reads names; nil: all. more says that there were others. null
// is nil, as for encoding/json, and so is an object without such keys.
func (s *Scanner) StringMap(reads func(key []byte) bool) (entries map[string]string, more bool) {
	for fields := s.Object(); fields.NextField(); {
		if reads != nil && !reads(fields.Key) {
			more = true
			s.skipText()
			continue
		}
		key := s.copied(fields.Key)
		if entries == nil {
			entries = make(map[string]string, 4)
		}
		if _, twice := entries[key]; twice {
			s.fail(errDuplicate)
		}
		entries[key] = s.ReadString()
	}
	return entries, more
}

// skipText takes a string or null.
func (s *Scanner) skipText() {
	switch s.peek() {
	case '"':
		s.skipString()
	case 'n':
		s.literal("null")
	default:
		s.mismatch()
	}
}

// Strings reads an array of strings; null is nil.
func (s *Scanner) Strings() []string {
	var list []string
	for items := s.Array(); items.Next(); {
		list = append(list, s.ReadString())
	}
	return list
}
