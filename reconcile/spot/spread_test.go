package spot

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

const testZone = corev1.LabelTopologyZone

// zonesOf has nodes of both types in zones a and b, and of those named in zone c.
func zonesOf(inC ...capacity.Type) *nodeTable {
	t := newNodeTable()
	add := func(zone string, capacityType capacity.Type) {
		node := &corev1.Node{}
		node.Name, node.Labels = zone+"-"+string(capacityType), map[string]string{testSteer: string(capacityType), testZone: zone, corev1.LabelHostname: zone + "-" + string(capacityType)}
		t.set(node, &Interruptions{}, epoch)
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
func spreadsIn(t *testing.T, spec *corev1.PodSpec, nodes *nodeTable) []Spread {
	t.Helper()
	capacityType := testCapacity(t)
	shape := capacity.RequirementsOf(spec, "shop", "", capacityType)
	return nodes.spreads(&template{shape: shape, needs: capacity.NodeRequirementsOf(shape), constraints: shape.SpreadConstraints()}, capacityType)
}

func TestCapacityTypesAreSpreadTogetherWhereEveryDomainHasNodesOfBoth(t *testing.T) {
	pol := func(p corev1.NodeInclusionPolicy) func(*corev1.TopologySpreadConstraint) {
		return func(c *corev1.TopologySpreadConstraint) { c.NodeAffinityPolicy = &p }
	}
	pinned := spreading(testZone, nil)
	pinned.NodeSelector = map[string]string{testZone: "a"}
	for name, c := range map[string]struct {
		spec    *corev1.PodSpec
		nodes   *nodeTable
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
		pod := podOf(nil, nil, nil)
		pod.Spec = *spreading(testZone, c.change)
		in := incomingOf(pod)
		in.Together = c.together
		got := patched(t, pod, mustPatcher(t).AppendPatch(nil, in, byConfiguration, Reservation{ID: "1", Slot: 0, Capacity: capacity.Spot}))
		if pol := capacity.InclusionPolicy(got.Spec.TopologySpreadConstraints[0].NodeAffinityPolicy); pol != c.want {
			t.Errorf("%s: %q, want %q", name, pol, c.want)
		}
		again := incomingOf(got)
		again.Together = c.together
		if patch := mustPatcher(t).AppendPatch(nil, again, byConfiguration, Reservation{ID: "1", Slot: 0, Capacity: capacity.Spot}); len(patch) > 0 {
			t.Errorf("%s: the second patch changes %s", name, patch)
		}
	}
}

// zoned puts replicas into zones, of which each letter is one.
func zoned(pods []Pod, zones string) []Pod {
	for i := range pods {
		at := int32(strings.IndexByte("abc", zones[i]))
		pods[i].Node, pods[i].Domains = zones[i:i+1], []int32{at}
	}
	return pods
}

func threeZones(together bool) Spread {
	s := Spread{Key: testZone, MaxSkew: 1, MinDomains: 1, Together: together}
	for _, name := range []string{"a", "b", "c"} {
		s.Domains = append(s.Domains, Domain{Name: name, Spot: true, OnDemand: true})
	}
	if !together {
		s.Apart = "c has no spot node that the template allows"
	}
	return s
}

func spreadObserved(pods []Pod, s Spread) Observed {
	o := observedOf(pods, len(pods))
	o.Owners[0].Spreads = []Spread{s}
	return o
}

func TestReplicasOfTheFullestDomainAreMovedFirst(t *testing.T) {
	s := testSettings
	s.MaxMoves = policy.MoveLimit{Count: 3}
	// Nine on spot, of which the six highest slots are in a and b; all but three are to go.
	pods := arrived(zoned(replicas(9, spotOnly), "cccababab"), 2, capacity.OnDemand)
	pods[9].Domains, pods[10].Domains = []int32{0}, []int32{1}
	r := Plan(spreadObserved(pods, threeZones(true)), policyOf(30, 0), s, epoch)
	var zones []string
	for _, e := range r.Evictions {
		at := slices.IndexFunc(pods, func(p Pod) bool { return p.UID == e.Pod })
		zones = append(zones, pods[at].Node)
	}
	slices.Sort(zones)
	if got := strings.Join(zones, ""); got != "aab" && got != "abb" && got != "abc" {
		t.Errorf("moved from %q: %+v", got, r.Evictions)
	}
}

func TestNoReplicaIsMovedWhoseReplacementCouldNotBeScheduled(t *testing.T) {
	s := threeZones(true)
	s.Domains[2].OnDemand = false // and the template asks for all nodes to be counted
	s.MaxSkew = 1
	pods := zoned(replicas(5, spotOnly), "aabbc")
	// One less in a or b leaves c behind by none, so that a replacement fits there; c itself has no on-demand node.
	r := Plan(spreadObserved(pods, s), policyOf(60, 0), testSettings, epoch)
	if len(r.Evictions) != 1 || r.Evictions[0].Name == "web-4" {
		t.Errorf("evictions %v", names(r.Evictions))
	}
	pods = zoned(replicas(4, spotOnly), "aabb") // c has none: a replacement fits there alone
	r = Plan(spreadObserved(pods, s), policyOf(50, 0), testSettings, epoch)
	if len(r.Evictions) != 0 || r.State != StateWaiting || !strings.Contains(r.Reason, testZone) || !strings.Contains(r.Reason, "leaves only c ") {
		t.Errorf("%s: %s, evictions %v", r.State, r.Reason, names(r.Evictions))
	}
	if !slices.ContainsFunc(r.Waits, func(w Wait) bool { return w.Kind == WaitTemplate && w.Subject == testZone }) {
		t.Errorf("waits %+v", r.Waits)
	}
}

func TestSlotsAreExchangedSoThatShrinkingKeepsTheSpread(t *testing.T) {
	m := policy.Mix{Percent: 50, Managed: true} // odd slots are on spot
	pods := zoned(replicas(12, m), "aabbccaabbcc")
	o := spreadObserved(pods, threeZones(true))
	r := Plan(o, policyOf(50, 0), testSettings, epoch)
	if len(r.Stamps) == 0 || len(r.Evictions) > 0 {
		t.Fatalf("stamps %+v, evictions %v", r.Stamps, names(r.Evictions))
	}
	for _, stamp := range r.Stamps {
		at := slices.IndexFunc(pods, func(p Pod) bool { return p.UID == stamp.Pod })
		if pods[at].Slot, pods[at].DeletionCost = stamp.Slot, m.Cost(stamp.Slot); m.Of(stamp.Slot) != pods[at].Capacity {
			t.Errorf("pod %s of %s gets slot %d", stamp.Name, pods[at].Capacity, stamp.Slot)
		}
	}
	for n := range pods {
		var counts [3]int
		for _, pod := range pods {
			if pod.Slot < n {
				counts[pod.Domains[0]]++
			}
		}
		if slices.Max(counts[:])-slices.Min(counts[:]) > 1 {
			t.Errorf("the first %d slots are in zones %v", n, counts)
		}
	}
	o = spreadObserved(pods, threeZones(true))
	if again := Plan(o, policyOf(50, 0), testSettings, epoch); len(again.Stamps) > 0 || again.State != StateConverged || again.Skew != "" {
		t.Errorf("the next plan: %+v", again)
	}
}

func TestASkewThatIsNotKeptIsExplainedWithItsConstraintDomainAndReason(t *testing.T) {
	o := spreadObserved(zoned(replicas(6, spotOnly), "aaabbc"), threeZones(false))
	r := Plan(o, policyOf(100, 0), testSettings, epoch)
	const want = "the topology spread constraint over topology.kubernetes.io/zone (maxSkew 1) is not satisfied over both capacity types: a has 3, c 1; each capacity type is spread on its own, because c has no spot node that the template allows"
	if r.Skew != want || !slices.Contains(r.Notes, want) {
		t.Errorf("%q, notes %q", r.Skew, r.Notes)
	}
	before, now := WorkloadView{}, viewOf("one", policy.WorkloadKey{}, &planned{observed: o, plan: r})
	told := announcements(&before, true, &now)
	if !slices.ContainsFunc(told, func(a announcement) bool {
		return a.warning && a.reason == "Skewed" && strings.Contains(a.message, "a has 3, c 1")
	}) {
		t.Errorf("told %+v", told)
	}
	for _, a := range announcements(&now, true, &now) {
		if a.reason == "Skewed" {
			t.Errorf("told again: %+v", a)
		}
	}
}

func TestReplicasThatWaitUnderATopologySpreadAreExplained(t *testing.T) {
	o := spreadObserved(zoned(replicas(6, spotOnly), "abcabc"), threeZones(true))
	o.Pods[5].pendingFor(time.Minute)
	o.Pods[5].Domains = nil
	if r := Plan(o, policyOf(100, 0), testSettings, epoch); len(r.Notes) != 1 || !strings.Contains(r.Notes[0], testZone) || !strings.Contains(r.Notes[0], "count together") {
		t.Errorf("notes %q", r.Notes)
	}
	if r := Plan(spreadObserved(zoned(replicas(6, spotOnly), "abcabc"), threeZones(true)), policyOf(100, 0), testSettings, epoch); len(r.Notes) != 0 {
		t.Errorf("notes %q", r.Notes)
	}
}
