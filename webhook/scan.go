package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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

// string reads a string; null is "".
func (s *scanner) string() string {
	if c := s.peek(); c != '"' {
		if c == 'n' {
			s.literal("null")
		} else {
			s.mismatch()
		}
		return ""
	}
	raw, plain := s.rawString()
	if s.err != nil {
		return ""
	}
	return s.keep(raw, plain)
}

// keep makes a string of what is between the quotes. plain: there is nothing to decode in it.
func (s *scanner) keep(raw []byte, plain bool) string {
	if plain {
		return s.copied(raw)
	}
	var decoded string
	if err := json.Unmarshal(s.data[s.pos-len(raw)-2:s.pos], &decoded); err != nil { // with the quotes
		s.fail(errSyntax)
	}
	return decoded
}

// copied makes a string of decoded text.
func (s *scanner) copied(text []byte) string {
	start := s.text.Len()
	s.text.Write(text)
	return s.text.String()[start:]
}

// plainByte are the bytes that stand for themselves in a string; simpleByte those that also need no decoding.
var plainByte, simpleByte = func() (plain, simple [256]bool) {
	for c := range plain {
		plain[c] = c >= ' ' && c != '"' && c != '\\'
		simple[c] = plain[c] && c < 0x80
	}
	return plain, simple
}()

// rawString takes a string, whose opening quote is next, and returns what is between the quotes; plain is false when
// that has escapes, or bytes beyond ASCII, which may not be valid UTF-8.
func (s *scanner) rawString() (raw []byte, plain bool) {
	start := s.pos + 1
	i := start
	for i < len(s.data) && simpleByte[s.data[i]] {
		i++
	}
	if i < len(s.data) && s.data[i] == '"' {
		s.pos = i + 1
		return s.data[start:i], true
	}
	s.pos = i
	s.finishString()
	if s.err != nil {
		return nil, false
	}
	return s.data[start : s.pos-1], false
}

// skipString takes a string, whose opening quote is next.
func (s *scanner) skipString() {
	s.pos++
	s.finishString()
}

// finishString takes the rest of a string, with its closing quote.
func (s *scanner) finishString() {
	data, i := s.data, s.pos
	for {
		for i < len(data) && plainByte[data[i]] {
			i++
		}
		if i == len(data) || data[i] < ' ' {
			s.pos = i
			s.fail(errSyntax)
			return
		}
		if data[i] == '"' {
			s.pos = i + 1
			return
		}
		length := escapeLength(data[i:])
		if length == 0 {
			s.pos = i
			s.fail(errSyntax)
			return
		}
		i += length
	}
}

// escapeLength is the length of the escape that text begins with, 0 when it is none.
func escapeLength(text []byte) int {
	if len(text) < 2 {
		return 0
	}
	switch text[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(text) < 6 || slices.ContainsFunc(text[2:6], notHex) {
			return 0
		}
		return 6
	}
	return 0
}

func notHex(c byte) bool {
	return !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F')
}

// skipNumber takes a number.
func (s *scanner) skipNumber() {
	if s.pos < len(s.data) && s.data[s.pos] == '-' {
		s.pos++
	}
	if s.pos < len(s.data) && s.data[s.pos] == '0' {
		s.pos++
	} else {
		s.digits()
	}
	if s.pos < len(s.data) && s.data[s.pos] == '.' {
		s.pos++
		s.digits()
	}
	if s.pos < len(s.data) && (s.data[s.pos] == 'e' || s.data[s.pos] == 'E') {
		s.pos++
		if s.pos < len(s.data) && (s.data[s.pos] == '+' || s.data[s.pos] == '-') {
			s.pos++
		}
		s.digits()
	}
}

// digits takes one or more of them.
func (s *scanner) digits() {
	start := s.pos
	for s.pos < len(s.data) && '0' <= s.data[s.pos] && s.data[s.pos] <= '9' {
		s.pos++
	}
	if s.pos == start {
		s.fail(errSyntax)
	}
}

// skip takes any value.
func (s *scanner) skip() {
	switch c := s.peek(); c {
	case '"':
		s.skipString()
	case '{':
		for fields := s.object(); fields.skipNext(); {
			s.skip()
		}
	case '[':
		for items := s.array(); items.next(); {
			s.skip()
		}
	case 't':
		s.literal("true")
	case 'f':
		s.literal("false")
	case 'n':
		s.literal("null")
	default:
		s.skipNumber()
	}
}
