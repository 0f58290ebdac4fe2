package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestAShortRunFindsNothing is `make robustness` with few faults. What it finds can be found again with its seed, mostly.
func TestAShortRunFindsNothing(t *testing.T) {
	if os.Getenv("ROBUSTNESS") == "" {
		t.Skip("issue 13 is open: nobody has seen this run pass yet, and on a busy machine it takes more than five minutes; ROBUSTNESS=1 runs it")
	}
	options := Options{Seed: 13, Duration: 40 * time.Second, Members: []string{"alpha", "beta"}, Dir: t.TempDir(), Log: t.Output()}
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
