package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/crd"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/replay"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// TestFleetPlacements runs workloads over three members.
func TestFleetPlacements(t *testing.T) {
	fleets.beside(t)
	s := newFleetSite(t)
	t.Run("bad input has a condition with the reason, and the nearest plan", func(t *testing.T) { fleetBadInputSpec(t, s) })
	t.Run("the mix is exact at rest as the fleet grows and shrinks, and nothing is evicted", func(t *testing.T) { fleetScaleSpec(t, s) })
	t.Run("the API answers those who may ask, and shows the members that they may see", func(t *testing.T) { fleetAPISpec(t, s) })
	t.Run("a restart writes nothing, and neither does rest", func(t *testing.T) { fleetRestSpec(t, s) })
	t.Run("a hand-over in the middle of a move changes nothing of what is decided", func(t *testing.T) { fleetHandOverSpec(t, s) })
	t.Run("StatefulSets keep their ordinals, and an autoscaler of the hub cluster scales the fleet", func(t *testing.T) { fleetOrdinalSpec(t, s) })
	t.Run("the floor is held with WebApps as the target", func(t *testing.T) { fleetWebAppSpec(t, s) })
	t.Run("what another autoscaler scales in a member is left alone", func(t *testing.T) { fleetAutoscalerSpec(t, s) })
	t.Run("all spot of a member goes, and its replicas serve elsewhere on spot", func(t *testing.T) { fleetDroughtSpec(t, s) })
	t.Run("a member is lost, made up for, and back", func(t *testing.T) { fleetLossSpec(t, s) })
	t.Run("a FleetPlacement that is deleted hands its replicas back", func(t *testing.T) { fleetDeleteSpec(t, s) })
	t.Run("what became of spot is in the fleet's history", func(t *testing.T) { fleetHistorySpec(t, s) })
}

// fleetSite is a fleet whose hub keeps FleetPlacements.
type fleetSite struct {
	*fleet.Fleet
	t   *testing.T // of the whole fleet
	hub *insideHub
	k   client.Client // of the hub cluster

	history string // the folder in which it is kept
}

// settings are the hub's.
func (s *fleetSite) settings() fleet.Settings {
	settings := fleet.Settings{"fleet.enabled": true, "fleet.history.folder": s.history, "clusters.probeInterval": "1s", "clusters.probeTimeout": "2s"}
	for key, value := range parched {
		settings[key] = value
	}
	return settings
}

func newFleetSite(t *testing.T) *fleetSite {
	t.Helper()
	g := NewWithT(t)
	f := startFleet(t, "one", "two", "three")
	for _, m := range f.Members {
		g.Expect(m.AllowPlacement(t.Context())).To(Succeed())
	}
	scheme := runtime.NewScheme()
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	g.Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
	g.Expect(corev1.AddToScheme(scheme)).To(Succeed())
	g.Expect(autoscalingv1.AddToScheme(scheme)).To(Succeed())
	k, err := client.New(f.Hub.Config(), client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(k.Create(t.Context(), crd.New())).To(Succeed())
	g.Eventually(func() error { return k.List(t.Context(), &v1alpha1.FleetPlacementList{}) }, patience).Should(Succeed())
	for i, region := range []string{"north", "north", "south"} {
		registration := &corev1.Secret{}
		g.Expect(k.Get(t.Context(), client.ObjectKey{Namespace: fleet.Registrations, Name: f.Members[i].Name}, registration)).To(Succeed())
		registration.Labels["region"] = region
		g.Expect(k.Update(t.Context(), registration)).To(Succeed())
	}
	s := &fleetSite{Fleet: f, t: t, k: k, history: t.TempDir()}
	s.hub = startHub(t, f, "fleet", s.settings())
	return s
}

// overFleetCase is one workload that is in all members, and its FleetPlacement.
type overFleetCase struct {
	*WithT
	site      *fleetSite
	ctx       context.Context
	namespace string
	workloads []*fleet.Workload
	placement *v1alpha1.FleetPlacement
}

// delivered makes a namespace and a Deployment in the members, as GitOps would, and nothing in the hub cluster but a namespace.
func (s *fleetSite) delivered(t *testing.T, replicas int) *overFleetCase {
	t.Helper()
	return s.deliveredAs(t, func(namespace string) client.Object { return fleet.Deployment(namespace, "web", replicas, nil) })
}

// deliveredAs is delivered for another workload of the name web.
func (s *fleetSite) deliveredAs(t *testing.T, workload func(namespace string) client.Object) *overFleetCase {
	t.Helper()
	c := &overFleetCase{WithT: NewWithT(t), site: s, ctx: t.Context()}
	c.SetDefaultEventuallyTimeout(patience)
	c.SetDefaultEventuallyPollingInterval(200 * time.Millisecond)
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "over-"}}
	c.Expect(s.k.Create(c.ctx, made)).To(Succeed())
	c.namespace = made.Name
	for _, m := range s.Members {
		c.Expect(m.Client().Create(c.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace, Labels: fleet.Enabled()}})).To(Succeed())
		c.Eventually(func() error {
			return m.Client().Get(c.ctx, client.ObjectKey{Namespace: c.namespace, Name: "default"}, &corev1.ServiceAccount{})
		}).Should(Succeed())
		w, err := m.Create(c.ctx, workload(c.namespace))
		c.Expect(err).NotTo(HaveOccurred())
		c.workloads = append(c.workloads, w)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.shown())
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if c.placement != nil {
			c.Expect(client.IgnoreNotFound(s.k.Delete(ctx, c.placement))).To(Succeed())
			c.Eventually(func() bool { return c.read(ctx) == nil }).Should(BeTrue(), "the FleetPlacement does not go")
		}
		for _, m := range s.Members {
			c.Expect(m.DeleteNamespace(ctx, c.namespace)).To(Succeed())
		}
	})
	return c
}

// place makes the FleetPlacement.
func (c *overFleetCase) place(replicas, floor int, edit ...func(*v1alpha1.FleetPlacementSpec)) {
	c.placement = &v1alpha1.FleetPlacement{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "web"},
		Spec: v1alpha1.FleetPlacementSpec{
			TargetRef: v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, Replicas: ptr.To(int32(replicas)),
			Capacity: v1alpha1.Capacity{MinOnDemand: int32(floor), SpotPercentage: ptr.To(int32(70))},
			Pace:     v1alpha1.Pace{MaxMoves: ptr.To(int32(50)), Cooldown: &v1alpha1.Duration{Duration: metav1.Duration{Duration: time.Second}}},
		},
	}
	for _, change := range edit {
		change(&c.placement.Spec)
	}
	c.Expect(c.site.k.Create(c.ctx, c.placement)).To(Succeed())
}

// read returns the FleetPlacement as it is; nil: it is gone.
func (c *overFleetCase) read(ctx context.Context) *v1alpha1.FleetPlacement {
	p := &v1alpha1.FleetPlacement{}
	if err := c.site.k.Get(ctx, client.ObjectKeyFromObject(c.placement), p); err != nil {
		return nil
	}
	return p
}

// shown is what there is, for people.
func (c *overFleetCase) shown() string {
	text := ""
	if c.placement != nil {
		if p := c.read(context.Background()); p != nil {
			text += fmt.Sprintf("%+v\n%+v\n", p.Spec, p.Status)
		}
	}
	for _, w := range c.workloads {
		mix, err := w.Mix(context.Background())
		text += fmt.Sprintf("%s: %s %v\n", w.Member.Name, mix, err)
	}
	return text
}

// patch changes the spec, as a person would.
func (c *overFleetCase) patch(change func(*v1alpha1.FleetPlacementSpec)) {
	before := c.read(c.ctx)
	after := before.DeepCopy()
	change(&after.Spec)
	c.Expect(c.site.k.Patch(c.ctx, after, client.MergeFrom(before))).To(Succeed())
}

// mix counts the replicas of all members.
func (c *overFleetCase) mix() (all fleet.Mix) {
	for _, w := range c.workloads {
		mix, err := w.Mix(c.ctx)
		c.Expect(err).NotTo(HaveOccurred())
		all.Spot, all.OnDemand, all.Unknown, all.Ready = all.Spot+mix.Spot, all.OnDemand+mix.OnDemand, all.Unknown+mix.Unknown, all.Ready+mix.Ready
	}
	return all
}

// placed waits until the FleetPlacement says that it is, of its newest generation.
func (c *overFleetCase) placed() {
	c.Eventually(func(g Gomega) {
		p := c.read(c.ctx)
		g.Expect(p).NotTo(BeNil())
		g.Expect(p.Status.ObservedGeneration).To(Equal(p.Generation))
		ready := apimeta.FindStatusCondition(p.Status.Conditions, reconcile.ConditionReady)
		g.Expect(ready).NotTo(BeNil())
		g.Expect(ready.Status).To(Equal(metav1.ConditionTrue), "%s: %s", ready.Reason, ready.Message)
	}).Should(Succeed())
}

// exactly waits until the fleet has that many replicas of each type, all ready, and says so.
func (c *overFleetCase) exactly(spot, onDemand int) {
	c.Eventually(c.mix).Should(Equal(fleet.Mix{Spot: spot, OnDemand: onDemand, Ready: spot + onDemand}), func() string { return c.shown() })
	c.placed()
	c.Expect(c.mix()).To(Equal(fleet.Mix{Spot: spot, OnDemand: onDemand, Ready: spot + onDemand}))
}

// evictions counts those that the hub asked for in the namespace.
func (c *overFleetCase) evictions() int {
	n := 0
	for _, m := range c.site.Members {
		events, err := m.Cluster.Audit().Events(kube.EvictionAttempts, fleet.ByHub, kube.InNamespace(c.namespace))
		c.Expect(err).NotTo(HaveOccurred())
		n += len(events)
	}
	return n
}

func fleetScaleSpec(t *testing.T, s *fleetSite) {
	c := s.delivered(t, 0)
	c.place(60, 6)
	c.exactly(42, 18)
	c.patch(func(p *v1alpha1.FleetPlacementSpec) { p.Replicas = ptr.To(int32(200)) })
	c.exactly(140, 60)
	c.patch(func(p *v1alpha1.FleetPlacementSpec) { p.Replicas = ptr.To(int32(30)) })
	c.exactly(21, 9)
	c.patch(func(p *v1alpha1.FleetPlacementSpec) { p.Capacity.MinOnDemand = 20 })
	c.exactly(10, 20)
	c.Expect(c.evictions()).To(BeZero())
	p := c.read(c.ctx)
	c.Expect(p.Status.Selector).To(Equal("app=web"))
	c.Expect(p.Status.Members).To(HaveLen(3))
	for _, w := range c.workloads {
		mix, err := w.Mix(c.ctx)
		c.Expect(err).NotTo(HaveOccurred())
		c.Expect(mix.All()).To(Equal(10), "an even split: %s", c.shown())
	}
}

// versions are those of everything that could be written.
func (c *overFleetCase) versions() (all []string) {
	all = append(all, c.read(c.ctx).ResourceVersion)
	for _, w := range c.workloads {
		d := &appsv1.Deployment{}
		c.Expect(w.Member.Client().Get(c.ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.Name}, d)).To(Succeed())
		all = append(all, d.ResourceVersion)
		pods, err := w.Pods(c.ctx)
		c.Expect(err).NotTo(HaveOccurred())
		for i := range pods {
			all = append(all, pods[i].Name+" "+pods[i].ResourceVersion)
		}
	}
	return all
}

func fleetRestSpec(t *testing.T, s *fleetSite) {
	c := s.delivered(t, 0)
	c.place(12, 3)
	c.exactly(8, 4)
	before := c.versions()
	s.hub.stop(t)
	s.hub = startHub(s.t, s.Fleet, "fleet-again", s.settings())
	c.placed()
	c.Consistently(c.versions, 5*time.Second, time.Second).Should(Equal(before))
	c.Expect(c.evictions()).To(BeZero())
}

// fleetHandOverSpec has a replica of the hub stop as soon as it has begun to scale, and another go on.
func fleetHandOverSpec(t *testing.T, s *fleetSite) {
	c := s.delivered(t, 0)
	c.place(20, 4)
	c.exactly(14, 6)
	next := startHub(s.t, s.Fleet, "fleet-next", s.settings())
	c.patch(func(p *v1alpha1.FleetPlacementSpec) { p.Replicas, p.Capacity.MinOnDemand = ptr.To(int32(80)), 40 })
	c.Eventually(func() int { return c.mix().All() }).Should(BeNumerically(">", 20))
	s.hub.stop(t)
	s.hub = next
	c.exactly(40, 40)
	c.Expect(c.evictions()).To(BeZero())
	for _, w := range c.workloads {
		mix, err := w.Mix(c.ctx)
		c.Expect(err).NotTo(HaveOccurred())
		c.Expect(mix.All()).To(BeNumerically("~", 27, 1), c.shown())
	}
}

// fleetOrdinalSpec has a StatefulSet, and scales it as a HorizontalPodAutoscaler in the hub cluster does.
func fleetOrdinalSpec(t *testing.T, s *fleetSite) {
	c := s.deliveredAs(t, func(namespace string) client.Object { return fleet.StatefulSet(namespace, "web", 0, nil) })
	c.place(9, 3, func(p *v1alpha1.FleetPlacementSpec) { p.TargetRef.Kind = "StatefulSet" })
	c.exactly(6, 3)
	scale := &autoscalingv1.Scale{}
	c.Expect(s.k.SubResource("scale").Get(c.ctx, c.placement, scale)).To(Succeed())
	c.Expect(scale.Status.Selector).To(Equal("app=web"))
	c.Expect(scale.Status.Replicas).To(Equal(int32(9)))
	scale.Spec.Replicas = 15
	c.Expect(s.k.SubResource("scale").Update(c.ctx, c.placement, client.WithSubResourceBody(scale))).To(Succeed())
	c.exactly(10, 5)
	for _, w := range c.workloads {
		pods, err := w.Pods(c.ctx)
		c.Expect(err).NotTo(HaveOccurred())
		var names []string
		for i := range pods {
			names = append(names, pods[i].Name)
		}
		c.Expect(names).To(ConsistOf("web-0", "web-1", "web-2", "web-3", "web-4"))
	}
}

// fleetHistorySpec looks at what the hub has written while the other specs ran, through two restarts: in one of the members spot was gone.
func fleetHistorySpec(t *testing.T, s *fleetSite) {
	g := NewWithT(t)
	g.Eventually(func(g Gomega) {
		traces, err := replay.FindTraces([]string{s.history})
		g.Expect(err).NotTo(HaveOccurred())
		zones := map[string]bool{}
		for _, trace := range traces {
			g.Expect(trace.Name).To(ContainSubstring("/web"))
			for _, zone := range trace.Zones {
				zones[zone.Name] = zones[zone.Name] || slices.Min(zone.Capacity) < replay.Open
			}
		}
		g.Expect(zones).To(HaveKeyWithValue("one", true))
		g.Expect(zones).To(HaveKey("two"))
	}, 2*patience, time.Second).Should(Succeed())
	files, err := filepath.Glob(filepath.Join(s.history, "*", "one.json"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).NotTo(BeEmpty())
	text, err := os.ReadFile(files[0])
	g.Expect(err).NotTo(HaveOccurred())
	var file struct {
		Metadata struct {
			Requirements string `json:"shape"`
		}
	}
	g.Expect(json.Unmarshal(text, &file)).To(Succeed())
	_, err = capacity.ParseRequirements(file.Metadata.Requirements)
	g.Expect(err).NotTo(HaveOccurred())
}
