package lists

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
)

// maxMaskPaths bounds what a read_mask costs.
const maxMaskPaths = 64

// mask is a tree of the fields that an answer shows; an empty one shows all.
type mask map[protoreflect.Name]mask

// parseMask reads a read_mask. Fields have the names of the .proto files, or those of JSON.
func parseMask(asked *fieldmaskpb.FieldMask, resource protoreflect.MessageDescriptor) (mask, error) {
	if len(asked.GetPaths()) > maxMaskPaths {
		return nil, apierror.InvalidField("read_mask", "read_mask.many", fmt.Sprintf("must have at most %d fields", maxMaskPaths))
	}
	shown := mask{}
	for _, path := range asked.GetPaths() {
		names, err := maskPath(path, resource)
		if err != nil {
			return nil, err
		}
		shown.add(names)
	}
	return shown, nil
}

// maskPath finds the fields of a path.
func maskPath(path string, in protoreflect.MessageDescriptor) (names []protoreflect.Name, err error) {
	resource := in
	for part := range strings.SplitSeq(path, ".") {
		var field protoreflect.FieldDescriptor
		if in != nil {
			if field = in.Fields().ByName(protoreflect.Name(part)); field == nil {
				field = in.Fields().ByJSONName(part)
			}
		}
		if field == nil {
			return nil, apierror.InvalidField("read_mask", "read_mask.field", fmt.Sprintf("%s has no field %q", resource.Name(), path))
		}
		names, in = append(names, field.Name()), field.Message()
	}
	return names, nil
}

// add shows a field, with all that is in it.
func (m mask) add(path []protoreflect.Name) {
	below, known := m[path[0]]
	switch {
	case known && len(below) == 0: // all of it is shown already
	case len(path) == 1:
		m[path[0]] = mask{}
	default:
		if !known {
			below = mask{}
			m[path[0]] = below
		}
		below.add(path[1:])
	}
}

// prune clears what is not shown.
func (m mask) prune(message protoreflect.Message) {
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		below, shown := m[field.Name()]
		switch {
		case !shown:
			message.Clear(field)
		case len(below) == 0 || field.Message() == nil || field.IsMap():
		case field.IsList():
			for i := range value.List().Len() {
				below.prune(value.List().Get(i).Message())
			}
		default:
			below.prune(value.Message())
		}
		return true
	})
}

// Masked leaves out of an answer what the read_mask of the request does not name. What it is about is the first field of answers.
func Masked(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	asks, ok := request.(interface{ GetReadMask() *fieldmaskpb.FieldMask })
	if !ok || len(asks.GetReadMask().GetPaths()) == 0 {
		return next(ctx, request)
	}
	resource := resourceOf(info.FullMethod)
	if resource == nil {
		return nil, apierror.Internal()
	}
	shown, err := parseMask(asks.GetReadMask(), resource.Message())
	if err != nil {
		return nil, err
	}
	answer, err := next(ctx, request)
	message, is := answer.(proto.Message)
	if err != nil || !is {
		return answer, err
	}
	m := message.ProtoReflect()
	if resource.IsList() {
		for items, i := m.Get(resource).List(), 0; i < items.Len(); i++ {
			shown.prune(items.Get(i).Message())
		}
	} else if m.Has(resource) {
		shown.prune(m.Get(resource).Message())
	}
	return answer, nil
}

// resourceOf is the field of a method's answers that holds what they are about; nil: there is no such method.
func resourceOf(method string) protoreflect.FieldDescriptor {
	service, name, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	if err != nil {
		return nil
	}
	described, ok := found.(protoreflect.ServiceDescriptor)
	if !ok || described.Methods().ByName(protoreflect.Name(name)) == nil {
		return nil
	}
	field := described.Methods().ByName(protoreflect.Name(name)).Output().Fields().ByNumber(1)
	if field == nil || field.Message() == nil {
		return nil
	}
	return field
}
