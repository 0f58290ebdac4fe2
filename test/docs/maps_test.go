package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// wholeMaps is where the doc.go of every package names every file. The maps of others name where to begin.
var wholeMaps = regexp.MustCompile(`^(clusters|hub|internal|reconcile|webhook|cmd/plimsoll/internal/(connection|enroll|hubapi)|test/kube/proc)(/|$)`)

// notMapped are generated.
var notMapped = regexp.MustCompile(`^zz_generated`)

var fileName = regexp.MustCompile(`[a-z0-9_./*]+\.go\b`)

// packageFiles are the Go files of every package that has a doc.go, by its path.
func packageFiles(t *testing.T) map[string][]string {
	t.Helper()
	packages := goFiles(t)
	maps.DeleteFunc(packages, func(_ string, files []string) bool { return !slices.Contains(files, "doc.go") })
	return packages
}

// goFiles are the Go files of every package, by its path.
func goFiles(t *testing.T) map[string][]string {
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

// maxFiles is how many files a package may have without its tests: more have no order that a reader finds.
const maxFiles = 39

func TestNoPackageIsTooWide(t *testing.T) {
	for dir, files := range goFiles(t) {
		if count := len(withoutTests(files)); count > maxFiles {
			t.Errorf("%s has %d files, at most %d may be in one package", dir, count, maxFiles)
		}
	}
}

// withoutTests leaves out tests and what is generated.
func withoutTests(files []string) []string {
	return slices.DeleteFunc(slices.Clone(files), func(name string) bool { return strings.HasSuffix(name, "_test.go") || notMapped.MatchString(name) })
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

func TestPackagesOfSeveralFilesHaveAMap(t *testing.T) {
	for dir, files := range goFiles(t) {
		if wholeMaps.MatchString(dir) && len(withoutTests(files)) > 1 && !slices.Contains(files, "doc.go") {
			t.Errorf("%s has no doc.go that names its files", dir)
		}
	}
}

func TestAMapNamesEveryFile(t *testing.T) {
	packages := packageFiles(t)
	mapped := 0
	for dir, files := range packages {
		if !wholeMaps.MatchString(dir) {
			continue
		}
		mapped++
		named := mapOf(t, dir)
		for _, name := range withoutTests(files) {
			// Files for one operating system go with the file that they are a part of, and so does their doc.go.
			base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, ".go"), "_linux"), "_other") + ".go"
			if name != "doc.go" && !slices.Contains(named, name) && !slices.Contains(named, base) {
				t.Errorf("%s/doc.go does not name %s", dir, name)
			}
		}
	}
	if mapped < 50 {
		t.Errorf("only %d packages have a whole map: this looks in the wrong place", mapped)
	}
}
