package integration

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

const (
	// pace is by what all times are divided beside Karpenter: those of nodes and those of the hub.
	pace = 5
	// provisioning is how long one spec with Karpenter may take. Its own rounds, of 10 s and more, are not scaled.
	provisioning = 10 * time.Minute
)

// karpenterSite is a hub with two members in which Karpenter makes the nodes. Three pods with a request of one CPU fit on one.
type karpenterSite struct {
	hub *insideHub
	// alone is for specs that run one after the other, and whose pods ask for no NodePool. In shared each spec has a NodePool of its own.
	alone, shared *fleet.Member
}

func newKarpenterSite(t *testing.T) *karpenterSite {
	t.Helper()
	f := startFleetWith(t, fleet.Options{Members: []string{"alone", "shared"}, Nodes: fleet.NoNodes})
	g := NewWithT(t)
	for _, m := range f.Members {
		g.Expect(m.Cluster.StartKarpenter(t.Context(), fleet.ScaledKarpenter(pace))).To(Succeed())
	}
	return &karpenterSite{hub: startHub(t, f, "karpenter", fleet.Scaled(pace)), alone: f.Members[0], shared: f.Members[1]}
}

// provisioned is a spec with the NodePool that its nodes are of.
type provisioned struct {
	*placing

	pool    fleet.Pool
	selects string // the NodePool that pods ask for; empty: none
}

// onNothing begins a spec in the member where specs run one after the other, when the nodes of the last one have gone: spot and
// on-demand capacity is at zero.
func (s *karpenterSite) onNothing(t *testing.T) *provisioned {
	t.Helper()
	p := s.begin(t, s.alone, slowPool("general"))
	p.Eventually(func() ([]kube.NodeClaim, error) { return p.pool.Claims(p.ctx) }).Should(BeEmpty())
	return p
}

// onPool begins a spec with a NodePool of its own, beside others.
func (s *karpenterSite) onPool(t *testing.T, wanted kube.NodePool) *provisioned {
	t.Helper()
	p := s.begin(t, s.shared, wanted)
	p.selects = wanted.Name
	return p
}

func (s *karpenterSite) begin(t *testing.T, m *fleet.Member, wanted kube.NodePool) *provisioned {
	t.Helper()
	NewWithT(t).Expect(m.Cluster.SetNodePool(t.Context(), wanted)).To(Succeed())
	p := placeFor(t, s.hub, m, fleet.Enabled(), provisioning)
	return &provisioned{placing: p, pool: fleet.Pool{Member: m, Name: wanted.Name}}
}

// slowPool has both capacity types, and nodes that start as slowly as those of a cloud. Those that are empty go; a spec changes what
// else is wanted.
func slowPool(name string) kube.NodePool {
	return kube.NodePool{
		Name: name, NodeStart: fleet.NodeTime / pace, Budgets: kube.Unlimited,
		Consolidation: kube.WhenEmpty, ConsolidateAfter: 30 * time.Second / pace,
	}
}

// quickPool is the same with nodes that are ready at once, for a spec that is about what comes afterwards. The slow one has them drift.
func quickPool(name string) kube.NodePool {
	pool := slowPool(name)
	pool.NodeStart = 0
	return pool
}

// change gives the spec's NodePool other properties.
func (p *provisioned) change(ctx context.Context, to kube.NodePool) {
	p.t.Helper()
	p.Expect(p.member.Cluster.SetNodePool(ctx, to)).To(Succeed())
}

// grown makes a Deployment and waits until Karpenter has made its nodes and the replicas are where they belong.
func (p *provisioned) grown(replicas, percent, floor int) *fleet.Workload {
	p.t.Helper()
	d := requesting(fleet.Deployment(p.namespace, "web", replicas, fleet.Policy(percent, floor)))
	w := p.create(fleet.OnPool(d, p.selects))
	p.mixed(w, replicas, percent, floor)
	return w
}

// grownBeside makes a Deployment of which each replica is on a node of its own, beside a pod that is not the hub's. On a busy machine
// Karpenter may otherwise make more nodes, which the replicas share, before the scheduler has come to them: then so few nodes are left
// without the others' pods that none of them has to go.
func (p *provisioned) grownBeside(pool kube.NodePool, replicas, percent, floor int) (*fleet.Filler, *fleet.Workload) {
	p.t.Helper()
	spot, onDemand := fleet.Want(replicas, percent, floor)
	filler, err := p.pool.Fill(p.ctx, p.namespace,
		fleet.Filling{Capacity: kube.Spot, Pods: spot, CPU: "2500m"}, fleet.Filling{Capacity: kube.OnDemand, Pods: onDemand, CPU: "2500m"})
	p.Expect(err).NotTo(HaveOccurred())
	pool.CPULimit = 1 // it has more
	p.change(p.ctx, pool)
	w := p.grown(replicas, percent, floor)
	nodes := map[string]bool{}
	for _, pod := range p.pods(w) {
		nodes[pod.Spec.NodeName] = true
	}
	p.Expect(nodes).To(HaveLen(replicas))
	return filler, w
}

func requesting(d *appsv1.Deployment) *appsv1.Deployment { return fleet.Requesting(d, "1") }

// claims are those of the spec's NodePool that stay.
func (p *provisioned) claims() []kube.NodeClaim {
	p.t.Helper()
	claims, err := p.pool.Staying(p.ctx)
	p.Expect(err).NotTo(HaveOccurred())
	return claims
}

// leaving are the names of the pool's NodeClaims that are being deleted.
func (p *provisioned) leaving() ([]string, error) {
	all, err := p.pool.Claims(p.ctx)
	return fleet.ClaimNames(slices.DeleteFunc(all, func(claim kube.NodeClaim) bool { return !claim.Leaving })), err
}

// disruptable takes what asks Karpenter to leave a pod where it is from all pods of a workload, or puts it there.
func (p *provisioned) disruptable(w *fleet.Workload, may bool) {
	p.t.Helper()
	for _, pod := range p.pods(w) {
		patch := client.MergeFrom(pod.DeepCopy())
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, plan.AnnotationDoNotDisrupt, "true")
		if may {
			delete(pod.Annotations, plan.AnnotationDoNotDisrupt)
		}
		p.Expect(p.member.Client().Patch(p.ctx, &pod, patch)).To(Succeed())
	}
}

// blocked are the nodes of which Karpenter said that it does not disrupt them because of a pod that asks for it.
func (p *provisioned) blocked() ([]string, error) {
	var all corev1.EventList
	if err := p.member.Client().List(p.ctx, &all); err != nil {
		return nil, err
	}
	var nodes []string
	for _, event := range all.Items {
		if event.Reason == "DisruptionBlocked" && event.InvolvedObject.Kind == "Node" && strings.Contains(event.Message, plan.AnnotationDoNotDisrupt) {
			nodes = append(nodes, event.InvolvedObject.Name)
		}
	}
	return nodes, nil
}

// keepsFloor expects that the hub's own evictions never take the ready on-demand replicas below the floor while something is
// done. What Karpenter drains is not the hub's.
func (p *placing) keepsFloor(w *fleet.Workload, floor int, do func(context.Context)) {
	p.t.Helper()
	toll, err := w.Endure(p.ctx, floor, func(ctx context.Context) error {
		do(ctx)
		return nil
	})
	p.t.Logf("%+v", toll)
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(toll.Breaks).To(BeEmpty())
}
