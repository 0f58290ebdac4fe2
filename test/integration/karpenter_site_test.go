package integration

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

const (
	// pace is by what all times are divided beside Karpenter: those of nodes and those of the hub.
	pace = 5
	// provisioning is how long one spec with Karpenter may take. Its own rounds, of 10 s and more, are not scaled.
	provisioning = 10 * time.Minute
)

// karpenterSite is a hub with one member in which Karpenter makes the nodes. Three pods with a request of one CPU fit on one.
type karpenterSite struct {
	hub    *insideHub
	member *fleet.Member
}

func newKarpenterSite(t *testing.T) *karpenterSite {
	t.Helper()
	f := startFleetWith(t, fleet.Options{Members: []string{"one"}, Nodes: fleet.NoNodes})
	m := f.Members[0]
	g := NewWithT(t)
	g.Expect(m.Cluster.StartKarpenter(t.Context(), fleet.ScaledKarpenter(pace))).To(Succeed())
	g.Expect(m.Cluster.SetNodePool(t.Context(), general())).To(Succeed())
	return &karpenterSite{hub: startHub(t, f, "karpenter", fleet.Scaled(pace)), member: m}
}

// general is the one NodePool, of both capacity types. Nodes that are empty go; a spec changes what else is wanted.
func general() kube.NodePool {
	return kube.NodePool{
		Name: "general", NodeStart: fleet.NodeTime / pace, Budgets: kube.Unlimited,
		Consolidation: kube.WhenEmpty, ConsolidateAfter: 30 * time.Second / pace,
	}
}

// quickly is the same with nodes that are ready at once, for a spec that is about what comes afterwards. The pool as it is
// else has them drift.
func quickly() kube.NodePool {
	pool := general()
	pool.NodeStart = 0
	return pool
}

// begin begins a spec when the nodes of the last one have gone: spot and on-demand capacity is at zero.
func (s *karpenterSite) begin(t *testing.T, pool kube.NodePool) *placing {
	t.Helper()
	g := NewWithT(t)
	g.Expect(s.member.Cluster.SetNodePool(t.Context(), pool)).To(Succeed())
	g.Eventually(func() ([]kube.NodeClaim, error) { return s.member.Cluster.NodeClaims(t.Context()) }, provisioning).Should(BeEmpty())
	return placeFor(t, s.hub, s.member, fleet.Enabled(), provisioning)
}

// grown makes a Deployment and waits until Karpenter has made its nodes and the replicas are where they belong.
func (p *placing) grown(replicas, percent, floor int) *fleet.Workload {
	p.t.Helper()
	w := p.create(requesting(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(percent, floor))))
	p.mended(w, replicas, percent, floor)
	return w
}

func requesting(d *appsv1.Deployment) *appsv1.Deployment { return fleet.Requesting(d, "1") }

// claims are Karpenter's.
func (p *placing) claims() []kube.NodeClaim {
	p.t.Helper()
	claims, err := p.member.NodeClaims(p.ctx, "")
	p.Expect(err).NotTo(HaveOccurred())
	return claims
}
