package lists

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// enumsAsText has filters see enumerations as people write them: the name without its prefix, and "" where nothing is said.
// In CEL itself they are numbers.
type enumsAsText struct{ *types.Registry }

// FindStructFieldType implements [types.Provider].
func (e enumsAsText) FindStructFieldType(structType, name string) (*types.FieldType, bool) {
	found, ok := e.Registry.FindStructFieldType(structType, name)
	field := enumField(structType, name)
	if !ok || field == nil {
		return found, ok
	}
	words := wordsOf(field.Enum())
	return &types.FieldType{Type: types.StringType, IsSet: found.IsSet, GetFrom: func(target any) (any, error) {
		message, ok := target.(proto.Message)
		if !ok {
			return nil, fmt.Errorf("%s of something that is no %s", name, structType)
		}
		return words[message.ProtoReflect().Get(field).Enum()], nil
	}}, true
}

// enumField is the field of a message that holds one value of an enumeration; nil: there is no such field.
func enumField(message, name string) protoreflect.FieldDescriptor {
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(message))
	if err != nil {
		return nil
	}
	described, ok := found.(protoreflect.MessageDescriptor)
	if !ok {
		return nil
	}
	field := described.Fields().ByName(protoreflect.Name(name))
	if field == nil || field.Enum() == nil || field.IsList() || field.IsMap() {
		return nil
	}
	return field
}

// wordsOf are the values of an enumeration without their common prefix.
func wordsOf(enum protoreflect.EnumDescriptor) map[protoreflect.EnumNumber]types.String {
	words, values := map[protoreflect.EnumNumber]types.String{}, enum.Values()
	prefix := strings.TrimSuffix(string(values.ByNumber(0).Name()), "UNSPECIFIED")
	for i := range values.Len() {
		words[values.Get(i).Number()] = types.String(strings.TrimPrefix(string(values.Get(i).Name()), prefix))
	}
	words[0] = ""
	return words
}

// unknownEnumValues finds comparisons of enumerations with text that is none of their values: those would never be true.
func unknownEnumValues(tree *ast.AST) (mistakes []*common.Error) {
	check := func(a, b ast.Expr) {
		if a.Kind() != ast.SelectKind {
			return
		}
		field := enumField(tree.GetType(a.AsSelect().Operand().ID()).TypeName(), a.AsSelect().FieldName())
		if field == nil {
			return
		}
		known := wordsOf(field.Enum())
		for _, text := range literals(b) {
			if !slices.Contains(values(known), text.AsLiteral()) {
				mistakes = append(mistakes, &common.Error{
					Location: tree.SourceInfo().GetStartLocation(text.ID()), ExprID: text.ID(),
					Message: fmt.Sprintf("%v is not a value of %s, which is one of %q", text.AsLiteral().Value(), field.Name(), values(known)),
				})
			}
		}
	}
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind || len(e.AsCall().Args()) != 2 {
			return
		}
		switch args := e.AsCall().Args(); e.AsCall().FunctionName() {
		case operators.Equals, operators.NotEquals:
			check(args[0], args[1])
			check(args[1], args[0])
		case operators.In:
			check(args[0], args[1])
		}
	}))
	return mistakes
}

// literals are the texts in an expression that is one, or a list of some.
func literals(e ast.Expr) []ast.Expr {
	all := []ast.Expr{e}
	if e.Kind() == ast.ListKind {
		all = e.AsList().Elements()
	}
	return slices.DeleteFunc(slices.Clone(all), func(e ast.Expr) bool {
		return e.Kind() != ast.LiteralKind || e.AsLiteral().Type() != types.StringType
	})
}

// values of an enumeration, in the order of their words.
func values(words map[protoreflect.EnumNumber]types.String) []ref.Val {
	sorted := slices.Sorted(maps.Values(words))
	found := make([]ref.Val, 0, len(sorted))
	for _, word := range sorted {
		found = append(found, word)
	}
	return found
}
