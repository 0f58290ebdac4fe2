package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// root is the repository's root, seen from this package.
const root = "../.."

// pages are the README and the pages under docs.
func pages(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	decisions, err := filepath.Glob(filepath.Join(root, "docs", "decisions", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat([]string{filepath.Join(root, "README.md")}, found, decisions)
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

var (
	target  = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
	mention = regexp.MustCompile("(?m)(?:`|^)make ([a-z][a-z0-9-]*)")
)

func TestEveryMakeTargetInTheDocumentationExists(t *testing.T) {
	g := NewWithT(t)
	var targets []string
	for _, found := range target.FindAllStringSubmatch(read(t, filepath.Join(root, "Makefile")), -1) {
		targets = append(targets, found[1])
	}
	mentioned := 0
	for _, page := range pages(t) {
		for _, found := range mention.FindAllStringSubmatch(read(t, page), -1) {
			mentioned++
			g.Expect(targets).To(ContainElement(found[1]), "%s mentions `make %s`", page, found[1])
		}
	}
	g.Expect(mentioned).To(BeNumerically(">", 10), "targets that the documentation mentions")
}

var (
	shell = regexp.MustCompile("(?ms)^```sh\n(.*?)^```")
	code  = regexp.MustCompile("(?ms)^```.*?^```")
	link  = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
)

// TestTheReadmeShowsTheCommandsThatTheDemoPrints holds both to each other, in their order: somebody who reads the README finds what the
// demo prints, and `make demo-check` runs every one of the commands.
func TestTheReadmeShowsTheCommandsThatTheDemoPrints(t *testing.T) {
	for _, name := range []string{"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"} {
		t.Setenv(name, "")
	}
	var printed, shown []string
	for _, l := range lines(usual) {
		printed = append(printed, "# "+l.says, l.command)
	}
	printed = append(printed, "# "+dashboardSays, dashboardLine(usual))
	for _, block := range shell.FindAllStringSubmatch(read(t, filepath.Join(root, "README.md")), -1) {
		for line := range strings.Lines(block[1]) {
			line = strings.TrimSpace(line)
			if line == "" || strings.HasPrefix(line, "make ") || line == "make" {
				continue // targets are looked at above
			}
			shown = append(shown, line)
		}
	}
	NewWithT(t).Expect(shown).To(Equal(printed))
}

func TestLinksInTheDocumentationLeadSomewhere(t *testing.T) {
	g := NewWithT(t)
	for _, page := range pages(t) {
		text := code.ReplaceAllString(read(t, page), "") // in which a call of a generic function looks like a link
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			g.Expect(filepath.Join(filepath.Dir(page), found[1])).To(Or(BeAnExistingFile(), BeADirectory()), "%s links to %s", page, found[1])
		}
	}
}

// TestTheExamplesOfPlacementAreCountedRight counts what the tables of docs/spot.md say.
func TestTheExamplesOfPlacementAreCountedRight(t *testing.T) {
	g := NewWithT(t)
	var examples, slots int
	for line := range strings.Lines(read(t, filepath.Join(root, "docs", "spot.md"))) {
		row := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		if row[0] == "capacity" {
			for slot, capacity := range row[1:] {
				slots++
				g.Expect(capacity == "spot").To(Equal(wantedSpot(slot+1, 70, 2) > wantedSpot(slot, 70, 2)), "slot %d is %s", slot, capacity)
			}
		}
		if numbers, ok := numbers(row, 5); ok {
			examples++
			n, percent, floor := numbers[0], numbers[1], numbers[2]
			g.Expect(numbers[3:]).To(Equal([]int{wantedSpot(n, percent, floor), n - wantedSpot(n, percent, floor)}), line)
		}
	}
	g.Expect(examples).To(Equal(4))
	g.Expect(slots).To(Equal(10))
}

// numbers are the first n cells of a row, if all of them are.
func numbers(row []string, n int) (all []int, ok bool) {
	if len(row) < n {
		return nil, false
	}
	for _, text := range row[:n] {
		number, err := strconv.Atoi(text)
		if err != nil {
			return nil, false
		}
		all = append(all, number)
	}
	return all, len(row) > n && !slices.Contains(row, "slot")
}
