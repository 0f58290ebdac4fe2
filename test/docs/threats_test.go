package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each finding in the threat model has a test, its own or that of the row before; files of tests that are named exist.
func TestEveryFindingOfTheThreatModelHasATest(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "threat-model.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, defences, _ := strings.Cut(string(text), "## Defences")
	defences, _, _ = strings.Cut(defences, "\n## ")
	names, file := regexp.MustCompile("`(Test|Fuzz)[A-Za-z0-9_]+`"), regexp.MustCompile("`([a-z/_]+_test\\.go)`")
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
