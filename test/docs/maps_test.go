package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// wholeMaps are the packages whose doc.go names every file. The maps of others name where to begin.
var wholeMaps = []string{
	"clusters", "clusters/internal/caching", "clusters/internal/intake", "clusters/internal/sample", "clusters/kubeconfig", "clusters/paging", "hub", "hub/api/auth", "hub/api/internal/cache", "hub/api/internal/limits", "hub/config", "hub/leadership", "hub/pki", "internal/notify",
	"reconcile", "reconcile/internal/apply", "reconcile/internal/depend", "reconcile/internal/events", "reconcile/internal/members",
	"reconcile/internal/object", "reconcile/internal/retry", "reconcile/internal/stream", "reconcile/module", "reconcile/reconciletest", "reconcile/spot", "reconcile/spot/capacity", "reconcile/spot/internal/phrase",
	"reconcile/spot/admission", "reconcile/spot/internal/when", "reconcile/spot/nodes", "reconcile/spot/plan", "reconcile/spot/policy", "reconcile/spot/report", "reconcile/spot/shortage", "reconcile/spot/sim", "reconcile/spot/slots", "reconcile/webapp", "test/kube/proc", "webhook", "webhook/internal/calls", "webhook/internal/jsonscan", "webhook/kinds",
}

var fileName = regexp.MustCompile(`[a-z0-9_./*]+\.go\b`)

// packageFiles are the Go files of every package of the module that has a doc.go, by its path.
func packageFiles(t *testing.T) map[string][]string {
	t.Helper()
	packages := map[string][]string{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch relative := filepath.ToSlash(strings.TrimPrefix(name, root)); {
		case err != nil:
			return err
		case entry.IsDir() && (path.Base(relative) == "build" || path.Base(relative) == "testdata"):
			return filepath.SkipDir
		case strings.HasSuffix(relative, ".go"):
			dir := strings.TrimPrefix(path.Dir(relative), "/")
			packages[dir] = append(packages[dir], path.Base(relative))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir, files := range packages {
		if !slices.Contains(files, "doc.go") {
			delete(packages, dir)
		}
	}
	return packages
}

// mapOf are the files that the doc.go of a package names.
func mapOf(t *testing.T, dir string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, dir, "doc.go"), nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	names := fileName.FindAllString(file.Doc.Text(), -1)
	return slices.DeleteFunc(names, func(name string) bool { return strings.Contains(name, "*") || name[0] == '.' })
}

func TestWhatAMapNamesIsThere(t *testing.T) {
	packages := packageFiles(t)
	if len(packages) < 20 {
		t.Fatalf("only %d packages have a doc.go: this looks in the wrong place", len(packages))
	}
	for dir, files := range packages {
		for _, name := range mapOf(t, dir) {
			// A name with a folder is another package's: from the root, or from here.
			in, base := path.Split(name)
			from := func(folder string) bool { return slices.Contains(packages[path.Join(folder, in)], base) }
			if in == "" && !slices.Contains(files, base) || in != "" && !from("") && !from(dir) {
				t.Errorf("%s/doc.go names %s, which is not there", dir, name)
			}
		}
	}
}

func TestAMapNamesEveryFile(t *testing.T) {
	packages := packageFiles(t)
	for _, dir := range wholeMaps {
		named := mapOf(t, dir)
		for _, name := range packages[dir] {
			// Files for one operating system go with the file that they are a part of, and so does their doc.go.
			base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, ".go"), "_linux"), "_other") + ".go"
			if name != "doc.go" && !strings.HasSuffix(name, "_test.go") && !slices.Contains(named, name) && !slices.Contains(named, base) {
				t.Errorf("%s/doc.go does not name %s", dir, name)
			}
		}
	}
}
