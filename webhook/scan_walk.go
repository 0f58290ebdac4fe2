package webhook

// walk goes through the fields of an object or the items of an array. While it is under way, whoever called next must
// take exactly one value of the scanner before calling it again.
type walk struct {
	s     *scanner
	close byte
	begun bool
	ended bool
	// key is the name of the field that comes next; it is good until the next call.
	key []byte
}

// object enters an object; null has no fields.
func (s *scanner) object() walk { return s.enter('{', '}') }

// array enters an array; null has no items.
func (s *scanner) array() walk { return s.enter('[', ']') }

func (s *scanner) enter(open, closing byte) walk {
	w := walk{s: s, close: closing}
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

// next goes to the next item of an array: false at the end, or after an error.
func (w *walk) next() bool {
	s := w.s
	if s.err != nil || w.ended {
		return false
	}
	c := s.peek()
	if c == w.close {
		s.pos++
		s.depth--
		w.ended = true
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

// nextField goes to the next field of an object and reads its key: false at the end, or after an error.
func (w *walk) nextField() bool {
	s := w.s
	if !w.next() {
		return false
	}
	if s.peek() != '"' {
		s.fail(errSyntax)
		return false
	}
	raw, plain := s.rawString()
	if s.err == nil && !plain {
		raw = []byte(s.keep(raw, plain))
	}
	w.key = raw
	return s.colon()
}

func (s *scanner) colon() bool {
	if s.err != nil {
		return false
	}
	if s.peek() != ':' {
		s.fail(errSyntax)
		return false
	}
	s.pos++
	return true
}

// seen remembers which fields of an object were read, one bit each.
type seen uint16

// once refuses a field that was read before.
func (f *seen) once(s *scanner, field seen) {
	if *f&field != 0 {
		s.fail(errDuplicate)
	}
	*f |= field
}

// stringMap reads an object of strings, those of the keys that reads tells; nil: all. more says that there were others. null
// is nil, as for encoding/json, and so is an object without such keys.
func (s *scanner) stringMap(reads func(key []byte) bool) (entries map[string]string, more bool) {
	for fields := s.object(); fields.nextField(); {
		if reads != nil && !reads(fields.key) {
			more = true
			s.skipText()
			continue
		}
		key := s.copied(fields.key)
		if entries == nil {
			entries = make(map[string]string, 4)
		}
		if _, twice := entries[key]; twice {
			s.fail(errDuplicate)
		}
		entries[key] = s.string()
	}
	return entries, more
}

// skipText takes a string or null.
func (s *scanner) skipText() {
	switch s.peek() {
	case '"':
		s.skipString()
	case 'n':
		s.literal("null")
	default:
		s.mismatch()
	}
}

// strings reads an array of strings; null is nil.
func (s *scanner) strings() []string {
	var list []string
	for items := s.array(); items.next(); {
		list = append(list, s.string())
	}
	return list
}
