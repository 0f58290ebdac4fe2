package spot_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Packages that decide import packages further down only, nothing that calls an API server, and ask for no time: what they are
// given is all that they know.
func TestPackagesThatDecideCallNobodyAndAskForNoTime(t *testing.T) {
	const own, below = "github.com/plimsoll-dev/plimsoll/", "reconcile/spot/"
	for folder, may := range map[string][]string{
		"internal/phrase": {"clusters/plain"},
		"internal/when":   nil,
		"capacity":        {below + "internal/phrase", below + "internal/when"},
		"policy":          {below + "internal/phrase", below + "internal/when", below + "capacity"},
		"plan":            {below + "internal/phrase", below + "internal/when", below + "capacity", below + "policy"},
		"slots":           {below + "internal/phrase", below + "internal/when", below + "capacity", below + "policy", below + "plan"},
		"admission":       {below + "internal/phrase", below + "internal/when", below + "capacity", below + "policy", below + "plan", below + "slots"},
		"shortage":        {"internal/notify", below + "internal/phrase", below + "internal/when", below + "capacity", below + "policy"},
		"report":          {below + "internal/phrase", below + "capacity", below + "policy", below + "plan"}, // shows what was decided
		"../fleet":        nil,
	} {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", folder, len(files), err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range parsed.Imports {
				imported, _ := strconv.Unquote(spec.Path.Value)
				if inside, ok := strings.CutPrefix(imported, own); (ok && !slices.Contains(may, inside)) || callsSomebody(imported) {
					t.Errorf("%s imports %s", file, imported)
				}
			}
			if name := clock(parsed); name != "" {
				t.Errorf("%s uses %s", file, name)
			}
		}
	}
}

// callsSomebody reports whether a package reaches beyond the process, or draws random numbers.
func callsSomebody(path string) bool {
	return slices.ContainsFunc([]string{"k8s.io/client-go", "k8s.io/utils/clock", "k8s.io/apimachinery/pkg/util/wait", "sigs.k8s.io/", "net", "os", "math/rand", "crypto/rand"}, func(prefix string) bool {
		return path == strings.TrimSuffix(prefix, "/") || strings.HasPrefix(path, strings.TrimSuffix(prefix, "/")+"/")
	})
}

// clock returns what depends on the clock and is used, whatever name its package is imported with; empty: nothing.
func clock(file *ast.File) (used string) {
	clocks := map[string][]string{
		"time":                                 {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"},
		"k8s.io/apimachinery/pkg/apis/meta/v1": {"Now", "NowMicro"},
	}
	asks := map[string][]string{} // by the name that the file imports the package with
	for _, spec := range file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		name := path.Base(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		asks[name] = clocks[imported]
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			if of, ok := selector.X.(*ast.Ident); ok && slices.Contains(asks[of.Name], selector.Sel.Name) {
				used = of.Name + "." + selector.Sel.Name
			}
		}
		return used == ""
	})
	return used
}
