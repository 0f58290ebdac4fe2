package webhook

import (
	"errors"
	"fmt"
	"strings"
)

// scanner reads JSON once, front to back, and makes values only of what it is asked for; the rest is checked and
// skipped. An AdmissionReview is mostly rest (managed fields, user info, containers), and calls come in bursts, which is
// why this exists. It takes and refuses exactly what encoding/json does, except that an object which names one of the
// asked-for fields twice is refused (FuzzReview compares the two).
//
// The first error ends the scan: from then on every method returns at once, with a zero value.
type scanner struct {
	data  []byte
	pos   int
	depth int
	err   error
	reads func(key []byte) bool // which labels and annotations are kept; nil: all
	// text backs all strings of one scan, so that they cost one allocation. Strings taken from it earlier stay as they
	// are when it grows.
	text strings.Builder
}

// maxDepth is how deep objects and arrays may be nested, as in encoding/json.
const maxDepth = 10000

var (
	errSyntax    = errors.New("not valid JSON")
	errDepth     = errors.New("nested too deeply")
	errType      = errors.New("a value of another type")
	errDuplicate = errors.New("a field is there twice")
)

func (s *scanner) fail(why error) {
	if s.err == nil {
		s.err = fmt.Errorf("byte %d: %w", s.pos, why)
		s.pos = len(s.data)
	}
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; c {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// end checks that nothing follows the value.
func (s *scanner) end() {
	if s.err == nil && (s.peek() != 0 || s.pos < len(s.data)) {
		s.fail(errSyntax)
	}
}

// literal takes the rest of true, false or null.
func (s *scanner) literal(word string) {
	if len(s.data)-s.pos < len(word) || string(s.data[s.pos:s.pos+len(word)]) != word {
		s.fail(errSyntax)
		return
	}
	s.pos += len(word)
}

// null takes a null, if one is next. Like in encoding/json, it leaves any field as it was.
func (s *scanner) null() bool {
	if s.peek() != 'n' {
		return false
	}
	s.literal("null")
	return s.err == nil
}

// bool reads true or false; null is false.
func (s *scanner) bool() bool {
	switch s.peek() {
	case 't':
		s.literal("true")
		return s.err == nil
	case 'f':
		s.literal("false")
	case 'n':
		s.literal("null")
	default:
		s.mismatch()
	}
	return false
}

// mismatch fails for a value of the wrong type, or for none at all.
func (s *scanner) mismatch() {
	if s.skip(); s.err == nil {
		s.fail(errType)
	}
}
