package lists

import (
	"cmp"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
)

// maxOrderKeys is how many fields a list can be ordered by.
const maxOrderKeys = 4

// Order is what a list is ordered by before its names; empty: nothing.
type Order []orderKey

// orderKey is one field, of the resource or of a message in it.
type orderKey struct {
	path []protoreflect.FieldDescriptor
	desc bool
}

// ParseOrder reads the order_by of a request for resources of a kind.
func ParseOrder(text string, resource protoreflect.MessageDescriptor) (Order, error) {
	if text == "" {
		return nil, nil
	}
	var keys Order
	column := 1
	for part := range strings.SplitSeq(text, ",") {
		words := strings.Fields(part)
		at := column + len(part) - len(strings.TrimLeft(part, " "))
		column += len(part) + 1
		if len(words) == 0 || len(words) > 2 || len(words) == 2 && words[1] != "desc" && words[1] != "asc" {
			return nil, errOrder(at, `must be a field, and may have "desc" behind it`)
		}
		path, err := orderPath(words[0], resource)
		if err != nil {
			return nil, errOrder(at, err.Error())
		}
		if keys = append(keys, orderKey{path, len(words) == 2 && words[1] == "desc"}); len(keys) > maxOrderKeys {
			return nil, errOrder(at, fmt.Sprintf("must have at most %d fields", maxOrderKeys))
		}
	}
	return keys, nil
}

func errOrder(column int, description string) error {
	return apierror.InvalidField("order_by", "order_by.invalid", fmt.Sprintf("column %d: %s", column, description))
}

// orderPath finds a field by its name, as in key.namespace.
func orderPath(name string, in protoreflect.MessageDescriptor) (path []protoreflect.FieldDescriptor, err error) {
	parts := strings.Split(name, ".")
	for i, part := range parts {
		field := in.Fields().ByName(protoreflect.Name(part))
		if field == nil {
			return nil, fmt.Errorf("%s has no field %q", in.Name(), part)
		}
		path = append(path, field)
		switch last := i == len(parts)-1; {
		case last && !ordered(field), !last && (field.Message() == nil || field.IsList() || field.IsMap()):
			return nil, fmt.Errorf("field %q of %s cannot be ordered by", part, in.Name())
		case !last:
			in = field.Message()
		}
	}
	return path, nil
}

// ordered reports whether the values of a field have an order.
func ordered(field protoreflect.FieldDescriptor) bool {
	if field.IsList() || field.IsMap() {
		return false
	}
	switch field.Kind() {
	case protoreflect.StringKind, protoreflect.BoolKind, protoreflect.EnumKind, protoreflect.Int32Kind, protoreflect.Int64Kind:
		return true
	case protoreflect.MessageKind:
		switch field.Message().FullName() {
		case (&timestamppb.Timestamp{}).ProtoReflect().Descriptor().FullName(), (&durationpb.Duration{}).ProtoReflect().Descriptor().FullName():
			return true
		}
	}
	return false
}

// Rank is where an item is in the order: for each key a text that sorts as its value does.
func (o Order) Rank(item proto.Message) []string {
	rank := make([]string, 0, len(o))
	for _, key := range o {
		rank = append(rank, key.value(item.ProtoReflect()))
	}
	return rank
}

// value of a key as text; "", which is before all others, when it is not set.
func (k orderKey) value(in protoreflect.Message) string {
	for _, field := range k.path[:len(k.path)-1] {
		in = in.Get(field).Message() // one that is not set is empty
	}
	field := k.path[len(k.path)-1]
	if field.HasPresence() && !in.Has(field) {
		return ""
	}
	switch value := in.Get(field); field.Kind() {
	case protoreflect.StringKind:
		return value.String()
	case protoreflect.BoolKind:
		return sortable(int64(map[bool]int{true: 1}[value.Bool()]))
	case protoreflect.EnumKind:
		return sortable(int64(value.Enum()))
	case protoreflect.MessageKind: // of times and durations, seconds and nanoseconds
		fields, of := value.Message(), field.Message().Fields()
		return sortable(fields.Get(of.ByNumber(1)).Int()) + sortable(fields.Get(of.ByNumber(2)).Int())
	default:
		return sortable(value.Int())
	}
}

// sortable writes a number so that text sorts as numbers do.
func sortable(n int64) string { return fmt.Sprintf("%016x", uint64(n)^1<<63) }

// Compare reports which of two places is first; what is behind the ranks is the name.
func (o Order) Compare(a, b Position) int {
	for i := range min(len(a), len(b)) {
		by := cmp.Compare(a[i], b[i])
		if i < len(o) && o[i].desc {
			by = -by
		}
		if by != 0 {
			return by
		}
	}
	return 0
}
