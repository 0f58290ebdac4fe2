package intake

import (
	"reflect"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// entryBytes is what an entry of a cache takes beside the object: its key, in the store and in the indexes.
const entryBytes = 256

// weigh estimates what an object takes in memory: its own bytes, and those of all that it refers to. What a member sends as few bytes may
// take many: an empty container is 2 bytes of protobuf, and several hundred here. What is shared counts each time.
func weigh(object client.Object) uint32 {
	value := reflect.ValueOf(object)
	return uint32(min(entryBytes+shapeOf(value.Type()).beyond(value), 1<<31))
}

// What Go's maps take: a header and, from the first entry on, slots for keys and elements with a byte beside each. There are 8 slots, all
// of which may be taken, or a power of two, of which seven in eight may be; see internal/runtime/maps.
const (
	mapHeader = 48
	mapGroup  = 8
)

// aTime refers to a location, which all times share.
var aTime = reflect.TypeFor[time.Time]()

// shape is what there is to know of a type so that a value's memory is counted without looking at what refers to nothing.
type shape struct {
	kind   reflect.Kind
	flat   bool  // it refers to no other memory
	size   int   // of a value itself
	fields []int // of a struct, those that are not flat
	parts  []*shape
	elem   *shape // of a pointer, a slice, an array or a map
	key    *shape // of a map
}

var (
	shapesMu sync.RWMutex
	shapes   = map[reflect.Type]*shape{}
)

// shapeOf returns the shape of a type, which is worked out once.
func shapeOf(t reflect.Type) *shape {
	shapesMu.RLock()
	s := shapes[t]
	shapesMu.RUnlock()
	if s != nil {
		return s
	}
	shapesMu.Lock()
	defer shapesMu.Unlock()
	return newShape(t)
}

// newShape works a type out, with all types that it consists of. A type that contains itself finds its shape already there, and not yet
// flat. The lock is held.
func newShape(t reflect.Type) *shape {
	if s := shapes[t]; s != nil {
		return s
	}
	s := &shape{kind: t.Kind(), size: int(t.Size())}
	shapes[t] = s
	if t == aTime {
		s.flat = true
		return s
	}
	switch s.kind {
	case reflect.Struct:
		for i := range t.NumField() {
			if part := newShape(t.Field(i).Type); !part.flat {
				s.fields, s.parts = append(s.fields, i), append(s.parts, part)
			}
		}
		s.flat = len(s.fields) == 0
	case reflect.Map:
		s.key, s.elem = newShape(t.Key()), newShape(t.Elem())
	case reflect.Pointer, reflect.Slice:
		s.elem = newShape(t.Elem())
	case reflect.Array:
		s.elem = newShape(t.Elem())
		s.flat = s.elem.flat
	case reflect.String, reflect.Interface, reflect.Func, reflect.Chan, reflect.UnsafePointer:
	default:
		s.flat = true
	}
	return s
}

// beyond is how many bytes a value refers to.
func (s *shape) beyond(v reflect.Value) (bytes int) {
	if s.flat {
		return 0
	}
	switch s.kind {
	case reflect.String:
		return v.Len()
	case reflect.Pointer:
		if !v.IsNil() {
			bytes = s.elem.size + s.elem.beyond(v.Elem())
		}
	case reflect.Interface:
		if !v.IsNil() {
			of := shapeOf(v.Elem().Type())
			bytes = of.size + of.beyond(v.Elem())
		}
	case reflect.Slice:
		return v.Cap()*s.elem.size + s.each(v)
	case reflect.Array:
		return s.each(v)
	case reflect.Map:
		if v.IsNil() {
			return 0
		}
		if v.Len() == 0 {
			return mapHeader
		}
		slots := mapGroup
		for v.Len() > mapGroup && 7*slots/8 < v.Len() {
			slots *= 2
		}
		bytes = mapHeader + slots*(1+s.key.size+s.elem.size)
		if s.key.flat && s.elem.flat {
			return bytes
		}
		if v.CanInterface() {
			if texts, ok := v.Interface().(map[string]string); ok { // labels and annotations, which a MapRange would copy one by one
				for key, value := range texts {
					bytes += len(key) + len(value)
				}
				return bytes
			}
		}
		for entries := v.MapRange(); entries.Next(); {
			bytes += s.key.beyond(entries.Key()) + s.elem.beyond(entries.Value())
		}
	case reflect.Struct:
		for i, field := range s.fields {
			bytes += s.parts[i].beyond(v.Field(field))
		}
	}
	return bytes
}

// each is how many bytes the elements of a list refer to.
func (s *shape) each(v reflect.Value) (bytes int) {
	if s.elem.flat {
		return 0
	}
	for i := range v.Len() {
		bytes += s.elem.beyond(v.Index(i))
	}
	return bytes
}
