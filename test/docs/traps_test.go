// Package docs checks what the documents say of the code.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

func TestEveryTestThatATableNamesExists(t *testing.T) {
	there := testNames(t)
	for page, least := range map[string]int{"traps.md": 40, "threat-model.md": 30, "robustness.md": 60, "invariants.md": 15} {
		text, err := os.ReadFile(filepath.Join(root, "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		named := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_]+)`").FindAllStringSubmatch(string(text), -1)
		if len(named) < least {
			t.Fatalf("%s names %d tests, want the whole table", page, len(named))
		}
		for _, match := range named {
			if !there[match[1]] {
				t.Errorf("%s names %s, which does not exist", page, match[1])
			}
		}
	}
}

// Those of the single-cluster predecessor, and the recovery that evicts to find out, each have a test.
func TestEveryTrapOfSpotPlacementHasARowWithATest(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "traps.md"))
	if err != nil {
		t.Fatal(err)
	}
	tested := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| ([0-9, ]+) \\|.*`(?:Test|Fuzz)").FindAllStringSubmatch(string(text), -1) {
		for _, number := range strings.Split(row[1], ", ") {
			tested[number] = true
		}
	}
	for _, number := range []int{20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 38} {
		if !tested[strconv.Itoa(number)] {
			t.Errorf("trap %d has no row with a test", number)
		}
	}
}

// Each item of the issue has a row with a test, and each number one of its own.
func TestTheTableOfIssue13IsWhole(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "robustness.md"))
	if err != nil {
		t.Fatal(err)
	}
	items := []string{"joins", "latency", "watches", "many owners", "model"}
	for number := range 22 {
		items = append(items, strconv.Itoa(number+1))
	}
	for _, number := range []string{
		"floor broken in runs of the model.*0 of 10,000", "`robustness-faults`", "`robustness-double-writes`", "`robustness-floor-breaks`",
		"`robustness-lost-orders`", "`failover-s`", "`handover-s`", "`handover-lost-admissions`", "`join-false-unreachable`", "`restart-false-unreachable`", "`slow-member-ready-s`", "`watch-reopen-s`",
	} {
		items = append(items, "[^|]*"+number+"[^|]*")
	}
	for _, item := range items {
		if !regexp.MustCompile("(?m)^\\| " + item + " ?\\|.*`Test").Match(text) {
			t.Errorf("%s has no row with a test", item)
		}
	}
}

// testNames returns the names of all tests and fuzz tests of the module.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9_]+)\(`)
	names := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && entry.Name() == "build" {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, match := range declared.FindAllStringSubmatch(string(text), -1) {
			names[match[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
