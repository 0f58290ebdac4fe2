package quantities

import (
	"bytes"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// envelope begins every object that Kubernetes writes as protobuf.
var envelope = []byte("k8s\x00")

// Numbers of the fields of Kubernetes' own messages: runtime.Unknown, runtime.TypeMeta, runtime.RawExtension,
// metav1.WatchEvent, and of the entries of maps and the objects of lists.
const (
	unknownTypeMeta    = 1
	unknownRaw         = 2
	typeMetaAPIVersion = 1
	typeMetaKind       = 2
	extensionRaw       = 1
	eventObject        = 2
	entryValue         = 2
	quantityText       = 1
	objectMeta         = 1
	listItems          = 2
	// lastToken is the last of the fields of metav1.ObjectMeta that are texts, the resource version; those of metav1.ListMeta are among the
	// same numbers.
	lastToken = 6
)

// maxNested is how deep messages may be nested. The decoders bound nothing, and need a stack for each level; only schemas contain
// themselves, and those of real definitions have some dozens of levels.
const maxNested = 500

// Proto bounds in place all quantities in an object of the scheme that is written as Kubernetes' protobuf. An error says
// that it must not be decoded.
func (s *Paths) Proto(data []byte, limits Limits) error {
	w := protoWalker{paths: s, tally: tally{limits: limits}}
	defer w.end()
	if !bytes.HasPrefix(data, envelope) || !w.unknown(data[len(envelope):], 0) {
		return w.failure()
	}
	return nil
}

// ProtoEvent is like [Paths.Proto] for one event of a watch, which has no envelope of its own.
func (s *Paths) ProtoEvent(data []byte, limits Limits) error {
	w := protoWalker{paths: s, tally: tally{limits: limits}}
	defer w.end()
	f := fields{data: data}
	for f.next() {
		if f.number == eventObject && !w.extension(f.content, 0) {
			return w.failure()
		}
	}
	if f.bad {
		return ErrMalformed
	}
	return nil
}

type protoWalker struct {
	tally
	paths *Paths
}

// unknown goes through a runtime.Unknown: the kind, and the object itself.
func (w *protoWalker) unknown(data []byte, depth int) bool {
	var kind schema.GroupVersionKind
	var raw [][]byte
	f := fields{data: data}
	for f.next() {
		switch f.number {
		case unknownTypeMeta:
			if !readKind(f.content, &kind) {
				return false
			}
		case unknownRaw:
			raw = append(raw, f.content)
		}
	}
	if f.bad || depth > maxNested {
		return false
	}
	if kind.Kind == "" || kind.Version == "" {
		return false // API servers always say them, and what is in the object follows from them; a decoder would guess
	}
	n := w.paths.kinds[kind]
	for _, object := range raw {
		if depth == 0 && !w.countItems(object) || !w.tokens(object, strings.HasSuffix(kind.Kind, "List")) {
			return false
		}
		if n != nil && !w.message(object, n, depth+1) {
			return false
		}
	}
	return true
}

func readKind(data []byte, into *schema.GroupVersionKind) bool {
	f := fields{data: data}
	for f.next() {
		switch f.number {
		case typeMetaAPIVersion:
			gv, err := schema.ParseGroupVersion(string(f.content))
			if err != nil {
				return false
			}
			into.Group, into.Version = gv.Group, gv.Version
		case typeMetaKind:
			into.Kind = string(f.content)
		}
	}
	return !f.bad
}

// countItems counts what would be the objects of a list; in an object the same number represents its one spec.
func (w *protoWalker) countItems(data []byte) bool {
	f := fields{data: data}
	for f.next() {
		if f.number == listItems && !w.count() {
			return false
		}
	}
	return !f.bad
}

// tokens looks at the texts of the metadata of an object, or of a list and of the objects in it. Kinds without metadata, such as those of
// discovery, have short names in its place.
func (w *protoWalker) tokens(object []byte, list bool) bool {
	if w.limits.Token == 0 {
		return true
	}
	f := fields{data: object}
	for f.next() {
		switch {
		case f.number == objectMeta:
			meta := fields{data: f.content}
			for meta.next() {
				if meta.number <= lastToken && !w.short(meta.content) {
					return false
				}
			}
		case list && f.number == listItems && !w.tokens(f.content, false):
			return false
		}
	}
	return true
}

// extension goes through a runtime.RawExtension, whose object is protobuf with an envelope, or JSON.
func (w *protoWalker) extension(data []byte, depth int) bool {
	f := fields{data: data}
	for f.next() {
		if f.number != extensionRaw {
			continue
		}
		if object, ok := bytes.CutPrefix(f.content, envelope); ok {
			if !w.unknown(object, depth+1) {
				return false
			}
		} else if trimmed := bytes.TrimSpace(f.content); len(trimmed) > 0 && trimmed[0] == '{' {
			if w.err = w.paths.JSON(f.content, w.limits); w.err != nil {
				return false
			}
		}
	}
	return !f.bad
}

// message goes through a message.
func (w *protoWalker) message(data []byte, n *node, depth int) bool {
	if depth > maxNested {
		return w.tooDeep()
	}
	f := fields{data: data}
	for f.next() {
		child := n.numbered(f.number)
		if child == nil {
			continue
		}
		if target := n.target(child); target > 0 && !w.spend(target) || child.leads && !w.field(&f, child, depth+1) {
			return false
		}
	}
	return !f.bad
}

func (n *node) numbered(number int32) *node {
	if int(number) < len(n.numbers) {
		return n.numbers[number]
	}
	return nil
}

// field goes through one occurrence of a field: a message, an element of a repeated one, or an entry of a map. Numbers that
// are repeated stand one by one or packed.
func (w *protoWalker) field(f *fields, n *node, depth int) bool {
	switch {
	case n.element != nil && f.wire != wireBytes:
		return w.spend(n.element.size)
	case f.wire != wireBytes:
		return true
	case n.element != nil && n.element.packed > 0:
		return w.spend(len(f.content) / n.element.packed * n.element.size)
	case n.element != nil:
		return w.spend(n.element.size) && (!n.element.leads || w.content(f.content, n.element, depth))
	case n.value != nil:
		return w.spend(entrySize(n)) && w.entry(f.content, n.value, depth)
	}
	return w.content(f.content, n, depth)
}

func (w *protoWalker) entry(data []byte, value *node, depth int) bool {
	f := fields{data: data}
	for f.next() {
		if f.number == entryValue && value.leads && !w.field(&f, value, depth+1) {
			return false
		}
	}
	return !f.bad
}

func (w *protoWalker) content(data []byte, n *node, depth int) bool {
	switch {
	case n.quantity:
		f := fields{data: data}
		for f.next() {
			if f.number == quantityText && f.wire == wireBytes {
				Clamp(f.content)
			}
		}
		return !f.bad
	case n.extended:
		return w.extension(data, depth)
	case n.element != nil || n.value != nil:
		return true // bytes, or a message around a list of texts
	}
	return w.message(data, n, depth)
}

// Wire types of protobuf.
const (
	wireVarint = 0
	wire64     = 1
	wireBytes  = 2
	wireGroup  = 3
	wireEnd    = 4
	wire32     = 5
)

// fields goes through the fields of a message exactly as the decoders do that Kubernetes generates.
type fields struct {
	data    []byte
	at      int
	number  int32
	wire    int
	content []byte // of wireBytes
	bad     bool
}

func (f *fields) fail() bool {
	f.bad, f.at = true, len(f.data)
	return false
}

// next goes to the next field.
func (f *fields) next() bool {
	if f.at >= len(f.data) {
		return false
	}
	tag, ok := f.varint()
	f.number, f.wire, f.content = int32(tag>>3), int(tag&7), nil // the number is cut, as in generated code
	if !ok || f.number <= 0 || f.wire == wireEnd {
		return f.fail()
	}
	return f.skip(0)
}

// skip goes past the value of a field.
func (f *fields) skip(depth int) bool {
	switch f.wire {
	case wireVarint:
		if _, ok := f.varint(); !ok {
			return f.fail()
		}
		return true
	case wire64:
		return f.take(8)
	case wire32:
		return f.take(4)
	case wireBytes:
		length, ok := f.varint()
		if !ok || length > uint64(len(f.data)) {
			return f.fail()
		}
		start := f.at
		if !f.take(int(length)) {
			return false
		}
		f.content = f.data[start:f.at]
		return true
	case wireGroup:
		return f.group(depth)
	}
	return f.fail()
}

// group goes past a group, which Kubernetes' messages have none of.
func (f *fields) group(depth int) bool {
	if depth > 64 {
		return f.fail()
	}
	number := f.number
	for {
		tag, ok := f.varint()
		if !ok {
			return f.fail()
		}
		if f.wire = int(tag & 7); f.wire == wireEnd {
			f.number, f.wire, f.content = number, wireGroup, nil
			return true
		}
		if !f.skip(depth + 1) {
			return false
		}
	}
}

func (f *fields) take(n int) bool {
	if n > len(f.data)-f.at {
		return f.fail()
	}
	f.at += n
	return true
}

func (f *fields) varint() (value uint64, ok bool) {
	for shift := uint(0); shift < 64 && f.at < len(f.data); shift += 7 {
		b := f.data[f.at]
		f.at++
		value |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return value, true
		}
	}
	return 0, false
}
