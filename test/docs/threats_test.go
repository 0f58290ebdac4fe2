package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each finding in the threat model has a test, its own or that of the row before; tests and files of tests that are named exist.
func TestEveryFindingOfTheThreatModelHasATest(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "threat-model.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, defences, _ := strings.Cut(string(text), "## Defences")
	defences, _, _ = strings.Cut(defences, "\n## ")
	names, file := regexp.MustCompile("`(Test|Fuzz)[A-Za-z0-9_]+`"), regexp.MustCompile("`([a-z/_]+_test\\.go)`")
	exists := testsOfTheRepository(t)
	findings, before := 0, false
	for line := range strings.Lines(defences) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 || strings.HasPrefix(cells[0], "---") || strings.TrimSpace(cells[0]) == "finding" {
			before = before && line != "\n" // of this table
			continue
		}
		findings++
		tests := cells[2]
		for _, named := range file.FindAllStringSubmatch(tests, -1) {
			if _, err := os.Stat(filepath.Join(root, named[1])); err != nil {
				t.Errorf("%s: %v", strings.TrimSpace(cells[0]), err)
			}
		}
		for _, name := range names.FindAllString(tests, -1) {
			if name = strings.Trim(name, "`"); !exists[name] {
				t.Errorf("%s: there is no %s", strings.TrimSpace(cells[0]), name)
			}
		}
		has := names.MatchString(tests) || file.MatchString(tests)
		same := strings.HasPrefix(strings.TrimSpace(tests), "the same")
		if !has && (!same || !before) {
			t.Errorf("no test for: %s", strings.TrimSpace(cells[0]))
		}
		before = has || same && before
	}
	if findings < 50 {
		t.Fatalf("%d findings, want those of all tables", findings)
	}
}

// testsOfTheRepository are the names of all tests and fuzz targets, those of nested modules as well.
func testsOfTheRepository(t *testing.T) map[string]bool {
	t.Helper()
	function, found := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`), map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "build" || entry.Name() == ".git"):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, named := range function.FindAllSubmatch(text, -1) {
			found[string(named[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
