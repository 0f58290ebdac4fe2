package integration

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

var webAppKind = schema.GroupVersionKind{Group: "apps.plimsoll.dev", Version: "v1", Kind: "WebApp"}

// fleetWebAppSpec has a WebApp in all members as the target: the scale subresource is the WebApp's, and the floor is held among the
// pods of its Deployment while the fleet grows and shrinks.
func fleetWebAppSpec(t *testing.T, s *fleetSite) {
	c := &overFleetCase{WithT: NewWithT(t), site: s, ctx: t.Context()}
	c.SetDefaultEventuallyTimeout(patience)
	for _, m := range s.Members {
		c.Expect(m.InstallWebApps(c.ctx)).To(Succeed())
	}
	for _, m := range s.Members {
		c.Eventually(func() (string, error) {
			found, err := webAppCondition(c.ctx, s.hub, m.Name)
			return found.GetReason(), err
		}).Should(Equal("Current"))
	}
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "over-"}}
	c.Expect(s.k.Create(c.ctx, made)).To(Succeed())
	c.namespace = made.Name
	for _, m := range s.Members {
		c.Expect(m.Client().Create(c.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace, Labels: fleet.Enabled()}})).To(Succeed())
		app := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"spot":       map[string]any{},
			"containers": []any{map[string]any{"name": "web", "image": "shop:1"}},
		}}}
		app.SetGroupVersionKind(webAppKind)
		app.SetNamespace(c.namespace)
		app.SetName("web")
		c.Expect(m.Client().Create(c.ctx, app)).To(Succeed())
	}
	const floor = 5
	c.place(9, floor, func(p *v1alpha1.FleetPlacementSpec) {
		p.TargetRef = v1alpha1.TargetRef{APIVersion: webAppKind.GroupVersion().String(), Kind: webAppKind.Kind, Name: "web"}
		p.Capacity.SpotPercentage = ptr.To(int32(100))
	})
	t.Cleanup(func() { // the test's own context has ended by then
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		c.Expect(client.IgnoreNotFound(s.k.Delete(ctx, c.placement))).To(Succeed())
	})
	settled, short := false, 0
	exactly := func(spot, onDemand int) {
		c.Eventually(func(g Gomega) {
			seen := c.podsOfWebApps(g)
			if settled && seen[kube.OnDemand] < floor {
				short++
			}
			g.Expect(seen).To(Equal(map[string]int{kube.Spot: spot, kube.OnDemand: onDemand}))
		}).Should(Succeed())
		c.placed()
		settled = true
	}
	exactly(4, 5)
	for _, replicas := range []int32{15, 6} {
		c.patch(func(p *v1alpha1.FleetPlacementSpec) { p.Replicas = ptr.To(replicas) })
		exactly(int(replicas)-floor, floor)
	}
	c.Expect(short).To(BeZero(), "fewer on-demand replicas than the floor were ready")
	c.Expect(c.evictions()).To(BeZero())
}

// podsOfWebApps counts the pods of all members that are ready, by capacity type.
func (c *overFleetCase) podsOfWebApps(g Gomega) map[string]int {
	seen := map[string]int{}
	for _, m := range c.site.Members {
		var pods corev1.PodList
		g.Expect(m.Client().List(c.ctx, &pods, client.InNamespace(c.namespace))).To(Succeed())
		for i := range pods.Items {
			if pod := &pods.Items[i]; pod.DeletionTimestamp == nil && fleet.Ready(pod) {
				capacity, err := m.CapacityOf(c.ctx, pod)
				g.Expect(err).NotTo(HaveOccurred())
				seen[capacity]++
			}
		}
	}
	return seen
}
