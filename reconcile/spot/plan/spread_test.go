package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

func TestReplicasOfTheFullestDomainAreMovedFirst(t *testing.T) {
	s := plantest.DefaultSettings
	s.MaxMoves = policy.MoveLimit{Count: 3}
	// Nine on spot, of which the six highest slots are in a and b; all but three are to go.
	pods := plantest.Arrived(plantest.Zoned(plantest.Replicas(9, spottest.SpotOnly), "cccababab"), 2, capacity.OnDemand)
	pods[9].Domains, pods[10].Domains = []int32{0}, []int32{1}
	r := plan.Plan(plantest.SpreadObserved(pods, plantest.ThreeZones(true)), spottest.PolicyOf(30, 0), s, spottest.Epoch)
	var zones []string
	for _, e := range r.Evictions {
		at := slices.IndexFunc(pods, func(p plan.Pod) bool { return p.UID == e.Pod })
		zones = append(zones, pods[at].Node)
	}
	slices.Sort(zones)
	if got := strings.Join(zones, ""); got != "aab" && got != "abb" && got != "abc" {
		t.Errorf("moved from %q: %+v", got, r.Evictions)
	}
}

func TestNoReplicaIsMovedWhoseReplacementCouldNotBeScheduled(t *testing.T) {
	s := plantest.ThreeZones(true)
	s.Domains[2].OnDemand = false // and the template asks for all nodes to be counted
	s.MaxSkew = 1
	pods := plantest.Zoned(plantest.Replicas(5, spottest.SpotOnly), "aabbc")
	// One less in a or b leaves c behind by none, so that a replacement fits there; c itself has no on-demand node.
	r := plan.Plan(plantest.SpreadObserved(pods, s), spottest.PolicyOf(60, 0), plantest.DefaultSettings, spottest.Epoch)
	if len(r.Evictions) != 1 || r.Evictions[0].Name == "web-4" {
		t.Errorf("evictions %v", plantest.Names(r.Evictions))
	}
	pods = plantest.Zoned(plantest.Replicas(4, spottest.SpotOnly), "aabb") // c has none: a replacement fits there alone
	r = plan.Plan(plantest.SpreadObserved(pods, s), spottest.PolicyOf(50, 0), plantest.DefaultSettings, spottest.Epoch)
	if len(r.Evictions) != 0 || r.State != plan.StateWaiting || !strings.Contains(r.Reason, corev1.LabelTopologyZone) || !strings.Contains(r.Reason, "leaves only c ") {
		t.Errorf("%s: %s, evictions %v", r.State, r.Reason, plantest.Names(r.Evictions))
	}
	if !slices.ContainsFunc(r.Waits, func(w plan.Wait) bool { return w.Kind == plan.WaitTemplate && w.Subject == corev1.LabelTopologyZone }) {
		t.Errorf("waits %+v", r.Waits)
	}
}

func TestSlotsAreExchangedSoThatShrinkingKeepsTheSpread(t *testing.T) {
	m := policy.Mix{Percent: 50, Managed: true} // odd slots are on spot
	pods := plantest.Zoned(plantest.Replicas(12, m), "aabbccaabbcc")
	o := plantest.SpreadObserved(pods, plantest.ThreeZones(true))
	r := plan.Plan(o, spottest.PolicyOf(50, 0), plantest.DefaultSettings, spottest.Epoch)
	if len(r.Assignments) == 0 || len(r.Evictions) > 0 {
		t.Fatalf("assignments %+v, evictions %v", r.Assignments, plantest.Names(r.Evictions))
	}
	for _, assignment := range r.Assignments {
		at := slices.IndexFunc(pods, func(p plan.Pod) bool { return p.UID == assignment.Pod })
		if pods[at].Slot, pods[at].DeletionCost = assignment.Slot, policy.ParseCost(m.Cost(assignment.Slot)); m.Of(assignment.Slot) != pods[at].Capacity {
			t.Errorf("pod %s of %s gets slot %d", assignment.Name, pods[at].Capacity, assignment.Slot)
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
	o = plantest.SpreadObserved(pods, plantest.ThreeZones(true))
	if again := plan.Plan(o, spottest.PolicyOf(50, 0), plantest.DefaultSettings, spottest.Epoch); len(again.Assignments) > 0 || again.State != plan.StateConverged || again.Skew != "" {
		t.Errorf("the next plan: %+v", again)
	}
}

func TestReplicasThatWaitUnderATopologySpreadAreExplained(t *testing.T) {
	o := plantest.SpreadObserved(plantest.Zoned(plantest.Replicas(6, spottest.SpotOnly), "abcabc"), plantest.ThreeZones(true))
	plantest.PendingFor(&o.Pods[5], time.Minute)
	o.Pods[5].Domains = nil
	if r := plan.Plan(o, spottest.PolicyOf(100, 0), plantest.DefaultSettings, spottest.Epoch); len(r.Notes) != 1 || !strings.Contains(r.Notes[0], corev1.LabelTopologyZone) || !strings.Contains(r.Notes[0], "count together") {
		t.Errorf("notes %q", r.Notes)
	}
	if r := plan.Plan(plantest.SpreadObserved(plantest.Zoned(plantest.Replicas(6, spottest.SpotOnly), "abcabc"), plantest.ThreeZones(true)), spottest.PolicyOf(100, 0), plantest.DefaultSettings, spottest.Epoch); len(r.Notes) != 0 {
		t.Errorf("notes %q", r.Notes)
	}
}

// Whoever may create pods and nodes chooses how many domains there are to compare.
func TestTheOrderOfVictimsOverVeryManyDomainsIsThatOfTheirSlots(t *testing.T) {
	s := plantest.DefaultSettings
	s.MaxMoves = policy.MoveLimit{Count: 1}
	for domains, last := range map[int]bool{900: false, 1200: true} {
		spread := plan.Spread{Key: corev1.LabelHostname, MaxSkew: domains, Together: true}
		for n := range domains {
			spread.Domains = append(spread.Domains, plan.Domain{Name: fmt.Sprint(n), Spot: n < domains-1, OnDemand: n == domains-1})
		}
		pods := plantest.Arrived(plantest.Replicas(domains-1, spottest.SpotOnly), 2, capacity.OnDemand)
		for i := range pods {
			pods[i].Domains = []int32{int32(min(max(i-1, 0), domains-1))} // two on the first host, with the lowest slots
		}
		r := plan.Plan(plantest.SpreadObserved(pods, spread), spottest.PolicyOf(50, 0), s, spottest.Epoch)
		if len(r.Evictions) != 1 || (r.Evictions[0].Name == fmt.Sprint("web-", domains-2)) != last {
			t.Errorf("of %d domains: %v", domains, plantest.Names(r.Evictions))
		}
	}
}
