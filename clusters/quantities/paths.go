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
	quantity bool
	extended bool             // a runtime.RawExtension: any object
	names    map[string]*node // of JSON fields
	numbers  []*node          // of protobuf fields, by their number
	element  *node            // of arrays
	value    *node            // of maps
	leads    bool             // to a quantity, or to an array or map
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
	case reflect.PointerTo(of).Implements(unmarshaler): // it decodes itself, and no other such type has a quantity in it
	case of.Kind() == reflect.Struct:
		n.names = map[string]*node{}
		b.fields(n, of, false)
	case of.Kind() == reflect.Slice, of.Kind() == reflect.Array:
		n.element = b.node(of.Elem())
	case of.Kind() == reflect.Map:
		n.value = b.node(of.Elem())
	}
	return n
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
			if !n.leads && (n.quantity || n.extended || n.element != nil || n.value != nil || slices.ContainsFunc(n.children(), (*node).leading)) {
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
	return append(all, n.numbers...)
}

// state is a place in a JSON text of which the kind is not known: all nodes that it may be.
type state struct {
	quantity bool
	names    map[string]*state // of fields
	folded   map[string]*state // the same, with the names in lower case
	element  *state            // nil: of no interest
	value    *state            // of a map's entries, for keys that are not in names

	elementSize, entrySize int // bytes that an element, or an entry, takes in memory
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
	s := &state{names: map[string]*state{}, folded: map[string]*state{}}
	d.known[string(key)] = s
	names := map[string][]*node{}
	var elements, values []*node
	for _, n := range nodes {
		s.quantity = s.quantity || n.quantity
		elements, values = append(elements, n.element), append(values, n.value)
		if n.element != nil {
			s.elementSize = max(s.elementSize, n.element.size)
		}
		if n.value != nil {
			s.entrySize = max(s.entrySize, entrySize(n))
		}
		for name, child := range n.names {
			if child.leads {
				names[name] = append(names[name], child)
			}
		}
	}
	s.element, s.value = d.state(elements), d.state(values)
	for name, children := range names {
		s.names[name] = d.state(append(children, values...))
		s.folded[strings.ToLower(name)] = s.names[name]
	}
	return s
}

// entrySize is what an entry of a map takes: its key, its value, and the map's own part.
func entrySize(n *node) int { return stringSize + n.value.size + 8 }

const stringSize = 16

// expand puts the kinds of the scheme in the place of extensions, and the nodes in order.
func (d *determiner) expand(nodes []*node) []*node {
	var all []*node
	for _, n := range nodes {
		switch {
		case n.leading() && n.extended:
			all = append(all, d.roots...)
		case n.leading():
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(a, b *node) int { return a.id - b.id })
	return slices.Compact(all)
}
