package integration

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// lateNamespaceSpec makes a workload in a namespace that the hub does not see: its watches are independent, and that of namespaces
// may be the latest.
func lateNamespaceSpec(t *testing.T, h *insideHub, m *fleet.Member) {
	const replicas, percent, floor = 10, 70, 2
	m.Proxy.Hang(func(r *http.Request) bool {
		return r.URL.Path == "/api/v1/namespaces" && r.URL.Query().Get("watch") != ""
	})
	restore := func() { NewWithT(t).Expect(m.Proxy.Restore()).To(Succeed()) }
	defer restore()
	p := place(t, h, m, fleet.Enabled())
	w := p.create(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(percent, floor)))
	p.ready(w, replicas)
	restore()
	p.exactly(w, replicas, percent, floor)
}

// hangSpec is invariant 4: one member's API server is frozen, watches, leases and all.
func hangSpec(t *testing.T, h *insideHub, healthy, hung *fleet.Member) {
	before := place(t, h, hung, fleet.Enabled())
	w := before.create(fleet.Deployment(before.namespace, "web", 10, fleet.Policy(70, 1)))
	before.exactly(w, 10, 70, 1)

	before.Expect(hung.Cluster.HangAPIServer()).To(Succeed())
	resume := func() { before.Expect(hung.Cluster.ResumeAPIServer()).To(Succeed()) }
	defer resume()
	burst(t, h, healthy)
	p := place(t, h, healthy, fleet.Enabled())
	policySpec(p)
	resume()

	before.Expect(w.Annotate(before.ctx, fleet.Policy(30, 1))).To(Succeed())
	before.mixed(w, 10, 30, 1)
}

// restartSpec is invariant 7: the hub is stopped after its first moves, and another one knows only what the cluster shows.
func restartSpec(t *testing.T, h *insideHub, f *fleet.Fleet) {
	const replicas, before, after, floor = 20, 70, 30, 1
	p := place(t, h, f.Members[0], fleet.Enabled())
	w := p.create(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(before, floor)))
	p.exactly(w, replicas, before, floor)
	history := p.follow(w)

	moved := fleet.Policy(after, floor)
	moved[fleet.Keys.Cooldown()] = "1h" // so that the hub stops amid the move, however long that takes
	p.Expect(w.Annotate(p.ctx, moved)).To(Succeed())
	p.Eventually(p.evictions).ShouldNot(BeEmpty())
	h.stop(t)
	p.Expect(len(p.evictions())).To(BeNumerically("<", 8))
	p.Expect(w.Annotate(p.ctx, map[string]string{fleet.Keys.Cooldown(): "1s"})).To(Succeed())
	p.hub = startHub(t, f, "spot-restarted")
	p.mixed(w, replicas, after, floor)
	p.onlyMovedBy(history, replicas, 8, 2)
}

// outageSpec makes workloads while no hub answers, and then while one does that may change nothing.
func outageSpec(t *testing.T, h *insideHub, f *fleet.Fleet) {
	const replicas, percent, floor = 10, 70, 1
	p := place(t, h, f.Members[0], fleet.Enabled())
	h.stop(t)
	away := p.create(fleet.Deployment(p.namespace, "away", replicas, fleet.Policy(percent, floor)))
	p.ready(away, replicas)
	p.Expect(p.slots(away)).To(HaveEach(""))
	p.Expect(p.undecided()).To(Equal(replicas), "the API server notes whom it did not ask")

	p.hub = startHub(t, f, "spot-read-only", fleet.Settings{"spot.readOnly": true})
	reading := p.create(fleet.Deployment(p.namespace, "reading", replicas, fleet.Policy(0, floor)))
	p.ready(reading, replicas)
	p.reconciledAgain(deploymentController, reading, 2)
	p.reconciledAgain(deploymentController, away, 2)
	p.Eventually(p.state(reading)).Should(Equal(plimsollv1.WorkloadState_WORKLOAD_STATE_READ_ONLY))
	p.Expect(p.slots(reading)).To(HaveEach(""))
	p.Expect(p.audited(kube.EvictionAttempts)).To(BeEmpty())
	p.Expect(p.writes()).To(BeEmpty())
	p.hub.stop(t)

	p.hub = startHub(t, f, "spot-again")
	p.mixed(away, replicas, percent, floor)
	p.mixed(reading, replicas, 0, floor)
	p.Expect(p.slots(away)).To(ConsistOf(firstSlots(replicas)))
	p.Expect(p.audited(kube.EvictionAttempts, func(e kube.AuditEvent) bool { return e.Code == http.StatusTooManyRequests })).To(BeEmpty())
}

// churnSpec is invariant 1 in a bad time: pods are evicted by others and refused by others, and the hub sees it late.
func churnSpec(t *testing.T, h *insideHub, m *fleet.Member) {
	const replicas, percent, floor = 30, 100, 6
	p := place(t, h, m, fleet.Enabled())
	w := p.create(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(percent, floor)))
	p.exactly(w, replicas, percent, floor)
	m.Proxy.DelayWatches(2 * time.Second)
	defer m.Proxy.DelayWatches(0)

	churn := fleet.Churn{Workload: w, Replicas: replicas, Floor: floor, Evictions: 60, AtOnce: 4, RejectOneIn: 5, Seed: 1}
	ordeal, err := churn.Begin(p.ctx)
	p.Expect(err).NotTo(HaveOccurred())
	defer ordeal.History.Stop()
	p.Expect(ordeal.Run(p.ctx)).To(Succeed())
	p.mixed(w, replicas, percent, floor)

	outcome, err := ordeal.Judge()
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(outcome.Breaks).To(BeEmpty())
}
