package integration

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// TestFurtherKindsOfWorkloads places workloads that are neither Deployments nor StatefulSets: ReplicaSets without a
// Deployment, and kinds that come with a CRD, which one member gets late.
func TestFurtherKindsOfWorkloads(t *testing.T) {
	fleets.beside(t)
	f := startFleet(t, "one")
	m := f.Members[0]
	g := NewWithT(t)
	g.Expect(letRead(t.Context(), m)).To(Succeed())
	g.Expect(install(t.Context(), m, cloneSets, "clonesets")).To(Succeed())
	runControllers(t, m)
	h := startHub(t, f, "kinds", fleet.Settings{"spot.workloadKinds": []map[string]any{
		{"apiVersion": cloneSets.GroupVersion().String(), "kind": cloneSets.Kind},
		{"apiVersion": rollouts.GroupVersion().String(), "kind": rollouts.Kind, "statusReplicasPath": ".status.HPAReplicas"},
	}})

	t.Run("side by side", func(t *testing.T) {
		t.Run("a ReplicaSet without a Deployment", func(t *testing.T) {
			specs.beside(t)
			p := place(t, h, m, fleet.Enabled())
			lifeSpec(p, func(namespace string, replicas int, annotations map[string]string) client.Object {
				return fleet.ReplicaSet(namespace, "web", replicas, annotations)
			})
		})
		t.Run("a kind that owns pods", func(t *testing.T) {
			specs.beside(t)
			p := place(t, h, m, fleet.Enabled())
			lifeSpec(p, func(namespace string, replicas int, annotations map[string]string) client.Object {
				return further(t, cloneSets, namespace, "web", replicas, annotations)
			})
		})
		t.Run("a kind that owns ReplicaSets, in a member that gets it late", func(t *testing.T) {
			// Before it waits for its turn: the hub asks ever less often for a group that is missing.
			before := place(t, h, m, fleet.Enabled())
			before.Expect(before.caches(rollouts)).To(BeFalse())
			before.Expect(install(before.ctx, m, rollouts, "rollouts")).To(Succeed())
			specs.beside(t)
			p := place(t, h, m, fleet.Enabled())
			p.Eventually(func() (bool, error) { return p.caches(rollouts) }).Should(BeTrue())
			w := lifeSpec(p, func(namespace string, replicas int, annotations map[string]string) client.Object {
				return further(t, rollouts, namespace, "web", replicas, annotations)
			})
			p.rolloutSpec(w)
		})
	})
}

// lifeSpec takes a workload through its life: made, scaled up and down with the exact mix and no eviction, and moved when its
// policy changes.
func lifeSpec(p *placing, make func(namespace string, replicas int, annotations map[string]string) client.Object) *fleet.Workload {
	p.t.Helper()
	const percent, floor = 70, 1
	w := p.create(make(p.namespace, 10, fleet.Policy(percent, floor)))
	p.exactly(w, 10, percent, floor)
	p.Expect(p.slots(w)).To(ConsistOf(firstSlots(10)))
	for _, replicas := range []int{16, 5, 12} {
		p.Expect(w.Scale(p.ctx, replicas)).To(Succeed())
		p.exactly(w, replicas, percent, floor)
	}
	p.Expect(p.state(w)()).To(Equal(plimsollv1.WorkloadState_WORKLOAD_STATE_CONVERGED))
	history := p.follow(w)
	p.Expect(w.Annotate(p.ctx, fleet.Policy(30, floor))).To(Succeed()) // 8 on spot become 3
	p.mixed(w, 12, 30, floor)
	p.onlyMovedBy(history, 12, 5, 1)
	shown, err := p.hub.Workload(p.ctx, w)
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(shown.GetKind()).To(Equal(w.Kind))
	p.Expect(shown.GetPods()).To(HaveLen(12))
	return w
}

// rolloutSpec changes the template: the new ReplicaSet gets the formula's mix from its first slot on.
func (p *placing) rolloutSpec(w *fleet.Workload) {
	p.t.Helper()
	before := len(p.evictions())
	p.Expect(w.Retemplate(p.ctx, "images.example.com/app:2")).To(Succeed())
	p.Eventually(func(g Gomega) {
		for _, pod := range p.pods(w) {
			g.Expect(pod.Spec.Containers[0].Image).To(Equal("images.example.com/app:2"))
		}
	}).Should(Succeed())
	p.mixed(w, 12, 30, 1)
	p.Expect(p.slots(w)).To(ConsistOf(firstSlots(12)))
	p.moved(before) // a rollout moves nothing
}

// caches reports whether the hub holds a cache of a kind in the member.
func (p *placing) caches(kind schema.GroupVersionKind) (bool, error) {
	shown, err := p.hub.Cluster(p.ctx, p.member.Name)
	if err != nil {
		return false, err
	}
	for _, one := range shown.GetKinds() {
		if one.GetName() == kind.GroupVersion().String()+" "+kind.Kind {
			return one.GetEngaged(), nil
		}
	}
	return false, nil
}
