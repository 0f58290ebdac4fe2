package integration

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// TestSpotPlacement takes pods and workloads through the house on real control planes: pods are placed as they are made
// (DESIGN, third way), and what slipped through or is wanted otherwise is corrected (second way).
func TestSpotPlacement(t *testing.T) {
	fleets.beside(t)
	f := startFleet(t, "one", "two")
	h := startHub(t, f, "spot")

	t.Run("side by side", func(t *testing.T) {
		for name, spec := range map[string]func(*placing){
			"scaling keeps the exact mix without an eviction":                      scalingSpec,
			"a changed policy moves what the counts differ by, in batches":         policySpec,
			"no disruption budget is ever passed, and a refusal waits":             budgetSpec,
			"ordinals of a StatefulSet move one at a time":                         ordinalSpec,
			"an invalid annotation moves nothing until it is corrected":            invalidSpec,
			"pods that were there before get slots and are moved":                  adoptionSpec,
			"what is not enabled is neither evicted nor patched":                   notEnabledSpec,
			"selectors without matchLabels match no pods of others":                expressionsSpec,
			"the user's own deletion cost and nodeSelector stay":                   ownValuesSpec,
			"refusals by a quota climb no slots":                                   quotaSpec,
			"a converged workload is written to no more":                           stillnessSpec,
			"a namespace's policy counts where the workload has none":              namespacePolicySpec,
			"a dry run reserves nothing":                                           dryRunSpec,
			"pods that ask not to be disrupted are not moved until they do not":    protectedSpec,
			"pods that others evict come back on the capacity that is missing now": othersEvictSpec,
		} {
			t.Run(name, func(t *testing.T) {
				specs.beside(t)
				spec(place(t, h, f.Members[0], fleet.Enabled()))
			})
		}
	})
	t.Run("a burst in all members gets exactly the formula's mix", func(t *testing.T) { burst(t, h, f.Members...) })
	t.Run("so does a burst that the hub sees two seconds late", func(t *testing.T) {
		for _, m := range f.Members {
			m.Proxy.DelayWatches(2 * time.Second)
			defer m.Proxy.DelayWatches(0)
		}
		burst(t, h, f.Members...)
	})
	t.Run("the floor stands while pods are evicted and refused by others", func(t *testing.T) { churnSpec(t, h, f.Members[0]) })
	t.Run("pods of a namespace that the hub does not see yet are placed exactly", func(t *testing.T) { lateNamespaceSpec(t, h, f.Members[0]) })
	t.Run("a member that hangs changes nothing for the others", func(t *testing.T) { hangSpec(t, h, f.Members[0], f.Members[1]) })
	t.Run("moves go on after a restart as if there had been none", func(t *testing.T) { restartSpec(t, h, f) })
	t.Run("a burst at the moment in which a hub says that it is ready is placed exactly", func(t *testing.T) {
		h.stop(t)
		burst(t, startHub(t, f, "spot-just-ready"), f.Members...)
	})
	t.Run("pods are let through while the hub is away or may only read, and corrected later", func(t *testing.T) {
		outageSpec(t, h, f)
	})
}

// burst makes a Deployment in each member at once; their pods come as fast as the members can make them.
func burst(t *testing.T, h *insideHub, members ...*fleet.Member) {
	t.Helper()
	const replicas, percent, floor = 60, 70, 1
	specs := make([]*placing, len(members))
	workloads := make([]*fleet.Workload, len(members))
	for i, m := range members {
		specs[i] = place(t, h, m, fleet.Enabled())
	}
	for i, p := range specs {
		workloads[i] = p.create(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(percent, floor)))
	}
	for i, p := range specs {
		p.exactly(workloads[i], replicas, percent, floor)
		p.Expect(p.slots(workloads[i])).To(ConsistOf(firstSlots(replicas)))
	}
}

func scalingSpec(p *placing) {
	const percent, floor = 70, 2
	w := p.create(fleet.Deployment(p.namespace, "web", 0, fleet.Policy(percent, floor)))
	for _, replicas := range []int{30, 11, 24, 3} {
		p.Expect(w.Scale(p.ctx, replicas)).To(Succeed())
		p.exactly(w, replicas, percent, floor)
	}
}
