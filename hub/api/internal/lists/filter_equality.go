package lists

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// costlyComparisons finds comparisons of which nobody knows beforehand how much they walk through. CEL counts a comparison of two messages
// as one unit however large they are, and one of two lists as a tenth of their length whatever is in them: lists of lists, each with the one
// before it twice, double what a comparison costs with each step. That it costs too much would show after it has been computed.
func costlyComparisons(tree *ast.AST) (mistakes []*common.Error) {
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind || len(e.AsCall().Args()) != 2 {
			return
		}
		args := e.AsCall().Args()
		a, b := tree.GetType(args[0].ID()), tree.GetType(args[1].ID())
		cheap, sign := true, ""
		switch e.AsCall().FunctionName() {
		case operators.Equals:
			cheap, sign = simple(tree, args[0]) || simple(tree, args[1]), "=="
		case operators.NotEquals:
			cheap, sign = simple(tree, args[0]) || simple(tree, args[1]), "!="
		case operators.In:
			cheap, sign = scalar(a) || ofScalars(b) || simple(tree, args[1]), "in"
		}
		if !cheap {
			mistakes = append(mistakes, &common.Error{
				Location: tree.SourceInfo().GetStartLocation(e.ID()), ExprID: e.ID(),
				Message: fmt.Sprintf("%q between %s and %s: one side must be a single value, such as a string or a number, or a list or map that is written out with such: compare their fields, or use has(…)",
					sign, cel.FormatCELType(a), cel.FormatCELType(b)),
			})
		}
	}))
	return mistakes
}

// simple reports whether comparing an expression with anything costs no more than the expression is long: a single value or null, or a list or map
// that is written out with such values. The type of null alone says nothing: a condition with a message in one of its branches may have it.
func simple(tree *ast.AST, e ast.Expr) bool {
	switch e.Kind() {
	case ast.ListKind:
		for _, element := range e.AsList().Elements() {
			if !simple(tree, element) {
				return false
			}
		}
		return true
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			if !simple(tree, entry.AsMapEntry().Value()) {
				return false
			}
		}
		return true
	}
	return e.Kind() == ast.LiteralKind || scalar(tree.GetType(e.ID()))
}

// scalar reports whether the values of a type have no parts.
func scalar(t *types.Type) bool {
	switch t.Kind() {
	case types.BoolKind, types.IntKind, types.UintKind, types.DoubleKind, types.StringKind, types.BytesKind, types.TimestampKind, types.DurationKind, types.TypeKind:
		return true
	}
	return false
}

// ofScalars reports whether a type is a list or map in which values without parts are looked up.
func ofScalars(t *types.Type) bool {
	return (t.Kind() == types.ListKind || t.Kind() == types.MapKind) && scalar(t.Parameters()[0])
}

// chargeJoined has lists that are joined cost the length of the shorter one, so that none gets longer than what was paid for and what the
// resource has. CEL counts one unit, with which the length of a list could double: what goes through such a list is counted after that. Macros such
// as map join a list with one element at a time.
var chargeJoined = cel.CostTrackerOptions(interpreter.OverloadCostTracker(overloads.AddList, func(args []ref.Val, _ ref.Val) *uint64 {
	cost := 1 + min(length(args[0]), length(args[1]))
	return &cost
}))

// length of a list.
func length(list ref.Val) uint64 {
	if sized, ok := list.(traits.Sizer); ok {
		return uint64(sized.Size().(types.Int))
	}
	return 0
}
