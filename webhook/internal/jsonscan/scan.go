package jsonscan

import (
	"errors"
	"fmt"
	"strings"
)

// Scanner reads JSON once, front to back, and makes values only of what it is asked for; the rest is checked and
// skipped. An AdmissionReview is mostly rest (managed fields, user info, containers), and calls come in bursts, which is
// why this exists. It takes and refuses exactly what encoding/json does, except that an object which names one of the
// asked-for fields twice is refused (FuzzReview compares the two).
//
// The first error ends the scan: from then on every method returns at once, with a zero value.
type Scanner struct {
	Data  []byte
	pos   int
	depth int
	Err   error
	Reads func(key []byte) bool // which labels and annotations are kept; nil: all
	// Pause is called after every Piece bytes, about; nil: never. A long string counts as one.
	Pause func()
	Piece int
	piece int // where this one began
	// MaxValues is how many fields and items of objects and arrays are read at most, those that are skipped left out: each takes
	// memory, whatever it takes in Data. 0: any number.
	MaxValues int
	values    int
	// Text backs all strings of one scan, so that they cost one allocation. Strings taken from it earlier stay as they
	// are when it grows.
	Text strings.Builder
}

// maxDepth is how deep objects and arrays may be nested, as in encoding/json.
const maxDepth = 10000

var (
	errSyntax    = errors.New("not valid JSON")
	errDepth     = errors.New("nested too deeply")
	errType      = errors.New("a value of another type")
	errDuplicate = errors.New("duplicate field")
	errTooMany   = errors.New("too many fields and items")
)

func (s *Scanner) fail(why error) {
	if s.Err == nil {
		s.Err = fmt.Errorf("byte %d: %w", s.pos, why)
		s.pos = len(s.Data)
	}
}

// rest pauses at the end of a piece.
func (s *Scanner) rest() {
	if s.Pause != nil && s.pos-s.piece >= s.Piece {
		s.piece = s.pos
		s.Pause()
	}
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *Scanner) peek() byte {
	for s.pos < len(s.Data) {
		switch c := s.Data[s.pos]; c {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// End checks that nothing follows the value.
func (s *Scanner) End() {
	if s.Err == nil && (s.peek() != 0 || s.pos < len(s.Data)) {
		s.fail(errSyntax)
	}
}

// literal takes the rest of true, false or null.
func (s *Scanner) literal(word string) {
	if len(s.Data)-s.pos < len(word) || string(s.Data[s.pos:s.pos+len(word)]) != word {
		s.fail(errSyntax)
		return
	}
	s.pos += len(word)
}

// Null takes a null, if one is next. Like in encoding/json, it leaves any field as it was.
func (s *Scanner) Null() bool {
	if s.peek() != 'n' {
		return false
	}
	s.literal("null")
	return s.Err == nil
}

// ReadBool reads true or false; null is false.
func (s *Scanner) ReadBool() bool {
	switch s.peek() {
	case 't':
		s.literal("true")
		return s.Err == nil
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
func (s *Scanner) mismatch() {
	if s.Skip(); s.Err == nil {
		s.fail(errType)
	}
}
