package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What the README shows of `plimsoll explain` is what the command prints: its lines are those of the CLI's golden file, in their order.
func TestTheReadmeShowsWhatExplainPrints(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	printed, err := os.ReadFile(filepath.Join(root, "cmd", "plimsoll", "internal", "cli", "testdata", "explain.golden"))
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(page), "\n$ plimsoll explain ")
	block, _, closed := strings.Cut(block, "\n```")
	if !found || !closed {
		t.Fatal("README.md does not show `plimsoll explain`")
	}
	_, block, _ = strings.Cut(block, "\n") // the command
	rest, shown := string(printed), 0
	for _, line := range strings.Split(block, "\n") {
		if line = strings.TrimRight(line, " "); line == "" {
			continue
		}
		before, after, there := strings.Cut(rest, line+"\n")
		if !there {
			t.Errorf("%q is not printed, or not after what stands above it, of which this is left:\n%s", line, before)
			continue
		}
		rest, shown = after, shown+1
	}
	if shown < 5 {
		t.Errorf("%d lines are shown", shown)
	}
}
