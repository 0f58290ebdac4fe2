package docs

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// happening is an Event that the code records: its reason is a constant, whose comment says what it means.
type happening struct {
	reason, kind, in, comment string
}

// recorder is a function that records Events, with the places of type and reason among its arguments; is: its type, where it is for one.
type recorder struct {
	function     types.Object
	kind, reason int
	is           string
}

// recorders are that of client-go, and the methods of package reconcile's interface, which other packages declare as well. Functions
// that get a reason as a parameter are found.
func (s *source) recorders() []recorder {
	all := []recorder{{s.function("k8s.io/client-go/tools/events", "EventRecorder.Eventf"), 2, 3, ""}}
	seen := map[string]bool{}
	for called := range s.sites {
		function, is := called.(*types.Func)
		if !is || function.Name() != "Normal" && function.Name() != "Warning" || seen[function.FullName()] {
			continue
		}
		if params := function.Signature().Params(); params.Len() == 3 && params.At(0).Name() == "reason" && function.Signature().Variadic() {
			seen[function.FullName()] = true
			all = append(all, recorder{function, -1, 0, function.Name()})
		}
	}
	return all
}

// passedOn are reasons that come from the status of a member: those of conditions and states that report a problem.
var passedOn = []string{"clusters now.Reason", "clusters is.Reason"}

// notProblems are the reasons of a member's status that no Event has: of what is fine, under way, or a part of a problem.
var notProblems = []string{"Connecting", "Comparing", "Warming", "Ready", "Unknown", "Proving", "Separate", "NotFound"}

// notRecorded are wrappers that pass on what they are given, and what they are called with is found by another name.
var notRecorded = []string{"hub/adapters.go"}

// recorded are the Events that the code records.
func recorded(s *source) (all []happening) {
	open := s.recorders()
	for len(open) > 0 {
		r := open[0]
		open = open[1:]
		for _, at := range s.callsOf(r.function) {
			where := s.where(at.in, at.call)
			if slices.ContainsFunc(notRecorded, func(file string) bool { return strings.HasPrefix(where, file+":") }) {
				continue
			}
			kind := r.is
			if r.kind >= 0 {
				kind, _ = textOf(at.in, at.call.Args[r.kind])
			}
			if function, reason, wrapped := s.parameter(at, at.call.Args[r.reason]); wrapped {
				ofKind := -1
				if r.kind >= 0 && kind == "" {
					_, ofKind, _ = s.parameter(at, at.call.Args[r.kind])
				}
				open = append(open, recorder{function, ofKind, reason, kind})
				continue
			}
			all = append(all, s.reasons(at.in, at.call.Args[r.reason], kind)...)
		}
	}
	return distinct(all)
}

// reasons are those that an expression may be: a constant, a field of literals, or one of a status.
func (s *source) reasons(in *packages.Package, expression ast.Expr, kind string) (all []happening) {
	path := strings.TrimPrefix(in.PkgPath, module)
	if reason, isConstant := textOf(in, expression); isConstant {
		h := happening{reason: reason, kind: kind, in: path}
		if name := nameOf(expression); name != nil && in.TypesInfo.Uses[name] != nil {
			h.comment = s.commentOf(in.TypesInfo.Uses[name])
		}
		if h.comment == "" {
			s.Errorf("%s: the reason %s is no constant with a comment, which the reference of Events shows", s.where(in, expression), reason)
		}
		return []happening{h}
	}
	selector, isField := expression.(*ast.SelectorExpr)
	if !isField {
		s.Errorf("%s: cannot find which reasons this may be", s.where(in, expression))
		return nil
	}
	if slices.Contains(passedOn, path+" "+types.ExprString(selector)) {
		return s.ofStatus(kind, path)
	}
	if all = s.ofLiterals(in.TypesInfo.Uses[selector.Sel], kind); len(all) == 0 {
		s.Errorf("%s: cannot find which reasons this may be", s.where(in, expression))
	}
	return all
}

// nameOf is the name at the end of an expression.
func nameOf(expression ast.Expr) *ast.Ident {
	switch expression := ast.Unparen(expression).(type) {
	case *ast.Ident:
		return expression
	case *ast.SelectorExpr:
		return expression.Sel
	}
	return nil
}

// commentOf is the comment of a constant of the code. Packages have copies of what they import, at the same place in a file.
func (s *source) commentOf(object types.Object) string {
	if comment := s.comments[object.Pos()]; comment != "" {
		return comment
	}
	for _, in := range s.packages {
		if object.Pkg() != nil && in.PkgPath == object.Pkg().Path() {
			if found := in.Types.Scope().Lookup(object.Name()); found != nil {
				return s.comments[found.Pos()]
			}
		}
	}
	return ""
}

// ofStatus are the reasons of a member's problems.
func (s *source) ofStatus(kind, path string) (all []happening) {
	for _, in := range s.packages {
		if in.PkgPath != module+"clusters" && in.PkgPath != module+"clusters/kubeconfig" {
			continue
		}
		for _, name := range in.Types.Scope().Names() {
			reason, isConstant := in.Types.Scope().Lookup(name).(*types.Const)
			if !isConstant || !strings.HasPrefix(name, "Reason") {
				continue
			}
			if text := constant.StringVal(reason.Val()); !slices.Contains(notProblems, text) {
				all = append(all, happening{text, kind, path, s.comments[reason.Pos()]})
			}
		}
	}
	return all
}

// ofLiterals are the values that composite literals give a field. One with a field Warning has its own type.
func (s *source) ofLiterals(field types.Object, kind string) (all []happening) {
	for _, in := range s.packages {
		for _, file := range in.Syntax {
			ast.Inspect(file, func(node ast.Node) bool {
				literal, is := node.(*ast.CompositeLit)
				if !is || len(literal.Elts) == 0 {
					return true
				}
				structure, is := in.TypesInfo.Types[literal].Type.Underlying().(*types.Struct)
				if !is {
					return true
				}
				set := fieldsOf(literal, structure)
				value := set[field.Name()]
				if value == nil || in.Fset.Position(fieldNamed(structure, field.Name()).Pos()).String() != s.packages[0].Fset.Position(field.Pos()).String() {
					return true
				}
				own := kind
				if warning := set["Warning"]; warning != nil {
					own = "Normal"
					if constant.BoolVal(in.TypesInfo.Types[warning].Value) {
						own = "Warning"
					}
				}
				all = append(all, s.reasons(in, value, own)...)
				return true
			})
		}
	}
	return all
}

func fieldNamed(structure *types.Struct, name string) *types.Var {
	for field := range structure.Fields() {
		if field.Name() == name {
			return field
		}
	}
	return nil
}

// fieldsOf are the values of a literal by the names of the fields.
func fieldsOf(literal *ast.CompositeLit, structure *types.Struct) map[string]ast.Expr {
	set := map[string]ast.Expr{}
	for i, element := range literal.Elts {
		if named, is := element.(*ast.KeyValueExpr); is {
			if name, is := named.Key.(*ast.Ident); is {
				set[name.Name] = named.Value
			}
		} else {
			set[structure.Field(i).Name()] = element
		}
	}
	return set
}

// distinct leaves out what is there twice, and sorts by reason.
func distinct(all []happening) []happening {
	slices.SortFunc(all, func(a, b happening) int {
		return cmp.Or(strings.Compare(a.reason, b.reason), strings.Compare(a.kind, b.kind), strings.Compare(a.in, b.in))
	})
	return slices.Compact(all)
}

// about are the parts of the page, in their order, with the packages that record the Events.
var about = []struct {
	title, intro string
	packages     []string
}{
	{"Workloads", "About the workload, in its namespace in the member. Moves are recorded once for each batch, states when they change.",
		[]string{"reconcile/spot", "reconcile/spot/report"}},
	{"Registrations", "About the registration Secret, in the hub cluster. `plimsoll clusters` shows the same reasons.", []string{"clusters", "hub"}},
	{"FleetPlacements", "About the FleetPlacement, in the hub cluster.", []string{"reconcile/fleet/placing"}},
	{"All objects that are reconciled", "About the object, in the member: of workloads, WebApps and the kinds of your own modules.",
		[]string{"reconcile", "reconcile/internal/apply"}},
	{"What the hub keeps in members", "About the webhook configuration or the definition, in the namespace `default` of the member.",
		[]string{"webhook", "webhook/kinds"}},
}

// sentence is a comment as a sentence: without the constant's name before a colon, and without marks of Go's documentation.
func sentence(comment string) string {
	comment = strings.NewReplacer("[", "", "]", "").Replace(comment)
	if name, rest, named := strings.Cut(comment, ": "); named && strings.HasPrefix(name, "Reason") {
		comment = rest
	}
	return cell(strings.ToUpper(comment[:1]) + strings.TrimSuffix(comment[1:], ".") + ".")
}

func TestTheReferenceOfEvents(t *testing.T) {
	all := recorded(readSource(t))
	if len(all) < 50 {
		t.Fatalf("%d Events: too few are found", len(all))
	}
	var page strings.Builder
	listed := 0
	for _, part := range about {
		fmt.Fprintf(&page, "\n## %s\n\n%s\n\n| reason | type | meaning |\n|---|---|---|\n", part.title, part.intro)
		for i, h := range all {
			if !slices.Contains(part.packages, h.in) {
				continue
			}
			listed++
			if h.comment == "" || h.kind == "" {
				t.Errorf("%s of %s has the type %q and the comment %q", h.reason, h.in, h.kind, h.comment)
				continue
			}
			if i > 0 && all[i-1].reason == h.reason && slices.Contains(part.packages, all[i-1].in) {
				continue // from two places
			}
			fmt.Fprintf(&page, "| `%s` | %s | %s |\n", h.reason, h.kind, sentence(h.comment))
		}
	}
	if listed != len(all) {
		t.Errorf("%d of %d Events are in packages that no part of the page is about", len(all)-listed, len(all))
	}
	page.WriteString("\n")
	holds(t, "events.md", eventsBegin, page.String())
}
