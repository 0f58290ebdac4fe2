package main

import (
	"os"
	"path/filepath"
	"testing"
)

const (
	// shortFaults are done in each lane, so that a fault of a process meets one of what surrounds it.
	shortFaults = 4
	// shortSeed begins with killed, terminated while frozen, frozen and terminated in the one lane, and with calls of replicas lost,
	// answers of the member lost, Lease deleted and answers of the hub cluster lost in the other.
	shortSeed = 593
)

// TestAShortRunFindsNothing is `make robustness` with few faults, as many on any machine. It waits for what must come true and
// not for a time. What it finds can be found again, mostly, for a fault meets what the machine has just come to.
func TestAShortRunFindsNothing(t *testing.T) {
	options := Options{Seed: shortSeed, Faults: shortFaults, Members: []string{"alpha"}, Dir: t.TempDir(), Log: t.Output()}
	outcome, err := Run(t.Context(), options)
	if outcome != nil {
		outcome.print(t.Output())
	}
	if err == nil {
		err = outcome.enough(options)
	}
	if err != nil {
		t.Error(err)
	}
	if outcome != nil && !outcome.clean() {
		t.Error("something was found")
	}
	if t.Failed() {
		logs, _ := filepath.Glob(filepath.Join(options.Dir, "*.log"))
		for _, log := range logs {
			content, _ := os.ReadFile(log)
			t.Logf("%s:\n%s", filepath.Base(log), content)
		}
	}
}
