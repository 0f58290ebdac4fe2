package jsonscan

import (
	"encoding/binary"
	"encoding/json"
	"math/bits"
)

// ReadString reads a string; null is "".
func (s *Scanner) ReadString() string {
	if c := s.peek(); c != '"' {
		if c == 'n' {
			s.literal("null")
		} else {
			s.mismatch()
		}
		return ""
	}
	raw, plain := s.rawString()
	if s.Err != nil {
		return ""
	}
	return s.keep(raw, plain)
}

// keep makes a string of what is between the quotes. plain: there is nothing to decode in it.
func (s *Scanner) keep(raw []byte, plain bool) string {
	if plain {
		return s.copied(raw)
	}
	var decoded string
	if err := json.Unmarshal(s.Data[s.pos-len(raw)-2:s.pos], &decoded); err != nil { // with the quotes
		s.fail(errSyntax)
	}
	return decoded
}

// copied makes a string of decoded text.
func (s *Scanner) copied(text []byte) string {
	start := s.Text.Len()
	s.Text.Write(text)
	return s.Text.String()[start:]
}

const (
	ones = 0x0101010101010101
	// HighBits has the highest bit of each of eight bytes.
	HighBits = 0x80 * ones
)

// PlainUntil returns the index, from i on, of the first byte that does not represent itself in a string: a quote, a
// backslash or a control character; len(data) if there is none. stopAt is HighBits to stop at bytes beyond ASCII, too,
// else 0. It looks at eight bytes at a time: of the bits that a subtraction sets, the lowest is always right.
func PlainUntil(data []byte, i int, stopAt uint64) int {
	for ; i+8 <= len(data); i += 8 {
		eight := binary.LittleEndian.Uint64(data[i:])
		quote, backslash := eight^('"'*ones), eight^('\\'*ones)
		found := (eight-' '*ones)&^eight | (quote-ones)&^quote | (backslash-ones)&^backslash
		if found = found&HighBits | eight&stopAt; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(data); i++ {
		if c := data[i]; c < ' ' || c == '"' || c == '\\' || uint64(c)&stopAt != 0 {
			return i
		}
	}
	return i
}

// rawString takes a string, whose opening quote is next, and returns what is between the quotes; plain is false when
// that has escapes, or bytes beyond ASCII, which may not be valid UTF-8.
func (s *Scanner) rawString() (raw []byte, plain bool) {
	start := s.pos + 1
	s.pos = PlainUntil(s.Data, start, HighBits)
	if s.pos < len(s.Data) && s.Data[s.pos] == '"' {
		s.pos++
		return s.Data[start : s.pos-1], true
	}
	s.finishString()
	if s.Err != nil {
		return nil, false
	}
	return s.Data[start : s.pos-1], false
}

// skipString takes a string, whose opening quote is next.
func (s *Scanner) skipString() {
	s.pos++
	s.finishString()
}

// finishString takes the rest of a string, with its closing quote.
func (s *Scanner) finishString() {
	for {
		s.pos = PlainUntil(s.Data, s.pos, 0)
		if s.pos < len(s.Data) && s.Data[s.pos] == '"' {
			s.pos++
			return
		}
		length := escapeLength(s.Data[s.pos:])
		if length == 0 {
			s.fail(errSyntax)
			return
		}
		s.pos += length
	}
}

// escapeLength is the length of the escape that text begins with, 0 when it begins with none.
func escapeLength(text []byte) int {
	if len(text) < 2 || text[0] != '\\' {
		return 0
	}
	switch text[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(text) < 6 || !isHex(text[2]) || !isHex(text[3]) || !isHex(text[4]) || !isHex(text[5]) {
			return 0
		}
		return 6
	}
	return 0
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
