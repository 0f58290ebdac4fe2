package quantities

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"
)

// Errors of what cannot be looked through, and so must not be decoded.
var (
	// ErrMalformed: the text is no JSON, or no protobuf, as far as it was looked at.
	ErrMalformed = errors.New("malformed")
	// ErrTooLarge: decoding would take more memory than is allowed, or there are too many objects.
	ErrTooLarge = errors.New("too large")
	// ErrTooDeep: it is nested too deep.
	ErrTooDeep = errors.New("nested too deep")
	// ErrLongToken: a text of the metadata has more bytes than it may have.
	ErrLongToken = errors.New("a name, a resource version or another text of the metadata is too long")
	// ErrEscaped: a quantity is written with escapes, which hide what it is.
	ErrEscaped = errors.New("a quantity with escapes in it")
)

// maxDepth is how deep objects and arrays may be nested, as in encoding/json.
const maxDepth = 10000

// maxItself is how deep values may be nested whose types decode themselves, such as the items of a schema: each level reads all below it
// again.
const maxItself = 64

// anyValue is what any value may take in memory, where it is decoded into no Go type of its own.
const anyValue = 16

// What values take that are decoded into maps of any values: an interface refers to a header, of a text or a list, or to a number. A
// map has a header and a group of eight slots, for a text and an interface each, with a byte beside it. Larger maps have a power of two
// of slots, of which seven in eight may be taken: up to 16/7 for each entry. See internal/runtime/maps.
const (
	boxed       = 24
	emptyMap    = 48
	slotBytes   = stringSize + anyValue + 1
	mapSlots    = 8
	furtherSlot = slotBytes * 16 / 7
)

// JSON bounds in place all quantities in a JSON text: an object of the scheme, a list, an event of a watch or a review. Names
// of fields match whatever their case, as encoding/json has it. An error says that the text must not be decoded.
func (s *Paths) JSON(text []byte, limits Limits) error {
	w := jsonWalker{text: text, tally: tally{limits: limits}}
	defer w.end()
	for w.value(s.anything, 0, whole) {
		if w.space() == 0 && w.at >= len(w.text) {
			return nil
		}
	}
	return w.failure()
}

// place is where a value is, as far as it matters for the texts of metadata.
type place int

const (
	elsewhere place = iota
	whole           // not in anything else: an object, a list or an event
	entry           // an object in a list, or that of an event
	metadata        // of any of these
	token           // a field of that
)

// leadsTo is where the value of a field is.
func (p place) leadsTo(name []byte, plain bool) place {
	switch {
	case p == metadata:
		return token
	case p == elsewhere || p == token:
		return elsewhere
	case isNamed("metadata", name, plain):
		return metadata
	case p == whole && isNamed("object", name, plain):
		return entry
	}
	return elsewhere
}

// isNamed reports whether encoding/json takes a name for another in lower case, which has no letter that one of another length stands for.
func isNamed(wanted string, name []byte, plain bool) bool {
	return (!plain || len(name) == len(wanted)) && string(foldedName(name, plain)) == wanted
}

// jsonWalker goes through a text once. Its methods return false when it cannot go on.
type jsonWalker struct {
	tally
	text   []byte
	at     int
	itself int // depth of types that decode themselves
}

func (w *jsonWalker) space() byte {
	for w.at < len(w.text) {
		switch c := w.text[w.at]; c {
		case ' ', '\t', '\n', '\r':
			w.at++
		default:
			return c
		}
	}
	return 0
}

// value goes past a value; at is nil where no quantity can be.
func (w *jsonWalker) value(at *state, depth int, in place) bool {
	if depth > maxDepth || !w.spend(anyValue) || w.limits.Untyped && !w.spend(boxed) {
		return false
	}
	if at != nil && at.itself {
		if w.itself++; w.itself > maxItself {
			return w.tooDeep()
		}
		if !w.spend(at.made) {
			return false
		}
		start := w.at
		defer func() {
			w.itself--
			w.again += w.at - start
		}()
	}
	switch c := w.space(); c {
	case 0:
		return false
	case '{':
		return w.object(at, depth, in)
	case '[':
		return w.array(at, depth, false)
	case '"':
		text, plain, ok := w.quoted()
		return ok && (in != token || w.short(text)) && w.clamp(at, text, plain)
	default:
		start := w.at
		for w.at < len(w.text) && !ends[w.text[w.at]] {
			w.at++
		}
		word := w.text[start:w.at]
		if !isBare(word) {
			return false
		}
		if at != nil && at.quantity {
			clampBare(word)
		}
		return true
	}
}

// isBare reports whether a text may be a number or a word of JSON. What follows it the decoder judges; any other bytes must not pass
// for JSON here, for they may be something else to who reads them.
func isBare(text []byte) bool {
	switch string(text) {
	case "":
		return false
	case "true", "false", "null":
		return true
	}
	for _, c := range text {
		if (c < '0' || c > '9') && c != '-' && c != '+' && c != '.' && c != 'e' && c != 'E' {
			return false
		}
	}
	return true
}

// ends reports which bytes end a number or a word.
var ends = [256]bool{' ': true, '\t': true, '\n': true, '\r': true, ',': true, ']': true, '}': true, '{': true, '[': true, '"': true, ':': true}

func (w *jsonWalker) clamp(at *state, text []byte, plain bool) bool {
	if at == nil || !at.quantity {
		return true
	}
	if !plain {
		w.err = ErrEscaped
		return false
	}
	Clamp(text)
	return true
}

// clampBare bounds a quantity that is written as a number, which must not begin with several zeros.
func clampBare(text []byte) {
	if len(text) > MaxLength {
		fill(text, ' ')
		text[0] = '0'
		return
	}
	Clamp(text)
}

// quoted goes past a string; plain reports that it has no escapes.
func (w *jsonWalker) quoted() (text []byte, plain, ok bool) {
	w.at++
	start := w.at
	plain = true
	for {
		end := bytes.IndexByte(w.text[w.at:], '"')
		if end < 0 {
			return nil, false, false
		}
		escape := bytes.IndexByte(w.text[w.at:w.at+end], '\\')
		if escape < 0 {
			w.at += end
			text = w.text[start:w.at]
			w.at++
			return text, plain, true
		}
		plain = false
		w.at += escape + 2 // past what is escaped, which may be a quotation mark
		if w.at > len(w.text) {
			return nil, false, false
		}
	}
}

func (w *jsonWalker) object(at *state, depth int, in place) bool {
	if w.limits.Untyped && !w.spend(emptyMap) {
		return false
	}
	w.at++
	if w.space() == '}' {
		w.at++
		return true
	}
	for entries := 1; ; entries++ {
		if w.space() != '"' || w.limits.Untyped && !w.spend(entryOfMap(entries)) {
			return false
		}
		name, plain, ok := w.quoted()
		if !ok || w.space() != ':' {
			return false
		}
		w.at++
		child, target, items := at.field(name, plain)
		if at != nil && !w.spend(at.entrySize+target) {
			return false
		}
		if in == whole && items && w.space() == '[' {
			ok = w.array(child, depth+1, true)
		} else {
			ok = w.value(child, depth+1, in.leadsTo(name, plain))
		}
		if !ok {
			return false
		}
		switch w.space() {
		case ',':
			w.at++
		case '}':
			w.at++
			return true
		default:
			return false
		}
	}
}

// entryOfMap is what a map of any values takes more with its nth entry.
func entryOfMap(nth int) int {
	switch {
	case nth == 1:
		return mapSlots * slotBytes
	case nth > mapSlots:
		return furtherSlot
	}
	return 0
}

// field finds what a field leads to, nil where no quantity can be, and what a pointer to it takes; items reports that it has the
// objects of a list.
func (s *state) field(name []byte, plain bool) (child *state, target int, items bool) {
	items = string(name) == "items"
	if s == nil && (items || plain) {
		return nil, 0, items
	}
	if s != nil {
		if field, ok := s.names[string(name)]; ok {
			return field.to, field.target, items
		}
	}
	folded := foldedName(name, plain)
	if items = string(folded) == "items"; s == nil {
		return nil, 0, items
	}
	if field, ok := s.folded[string(folded)]; ok {
		return field.to, field.target, items
	}
	return s.value, 0, items
}

// foldedName is a name as encoding/json compares it: without escapes, in lower case, with the two letters beyond ASCII that
// it takes for one of them. It is the name itself where nothing changes, as in most labels.
func foldedName(name []byte, plain bool) []byte {
	if plain && !bytes.ContainsFunc(name, changes) {
		return name
	}
	text := string(name)
	if !plain {
		var read string
		if json.Unmarshal([]byte(`"`+text+`"`), &read) == nil {
			text = read
		}
	}
	return []byte(alike.Replace(strings.ToLower(text)))
}

// changes reports whether a name with that letter may be another one in lower case.
func changes(letter rune) bool { return letter >= utf8.RuneSelf || 'A' <= letter && letter <= 'Z' }

var alike = strings.NewReplacer("\u017f", "s", "\u212a", "k")

// array goes past an array; listed says that it has the objects of a list, which are counted.
func (w *jsonWalker) array(at *state, depth int, listed bool) bool {
	if depth > maxDepth {
		return false
	}
	in := elsewhere
	if listed {
		in = entry
	}
	var element *state
	size := 0
	if at != nil {
		element, size = at.element, at.elementSize
	}
	w.at++
	if w.space() == ']' {
		w.at++
		return true
	}
	for {
		if listed && !w.count() || !w.spend(size) || !w.value(element, depth+1, in) {
			return false
		}
		switch w.space() {
		case ',':
			w.at++
		case ']':
			w.at++
			return true
		default:
			return false
		}
	}
}
