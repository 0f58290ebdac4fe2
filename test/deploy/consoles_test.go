package deploy

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Why the test of the commands leaves out a block of a page whose commands it runs.
const (
	byTheHub  = "not run: it needs a hub with these members; test/integration and test/demo run the like"
	byTheDemo = "run by test/demo"
	waits     = "not run: it waits for a hub that works; TestRegisterWaitsUntilMembersAreReady of test/integration runs the like"
	needsKind = "not run: kind needs Docker"
)

// leftOut are these blocks, by page and the beginning of the first command.
var leftOut = map[string]string{
	"README.md: plimsoll explain prod-eu":                                    "its output is compared with the CLI's by test/docs",
	"README.md: make demo":                                                   byTheDemo,
	"README.md: # move replicas":                                             byTheDemo,
	"README.md: # open the address":                                          byTheDemo,
	"README.md: make          # lists":                                       "not run: CI runs these targets",
	"docs/api.md: curl --cacert ca.crt -H":                                   byTheDemo,
	"docs/api.md: curl --cacert ca.crt --c":                                  "not run: it needs a hub with api.clientCA at that name; test/integration calls one",
	"docs/cli.md: plimsoll get clusters\n":                                   byTheHub,
	"docs/cli.md: #!/bin/sh":                                                 "not run: it is a file for kubectl, not a command",
	"docs/cli.md: plimsoll cordon":                                           byTheHub,
	"docs/cli.md: plimsoll get workloads":                                    byTheHub,
	"docs/cli.md: plimsoll get clusters -o":                                  byTheHub,
	"docs/cli.md: plimsoll events":                                           byTheHub,
	"docs/cli.md: plimsoll get clusters --":                                  "not run: it needs a hub with api.clientCA at that name; test/integration has the flags",
	"docs/install.md: kubectl --context hub -n plimsoll-system port-forward": "the second command is run by TestInstalledByHelmAndRunAsItSays; a port is forwarded to the hub's pods, which are simulated",
	"docs/kind.md: kind create":                                              needsKind,
	"docs/kind.md: kind delete":                                              needsKind,
	"docs/kind.md: plimsoll register prod-eu --context kind-prod-eu --hub-context kind-hub --server https://prod-eu-control-plane:6443 --wait": waits,
	"docs/kind.md: kubectl --context kind-prod-eu -n shop get pods":                                                                            byTheHub,
	"docs/operate.md: plimsoll register prod-eu hub --hub-context hub --wait":                                                                  waits,
	"docs/upgrade.md: plimsoll register prod-eu --context prod-eu --hub-context hub -n":                                                        "run by TestAnUpgradeThatWouldLoseMembersIsRefused",
	"docs/operate.md: plimsoll clusters":                                                                                                       byTheHub,
}

// runElsewhere are the pages whose blocks other tests run, or nobody can.
var runElsewhere = map[string]string{
	"docs/gitops.md":                  "run by test/gitops",
	"docs/page.md":                    "run by test/page",
	"docs/fleet.md":                   "run by test/demo, but for its consoles: they need a FleetPlacement or a recorded history of these names; specs of FleetService and of the CLI ask the like",
	"docs/robustness.md":              "run by test/robustness, a shorter run where ROBUSTNESS is set",
	"docs/spot.md":                    "not run: it is one annotation, which test/integration sets",
	"docs/write-a-reconciler.md":      "not run: the flag is tested by cmd/plimsoll/internal/enroll",
	"docs/testing-a-reconciler.md":    "not run: it is one test of test/integration",
	"CONTRIBUTING.md":                 "not run: it clones a fork, and CI runs the targets",
	"deploy/chart/plimsoll/README.md": "not run here: the install of README.md without the member",
}

// consolesRun are the pages whose consoles are run as well.
var consolesRun = []string{"README.md", "docs/migrate.md"}

// reasonOf is why a block is left out; empty: it is run.
func reasonOf(page string, one block) (name, reason string) {
	for known, why := range leftOut {
		of, begin, _ := strings.Cut(known, ": ")
		if of == page && strings.HasPrefix(one.text, begin) && len(known) > len(name) {
			name, reason = known, why
		}
	}
	return name, reason
}

// pagesWithCommands are all pages that may have some.
func pagesWithCommands(t *testing.T) (pages []string) {
	t.Helper()
	for _, pattern := range []string{"docs/*.md", "*.md", "deploy/*/README.md", "deploy/chart/*/README.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			name, err := filepath.Rel(root, path)
			if err != nil {
				t.Fatal(err)
			}
			pages = append(pages, filepath.ToSlash(name))
		}
	}
	return pages
}

// Every block for a shell is run by the test of the commands, or has a reason here, whatever its language is called.
func TestEveryBlockForAShellIsRunOrHasAReason(t *testing.T) {
	used := map[string]bool{}
	for _, page := range pagesWithCommands(t) {
		found := blocksIn(pageText(t, page))
		if reason := runElsewhere[page]; reason != "" {
			if used[page] = len(found) > 0; used[page] {
				t.Logf("%s: %s", page, reason)
			}
			continue
		}
		for _, one := range found {
			name, reason := reasonOf(page, one)
			if reason == "" && (!slices.Contains(runHere, page) || one.console && !slices.Contains(consolesRun, page)) {
				t.Errorf("%s: nothing runs this, and there is no reason in this file:\n%s", page, one.text)
			} else if reason != "" {
				used[name] = true
				t.Logf("%s: %s", name, reason)
			}
		}
	}
	for _, names := range []map[string]string{leftOut, runElsewhere} {
		for name := range maps.Keys(names) {
			if !used[name] {
				t.Errorf("%q fits no block any more", name)
			}
		}
	}
}
