package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
)

// A failure that a seed has found is found again by it: nothing depends on the order of a map or on the clock.
func TestASeedRepeatsARun(t *testing.T) {
	run := func(seed uint64) string {
		c := newCluster(seed)
		c.late, c.hangs, c.scaler = true, 0.2, newScaler(20*time.Second, time.Minute)
		for _, capacityType := range []capacity.Type{capacity.Spot, capacity.OnDemand} {
			c.scaler.makes(capacityType, 3, 8)
			c.addNode(capacityType, 8)
		}
		for i := range 3 {
			w := &Workload{name: fmt.Sprintf("w%d", i), ordinals: i == 2, replicas: 4 + i, size: 1, probed: 1, policy: spottest.PolicyOf(60, 1), settings: plantest.DefaultSettings}
			c.workloads = append(c.workloads, w)
			c.newSet(w, w.replicas)
		}
		h := newHub(c)
		h.crash, h.blind = 0.05, 0.3
		var log strings.Builder
		for i := range 400 {
			h.tick(700*time.Millisecond, time.Second)
			if i%90 == 80 {
				h.lose(h.nodes[c.rand.IntN(len(h.nodes))])
			}
			for _, p := range c.ordered {
				fmt.Fprintf(&log, "%s %d %s %t, ", p.Name, p.Slot, p.Capacity, p.Ready)
			}
			fmt.Fprintln(&log, len(h.probes))
		}
		return log.String()
	}
	for seed := range uint64(5) {
		first, second := strings.Split(run(seed), "\n"), strings.Split(run(seed), "\n")
		for i := range first {
			if first[i] != second[i] {
				t.Fatalf("seed %d: step %d is %s and then %s", seed, i, first[i], second[i])
			}
		}
	}
}
