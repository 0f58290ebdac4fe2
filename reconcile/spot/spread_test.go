package spot

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/admissiontest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/nodes"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
)

const testZone = corev1.LabelTopologyZone

// zonesOf has nodes of both types in zones a and b, and of those named in zone c.
func zonesOf(inC ...capacity.Type) *nodes.Table {
	t := nodes.NewTable()
	add := func(zone string, capacityType capacity.Type) {
		node := &corev1.Node{}
		node.Name, node.Labels = zone+"-"+string(capacityType), map[string]string{testSteer: string(capacityType), testZone: zone, corev1.LabelHostname: zone + "-" + string(capacityType)}
		t.Set(node, &nodes.Interruptions{}, spottest.Epoch)
	}
	for _, zone := range []string{"a", "b"} {
		add(zone, capacity.Spot)
		add(zone, capacity.OnDemand)
	}
	for _, capacityType := range inC {
		add("c", capacityType)
	}
	return t
}

// spreading is a pod spec with constraints over a key that must hold.
func spreading(key string, change func(*corev1.TopologySpreadConstraint)) *corev1.PodSpec {
	c := corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule}
	if change != nil {
		change(&c)
	}
	return &corev1.PodSpec{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{c}}
}

// spreadsIn reads what a template's constraints mean in a member.
func spreadsIn(t *testing.T, spec *corev1.PodSpec, table *nodes.Table) []plan.Spread {
	t.Helper()
	capacityType := testCapacity(t)
	shape := capacity.RequirementsOf(spec, "shop", "", capacityType)
	asked := func() ([]corev1.TopologySpreadConstraint, capacity.NodeRequirements) {
		return shape.SpreadConstraints(), capacity.NodeRequirementsOf(shape)
	}
	return table.Spreads(asked, &nodes.SpreadMemo{}, capacityType)
}

func TestCapacityTypesAreSpreadTogetherWhereEveryDomainHasNodesOfBoth(t *testing.T) {
	pol := func(p corev1.NodeInclusionPolicy) func(*corev1.TopologySpreadConstraint) {
		return func(c *corev1.TopologySpreadConstraint) { c.NodeAffinityPolicy = &p }
	}
	pinned := spreading(testZone, nil)
	pinned.NodeSelector = map[string]string{testZone: "a"}
	for name, c := range map[string]struct {
		spec    *corev1.PodSpec
		nodes   *nodes.Table
		apart   string // part of the reason; empty: together
		domains int
	}{
		"both types in every zone":                {spreading(testZone, nil), zonesOf(capacity.Spot, capacity.OnDemand), "", 3},
		"a zone without spot nodes":               {spreading(testZone, nil), zonesOf(capacity.OnDemand), "c has no spot node", 3},
		"a zone without on-demand nodes":          {spreading(testZone, nil), zonesOf(capacity.Spot), "c has no on-demand node", 3},
		"a zone that the template leaves out":     {pinned, zonesOf(capacity.Spot, capacity.OnDemand), "b has no spot node that the template allows", 1},
		"each node is a domain of one type":       {spreading(corev1.LabelHostname, nil), zonesOf(), "has no", 4},
		"the template asks for its own nodes":     {spreading(testZone, pol(corev1.NodeInclusionPolicyHonor)), zonesOf(), "nodeAffinityPolicy", 2},
		"the template asks for all nodes":         {spreading(testZone, pol(corev1.NodeInclusionPolicyIgnore)), zonesOf(capacity.Spot), "", 3},
		"a key that no node has":                  {spreading("rack", nil), zonesOf(), "no node has the required labels", 0},
		"taints decide which nodes count as well": {spreading(testZone, func(c *corev1.TopologySpreadConstraint) { c.NodeTaintsPolicy = new(corev1.NodeInclusionPolicyHonor) }), zonesOf(), "nodeTaintsPolicy", 2},
	} {
		got := spreadsIn(t, c.spec, c.nodes)
		if len(got) != 1 || got[0].Together != (c.apart == "") || !strings.Contains(got[0].Apart, c.apart) || len(got[0].Domains) != c.domains {
			t.Errorf("%s: %+v, want apart for %q and %d domains", name, got, c.apart, c.domains)
		}
	}
	if got := spreadsIn(t, spreading(testZone, func(c *corev1.TopologySpreadConstraint) { c.WhenUnsatisfiable = corev1.ScheduleAnyway }), zonesOf()); len(got) != 0 {
		t.Errorf("a constraint that need not hold: %+v", got)
	}
}

func TestAdmissionHasAllNodesCountedWhereBothTypesAreSpreadTogether(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*corev1.TopologySpreadConstraint)
		together []string
		want     corev1.NodeInclusionPolicy
	}{
		"together":               {nil, []string{testZone}, corev1.NodeInclusionPolicyIgnore},
		"apart":                  {nil, nil, ""},
		"it says so itself":      {func(c *corev1.TopologySpreadConstraint) { c.NodeAffinityPolicy = new(corev1.NodeInclusionPolicyHonor) }, []string{testZone}, corev1.NodeInclusionPolicyHonor},
		"it need not hold":       {func(c *corev1.TopologySpreadConstraint) { c.WhenUnsatisfiable = corev1.ScheduleAnyway }, []string{testZone}, ""},
		"it looks at taints":     {func(c *corev1.TopologySpreadConstraint) { c.NodeTaintsPolicy = new(corev1.NodeInclusionPolicyHonor) }, []string{testZone}, ""},
		"it is over another key": {func(c *corev1.TopologySpreadConstraint) { c.TopologyKey = "rack" }, []string{testZone}, ""},
	} {
		pod := spottest.PodWith(nil, nil, nil)
		pod.Spec = *spreading(testZone, c.change)
		in := admissiontest.IncomingOf(pod)
		in.Together = c.together
		got := admissiontest.Patched(t, pod, admissiontest.MustPatcher(t).AppendPatch(nil, in, spottest.ByConfiguration, plan.Reservation{ID: "1", Slot: 0, Capacity: capacity.Spot}))
		if pol := capacity.InclusionPolicy(got.Spec.TopologySpreadConstraints[0].NodeAffinityPolicy); pol != c.want {
			t.Errorf("%s: %q, want %q", name, pol, c.want)
		}
		again := admissiontest.IncomingOf(got)
		again.Together = c.together
		if patch := admissiontest.MustPatcher(t).AppendPatch(nil, again, spottest.ByConfiguration, plan.Reservation{ID: "1", Slot: 0, Capacity: capacity.Spot}); len(patch) > 0 {
			t.Errorf("%s: the second patch changes %s", name, patch)
		}
	}
}

func TestASkewThatIsNotKeptIsExplainedWithItsConstraintDomainAndReason(t *testing.T) {
	o := plantest.SpreadObserved(plantest.Zoned(plantest.Replicas(6, spottest.SpotOnly), "aaabbc"), plantest.ThreeZones(false))
	r := plan.Plan(o, spottest.PolicyOf(100, 0), plantest.DefaultSettings, spottest.Epoch)
	const want = "the topology spread constraint over topology.kubernetes.io/zone (maxSkew 1) is not satisfied over both capacity types: a has 3, c 1; each capacity type is spread on its own, because c has no spot node that the template allows"
	if r.Skew != want || !slices.Contains(r.Notes, want) {
		t.Errorf("%q, notes %q", r.Skew, r.Notes)
	}
	before, now := report.Workload{}, report.Of("one", policy.WorkloadKey{}, &report.Planned{Observed: o, Plan: r})
	told := report.Announcements(&before, true, &now)
	if !slices.ContainsFunc(told, func(a report.Announcement) bool {
		return a.Warning && a.Reason == "Skewed" && strings.Contains(a.Message, "a has 3, c 1")
	}) {
		t.Errorf("reported %+v", told)
	}
	for _, a := range report.Announcements(&now, true, &now) {
		if a.Reason == "Skewed" {
			t.Errorf("reported again: %+v", a)
		}
	}
}
