package sim

import (
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
)

// A policy asks for capacity that is not there: twenty healthy replicas used to be given up for it.
func TestMovesIntoCapacityThatIsNotThereCostOneReplica(t *testing.T) {
	for _, percent := range []int{100, 0} {
		c := newCluster(3)
		c.strict = true
		c.addNode(map[int]capacity.Type{100: capacity.Spot, 0: capacity.OnDemand}[percent], 40)
		w := &Workload{name: "w", replicas: 40, size: 1, policy: spottest.PolicyOf(percent, 0), settings: plantest.DefaultSettings}
		c.workloads = append(c.workloads, w)
		c.newSet(w, w.replicas)
		h := newHub(c)
		h.until(t, "at rest", 2*time.Minute, func() bool { return h.atRest() && h.exactMix() })
		w.policy = spottest.PolicyOf(100-percent, 0)
		clear(h.moves)
		for range 900 {
			h.tick(time.Second, 0)
			h.deliver(0)
		}
		if _, ready := h.supply(w); ready < 39 || h.moves[w] != 1 {
			t.Errorf("from %d %% on spot: %d replicas moved, %d of 40 are ready", percent, h.moves[w], ready)
		}
	}
}
