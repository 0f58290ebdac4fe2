package integration

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// only adds up the samples that have all of these labels, written as name and value in turn.
func only(samples []fleet.Sample, labels ...string) float64 {
	sum := 0.0
	for _, sample := range samples {
		has := true
		for i := 0; i+1 < len(labels); i += 2 {
			has = has && sample.Has(labels[i], labels[i+1])
		}
		if has {
			sum += sample.Value
		}
	}
	return sum
}

// TestMetricsHaveTheirValues places a Deployment of 10, seven of them on spot, and moves three: what the main series say is what is
// in the cluster.
func TestMetricsHaveTheirValues(t *testing.T) {
	fleets.beside(t)
	f := startFleet(t, "one")
	h := startHub(t, f, "values")
	p := place(t, h, f.Members[0], fleet.Enabled())
	w := p.create(fleet.Deployment(p.namespace, "web", 10, fleet.Policy(70, 2)))
	p.ready(w, 10)
	p.mixed(w, 10, 70, 2)
	before, err := h.Samples(p.ctx)
	p.Expect(err).NotTo(HaveOccurred())

	replicas := func(g Gomega, spot, onDemand float64) {
		samples, err := h.Samples(p.ctx)
		g.Expect(err).NotTo(HaveOccurred())
		for capacity, want := range map[string]float64{"spot": spot, "on-demand": onDemand} {
			for _, count := range []string{"wanted", "actual"} {
				g.Expect(only(samples["plimsoll_workload_replicas"], "member", "one", "namespace", p.namespace, "kind", "Deployment", "name", "web",
					"capacity", capacity, "count", count)).To(Equal(want), "%s, %s", capacity, count)
			}
		}
	}
	replicas(p, 7, 3)
	if p.undecided() == 0 {
		p.Expect(only(before["plimsoll_admissions_total"], "member", "one", "outcome", "spot")).To(Equal(7.0))
		p.Expect(only(before["plimsoll_admissions_total"], "member", "one", "outcome", "on_demand")).To(Equal(3.0))
		p.Expect(only(before["plimsoll_moves_total"], "member", "one")).To(Equal(0.0))
	}
	p.Expect(only(before["plimsoll_reconcile_total"], "controller", "deployment-spot", "member", "one")).To(BeNumerically(">", 0))
	p.Expect(only(before["plimsoll_reservations_live"], "member", "one")).To(Equal(0.0))
	p.Expect(fleet.Sum(before["plimsoll_owner"])).To(Equal(1.0))
	p.Expect(fleet.Sum(before["plimsoll_handovers_total"])).To(Equal(1.0))
	// Other specs' controllers of this process are no hub's, and have theirs.
	for _, sample := range before["controller_runtime_reconcile_errors_total"] {
		p.Expect(sample.Has("controller", "deployment-spot")).To(BeFalse(), "nobody feeds it")
	}

	p.Expect(w.Annotate(p.ctx, fleet.Policy(40, 2))).To(Succeed())
	p.mixed(w, 10, 40, 2)
	p.Eventually(func(g Gomega) { replicas(g, 4, 6) }).Should(Succeed())
	after, err := h.Samples(p.ctx)
	p.Expect(err).NotTo(HaveOccurred())
	moved := only(after["plimsoll_moves_total"], "member", "one") - only(before["plimsoll_moves_total"], "member", "one")
	p.Expect(moved).To(BeNumerically("==", len(p.evictions())))
	p.Expect(moved).To(BeNumerically(">=", 3))
}
