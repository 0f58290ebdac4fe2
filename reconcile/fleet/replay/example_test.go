package replay_test

import (
	"fmt"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/replay"
)

// The same seed makes the same synthetic trace, which every policy is replayed on.
func ExampleGenerate() {
	made := replay.Made{Seed: 7, Regions: 2, Zones: 2, Most: 3, Days: 4}
	trace := replay.Generate(made)
	again := replay.Generate(made)
	fmt.Println(trace.Name == again.Name, len(trace.Zones), "zones")
	// Output: true 4 zones
}
