package main

import (
	"os"
	"path/filepath"
	"testing"
)

const (
	// shortFaults are done in each lane, so that a fault of a process meets one of what surrounds it.
	shortFaults = 4
	// shortSeed begins with ...
	shortSeed = 13
)

// TestAShortRunFindsNothing is `make robustness` with few faults, as many of them on any machine. With this seed they are ... What it finds can be found again with its seed, mostly.
func TestAShortRunFindsNothing(t *testing.T) {
	options := Options{Seed: shortSeed, Faults: shortFaults, Members: []string{"alpha"}, Dir: t.TempDir(), Log: t.Output()}
	if _, err := os.Stat(skewedBinary()); err != nil {
		t.Log("wrong clocks are not tried: `make robustness` builds the hub that can have one")
	}
	verdict, err := Run(t.Context(), options)
	if verdict != nil {
		verdict.print(t.Output())
	}
	if err != nil {
		t.Error(err)
	}
	if verdict != nil && (!verdict.clean() || len(verdict.Faults) == 0 || verdict.Writes == 0 || verdict.Orders == 0) {
		t.Error("something was found, or nothing was tried")
	}
	if t.Failed() {
		logs, _ := filepath.Glob(filepath.Join(options.Dir, "*.log"))
		for _, log := range logs {
			content, _ := os.ReadFile(log)
			t.Logf("%s:\n%s", filepath.Base(log), content)
		}
	}
}
