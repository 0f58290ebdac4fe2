package docs

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/go/packages"
)

const module = "github.com/plimsoll-dev/plimsoll/"

// source is the code that runs in a hub, and the CLI's, with types; tests are left out.
type source struct {
	*testing.T
	packages []*packages.Package
	comments map[token.Pos]string // of constants, by the position of their names
	sites    map[types.Object][]site
}

// site is a call, in the function that it is made in.
type site struct {
	in   *packages.Package
	call *ast.CallExpr
	// within are the declarations and literals of functions around it, the innermost last.
	within []ast.Node
}

var load = sync.OnceValues(func() ([]*packages.Package, error) {
	mode := packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports
	return packages.Load(&packages.Config{Dir: filepath.FromSlash(root), Mode: mode},
		"./clusters/...", "./hub/...", "./reconcile/...", "./webhook/...", "./cmd/...")
})

func readSource(t *testing.T) *source {
	t.Helper()
	all, err := load()
	if err != nil {
		t.Fatal(err)
	}
	s := &source{T: t, packages: all, comments: map[token.Pos]string{}, sites: map[types.Object][]site{}}
	for _, in := range all {
		for _, problem := range in.Errors {
			t.Fatal(problem)
		}
		for _, file := range in.Syntax {
			s.read(in, file)
		}
	}
	if len(all) < 60 {
		t.Fatalf("%d packages: this looks in the wrong place", len(all))
	}
	return s
}

// read notes the calls of a file by what is called, and the comments of its constants.
func (s *source) read(in *packages.Package, file *ast.File) {
	var around []ast.Node
	ast.Inspect(file, func(node ast.Node) bool {
		if node == nil {
			around = around[:len(around)-1]
			return true
		}
		around = append(around, node)
		switch node := node.(type) {
		case *ast.ValueSpec:
			for _, name := range node.Names {
				s.comments[name.Pos()] = strings.Join(strings.Fields(node.Doc.Text()+" "+node.Comment.Text()), " ")
			}
		case *ast.CallExpr:
			if called := calledBy(in, node); called != nil {
				s.sites[called] = append(s.sites[called], site{in, node, functions(around)})
			}
		}
		return true
	})
}

// functions are those of some nodes that are functions.
func functions(nodes []ast.Node) []ast.Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(node ast.Node) bool {
		switch node.(type) {
		case *ast.FuncDecl, *ast.FuncLit:
			return false
		}
		return true
	})
}

// calledBy is the function, method or variable that a call calls; nil for others, such as conversions.
func calledBy(in *packages.Package, call *ast.CallExpr) types.Object {
	switch called := ast.Unparen(call.Fun).(type) {
	case *ast.Ident:
		return in.TypesInfo.Uses[called]
	case *ast.SelectorExpr:
		return in.TypesInfo.Uses[called.Sel]
	}
	return nil
}

// function is the object of a package's function, or of a type's method.
func (s *source) function(path, name string) types.Object {
	s.Helper()
	owner, method, isMethod := strings.Cut(name, ".")
	for _, in := range s.packages {
		from := in.Types
		if in.PkgPath != path {
			if i := slices.IndexFunc(in.Types.Imports(), func(p *types.Package) bool { return p.Path() == path }); i >= 0 {
				from = in.Types.Imports()[i]
			} else {
				continue
			}
		}
		found := from.Scope().Lookup(owner)
		if found != nil && isMethod {
			found, _, _ = types.LookupFieldOrMethod(found.Type(), true, from, method)
		}
		if found != nil {
			return found
		}
	}
	s.Fatalf("%s has no %s", path, name)
	return nil
}

// callsOf are the calls of a function. It is compared by its full name: each package has its own copy of those that it imports.
func (s *source) callsOf(function types.Object) (calls []site) {
	name := fullName(function)
	for called, sites := range s.sites {
		if called == function || name != "" && fullName(called) == name {
			calls = append(calls, sites...)
		}
	}
	return calls
}

// fullName is the name of a function with its package and type; empty for variables.
func fullName(object types.Object) string {
	if function, is := object.(*types.Func); is {
		return function.FullName()
	}
	return ""
}

// textOf is the value of a constant text. The names of metrics are put together by a function of Prometheus' package.
func textOf(in *packages.Package, expression ast.Expr) (string, bool) {
	if value := in.TypesInfo.Types[expression].Value; value != nil && value.Kind() == constant.String {
		return constant.StringVal(value), true
	}
	call, isCall := expression.(*ast.CallExpr)
	if isCall && fullName(calledBy(in, call)) == "github.com/prometheus/client_golang/prometheus.BuildFQName" {
		var parts []string
		for _, part := range call.Args {
			text, known := textOf(in, part)
			if !known {
				return "", false
			}
			if text != "" {
				parts = append(parts, text)
			}
		}
		return strings.Join(parts, "_"), true
	}
	return "", false
}

// parameter finds the parameter of a function around a call that an expression is: the function, as it is called, and the parameter's index.
func (s *source) parameter(at site, expression ast.Expr) (function types.Object, index int, found bool) {
	name, isName := ast.Unparen(expression).(*ast.Ident)
	if !isName {
		return nil, 0, false
	}
	is := at.in.TypesInfo.Uses[name]
	for _, around := range at.within {
		var of *types.Signature
		switch around := around.(type) {
		case *ast.FuncDecl:
			function = at.in.TypesInfo.Defs[around.Name]
			of = function.Type().(*types.Signature)
		case *ast.FuncLit:
			function = s.variableOf(at.in, around)
			of = at.in.TypesInfo.Types[around].Type.(*types.Signature)
		}
		for i := range of.Params().Len() {
			if of.Params().At(i) == is && function != nil {
				return function, i, true
			}
		}
	}
	return nil, 0, false
}

// variableOf is the variable that a function literal is assigned to.
func (s *source) variableOf(in *packages.Package, literal *ast.FuncLit) (variable types.Object) {
	for _, file := range in.Syntax {
		ast.Inspect(file, func(node ast.Node) bool {
			if assigned, is := node.(*ast.AssignStmt); is && len(assigned.Lhs) == 1 && assigned.Rhs[0] == ast.Expr(literal) {
				variable = in.TypesInfo.Defs[assigned.Lhs[0].(*ast.Ident)]
			}
			return true
		})
	}
	return variable
}

// where names a place in the code.
func (s *source) where(in *packages.Package, node ast.Node) string {
	position := in.Fset.Position(node.Pos())
	path, err := filepath.Abs(root)
	if err != nil {
		s.Fatal(err)
	}
	position.Filename = strings.TrimPrefix(filepath.ToSlash(strings.TrimPrefix(position.Filename, path)), "/")
	return position.String()
}
