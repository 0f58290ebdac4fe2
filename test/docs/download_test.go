package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// One failed download must not fail a run of hours, and one that always fails must be named and left to the step that needs it.
func TestDownloadsOfModulesAreTriedAgain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		failures string // how often the first download fails
		calls    int    // of the first module
		reported []string
	}{
		"no failure":   {"0", 1, nil},
		"two failures": {"2", 3, []string{"go.mod, try 1 of 3: 502 Bad Gateway", "go.mod, try 2 of 3: 502 Bad Gateway"}},
		"always":       {"9", 3, []string{"go.mod, try 1 of 3: 502 Bad Gateway", "go.mod, try 2 of 3: 502 Bad Gateway", "go.mod, try 3 of 3: 502 Bad Gateway"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			// Fails in the first folder in which it is called so often, and records all of them.
			fake := filepath.Join(dir, "go")
			write(t, fake, "#!/bin/sh\n[ \"$*\" = 'mod download' ] || exit 3\npwd >>"+dir+"/calls\n"+
				"[ \"$PWD\" = \"$(head -1 "+dir+"/calls)\" ] && [ $(grep -cx \"$PWD\" "+dir+"/calls) -le "+test.failures+" ] && echo '502 Bad Gateway' && exit 1\nexit 0\n")

			run := exec.CommandContext(t.Context(), "sh", filepath.Join("tools", "download.sh"))
			run.Dir = root
			run.Env = append(os.Environ(), "GO="+fake, "TRIES=3", "PAUSE=0")
			out, err := run.CombinedOutput()
			if err != nil {
				t.Fatalf("%v:\n%s", err, out)
			}
			calls, err := os.ReadFile(filepath.Join(dir, "calls"))
			if err != nil {
				t.Fatal(err)
			}
			folders := strings.Fields(string(calls))
			first := 0
			for first < len(folders) && folders[first] == folders[0] {
				first++
			}
			if first != test.calls {
				t.Errorf("the first module was downloaded %d times, expected %d", first, test.calls)
			}
			modules, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "go.mod", "*/go.mod", ":!tools/protos").Output()
			if err != nil {
				t.Fatal(err)
			}
			if got, expected := len(folders)-first+1, len(strings.Fields(string(modules))); got != expected {
				t.Errorf("%d modules were downloaded, expected %d", got, expected)
			}
			if got := strings.TrimSpace(string(out)); got != strings.Join(test.reported, "\n") {
				t.Errorf("reported:\n%s", got)
			}
		})
	}
}
