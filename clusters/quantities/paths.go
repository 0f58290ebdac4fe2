package quantities

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Paths know where quantities are in the encoded objects of a scheme. They may be used concurrently.
type Paths struct {
	anything *state // any kind of the scheme, as JSON
	kinds    map[schema.GroupVersionKind]*node
}

// node is a Go type that is decoded into.
type node struct {
	id       int
	size     int // bytes of a value in memory, without what it points to
	packed   int // bytes that protobuf needs at least for it where numbers are packed; 0: it is no number
	quantity bool
	extended bool             // a runtime.RawExtension: any object
	names    map[string]*node // of JSON fields
	numbers  []*node          // of protobuf fields, by their number
	targets  map[*node]bool   // those of them, of either, that a pointer leads to
	itself   []*node          // of a struct that decodes its JSON itself: what it may decode it as
	element  *node            // of arrays
	value    *node            // of maps
	leads    bool             // to a quantity, or to memory that the text does not show: of arrays, maps and pointers
}

// NewPaths looks at all types that the scheme knows.
func NewPaths(scheme *runtime.Scheme) *Paths {
	b := &builder{nodes: map[reflect.Type]*node{}}
	s := &Paths{kinds: map[schema.GroupVersionKind]*node{}}
	for kind, of := range scheme.AllKnownTypes() {
		s.kinds[kind] = b.node(of)
	}
	b.mark()
	for kind, n := range s.kinds {
		if !n.leads {
			delete(s.kinds, kind)
		}
	}
	roots := slices.Collect(maps.Values(s.kinds))
	s.anything = (&determiner{roots: roots, known: map[string]*state{}}).state(roots)
	return s
}

// builder creates a graph of nodes from Go types, which may contain themselves.
type builder struct {
	nodes map[reflect.Type]*node
	all   []*node
}

var (
	quantityType  = reflect.TypeFor[resource.Quantity]()
	extensionType = reflect.TypeFor[runtime.RawExtension]()
	unmarshaler   = reflect.TypeFor[json.Unmarshaler]()
)

func (b *builder) node(of reflect.Type) *node {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if n := b.nodes[of]; n != nil {
		return n
	}
	n := &node{id: len(b.all), size: int(of.Size())}
	b.nodes[of] = n
	b.all = append(b.all, n)
	switch {
	case of == quantityType, embedsQuantity(of):
		n.quantity = true
	case of == extensionType:
		n.extended = true
	case of.Kind() == reflect.Struct:
		n.names, n.targets = map[string]*node{}, map[*node]bool{}
		b.fields(n, of, false)
		if reflect.PointerTo(of).Implements(unmarshaler) { // its names are those of protobuf only
			n.itself, n.names = slices.Collect(maps.Values(n.names)), nil
		}
	case of.Kind() == reflect.Slice, of.Kind() == reflect.Array:
		n.element = b.node(of.Elem())
	case of.Kind() == reflect.Map:
		n.value = b.node(of.Elem())
	default:
		n.packed = packedSize(of.Kind())
	}
	return n
}

// packedSize is how many bytes a number or a truth value has at least that protobuf packs with others; 0: it is never packed. Bytes are
// not: a list of them is one text.
func packedSize(kind reflect.Kind) int {
	switch kind {
	case reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint32, reflect.Uint64:
		return 1
	case reflect.Float32:
		return 4
	case reflect.Float64:
		return 8
	}
	return 0
}

// embedsQuantity reports whether a type decodes itself by way of the quantity in it, as that of WebApps does.
func embedsQuantity(of reflect.Type) bool {
	if of.Kind() != reflect.Struct || !reflect.PointerTo(of).Implements(unmarshaler) {
		return false
	}
	for i := range of.NumField() {
		if field := of.Field(i); field.Anonymous && field.Type == quantityType {
			return true
		}
	}
	return false
}

// fields adds the fields of a struct; those of one that JSON inlines have no protobuf numbers of their own in n.
func (b *builder) fields(n *node, of reflect.Type, inlined bool) {
	for i := range of.NumField() {
		field := of.Field(i)
		if !field.IsExported() {
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		child := b.node(field.Type)
		if field.Type.Kind() == reflect.Pointer && field.Type.Elem().Kind() == reflect.Struct {
			n.targets[child] = true
		}
		switch {
		case name == "-":
		case name == "" && field.Anonymous:
			embedded := field.Type
			for embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			if embedded.Kind() == reflect.Struct {
				b.fields(n, embedded, true)
			}
		case name == "":
			n.names[field.Name] = child
		default:
			n.names[name] = child
		}
		if number, ok := protoNumber(field.Tag.Get("protobuf")); ok && !inlined {
			n.numbers = append(n.numbers, make([]*node, max(0, number+1-len(n.numbers)))...)
			n.numbers[number] = child
		}
	}
}

// protoNumber reads a tag such as bytes,3,opt,name=spec.
func protoNumber(tag string) (int, bool) {
	parts := strings.Split(tag, ",")
	if len(parts) < 2 {
		return 0, false
	}
	number, err := strconv.Atoi(parts[1])
	return number, err == nil && number > 0
}

// mark finds out which nodes are worth a look.
func (b *builder) mark() {
	for changed := true; changed; {
		changed = false
		for _, n := range b.all {
			if !n.leads && (n.quantity || n.extended || n.element != nil || n.value != nil || len(n.targets) > 0 || slices.ContainsFunc(n.children(), (*node).leading)) {
				n.leads, changed = true, true
			}
		}
	}
}

func (n *node) leading() bool { return n != nil && n.leads }

func (n *node) children() []*node {
	all := []*node{n.element, n.value}
	for _, child := range n.names {
		all = append(all, child)
	}
	return append(append(all, n.numbers...), n.itself...)
}

// target is how many bytes a pointer to one of its fields leads to; 0: the field is no pointer.
func (n *node) target(field *node) int {
	if n.targets[field] {
		return field.size
	}
	return 0
}

// state is a place in a JSON text of which the kind is not known: all nodes that it may be.
type state struct {
	quantity bool
	itself   bool            // it may be decoded by a type that reads the text again for each thing that it may be,
	made     int             // and that takes so many bytes for it
	names    map[string]lead // of fields
	folded   map[string]lead // the same, with the names in lower case
	element  *state          // nil: of no interest
	value    *state          // of a map's entries, for keys that are not in names

	elementSize, entrySize int // bytes that an element, or an entry, takes in memory
}

// lead is where a field leads to.
type lead struct {
	to     *state // nil: of no interest
	target int    // bytes in memory that a pointer to it takes
}

// determiner makes one state of each set of nodes.
type determiner struct {
	roots []*node
	known map[string]*state
}

func (d *determiner) state(nodes []*node) *state {
	nodes = d.expand(nodes)
	if len(nodes) == 0 {
		return nil
	}
	key := make([]byte, 0, len(nodes)*4)
	for _, n := range nodes {
		key = strconv.AppendInt(append(key, ' '), int64(n.id), 10)
	}
	if s := d.known[string(key)]; s != nil {
		return s
	}
	s := &state{names: map[string]lead{}, folded: map[string]lead{}}
	d.known[string(key)] = s
	names, targets := map[string][]*node{}, map[string]int{}
	var elements, values []*node
	for _, n := range nodes {
		s.quantity, s.itself = s.quantity || n.quantity, s.itself || n.itself != nil
		for _, is := range n.itself {
			s.made = max(s.made, n.target(is))
		}
		elements, values = append(elements, n.element), append(values, n.value)
		if n.element != nil {
			s.elementSize = max(s.elementSize, n.element.size)
		}
		if n.value != nil {
			s.entrySize = max(s.entrySize, entrySize(n))
		}
		for name, child := range n.names {
			if target := n.target(child); child.leads || target > 0 {
				names[name], targets[name] = append(names[name], child), max(targets[name], target)
			}
		}
	}
	s.element, s.value = d.state(elements), d.state(values)
	for name, children := range names {
		s.names[name] = lead{d.state(append(children, values...)), targets[name]}
		s.folded[strings.ToLower(name)] = s.names[name]
	}
	return s
}

// entrySize is what an entry of a map takes: its key, its value, and the map's own part.
func entrySize(n *node) int { return stringSize + n.value.size + 8 }

const stringSize = 16

// expand puts the kinds of the scheme in the place of extensions, beside what decodes itself what that may be, and the nodes in order.
func (d *determiner) expand(nodes []*node) []*node {
	var all []*node
	for _, n := range nodes {
		switch {
		case n.leading() && n.extended:
			all = append(all, d.roots...)
		case n.leading():
			all = append(append(all, n), d.expand(n.itself)...)
		}
	}
	slices.SortFunc(all, func(a, b *node) int { return a.id - b.id })
	return slices.Compact(all)
}
