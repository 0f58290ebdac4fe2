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

func TestReplicasOfTheFullestDomainAreMovedFirst(t *testing.T) {
	s := DefaultSettings
	s.MaxMoves = policy.MoveLimit{Count: 3}
	// Nine on spot, of which the six highest slots are in a and b; all but three are to go.
	pods := Arrived(Zoned(Replicas(9, SpotOnly), "cccababab"), 2, capacity.OnDemand)
	pods[9].Domains, pods[10].Domains = []int32{0}, []int32{1}
	r := Plan(SpreadObserved(pods, ThreeZones(true)), PolicyOf(30, 0), s, Epoch)
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
	s := ThreeZones(true)
	s.Domains[2].OnDemand = false // and the template asks for all nodes to be counted
	s.MaxSkew = 1
	pods := Zoned(Replicas(5, SpotOnly), "aabbc")
	// One less in a or b leaves c behind by none, so that a replacement fits there; c itself has no on-demand node.
	r := Plan(SpreadObserved(pods, s), PolicyOf(60, 0), DefaultSettings, Epoch)
	if len(r.Evictions) != 1 || r.Evictions[0].Name == "web-4" {
		t.Errorf("evictions %v", Names(r.Evictions))
	}
	pods = Zoned(Replicas(4, SpotOnly), "aabb") // c has none: a replacement fits there alone
	r = Plan(SpreadObserved(pods, s), PolicyOf(50, 0), DefaultSettings, Epoch)
	if len(r.Evictions) != 0 || r.State != StateWaiting || !strings.Contains(r.Reason, corev1.LabelTopologyZone) || !strings.Contains(r.Reason, "leaves only c ") {
		t.Errorf("%s: %s, evictions %v", r.State, r.Reason, Names(r.Evictions))
	}
	if !slices.ContainsFunc(r.Waits, func(w Wait) bool { return w.Kind == WaitTemplate && w.Subject == corev1.LabelTopologyZone }) {
		t.Errorf("waits %+v", r.Waits)
	}
}

func TestSlotsAreExchangedSoThatShrinkingKeepsTheSpread(t *testing.T) {
	m := policy.Mix{Percent: 50, Managed: true} // odd slots are on spot
	pods := Zoned(Replicas(12, m), "aabbccaabbcc")
	o := SpreadObserved(pods, ThreeZones(true))
	r := Plan(o, PolicyOf(50, 0), DefaultSettings, Epoch)
	if len(r.Stamps) == 0 || len(r.Evictions) > 0 {
		t.Fatalf("stamps %+v, evictions %v", r.Stamps, Names(r.Evictions))
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
	o = SpreadObserved(pods, ThreeZones(true))
	if again := Plan(o, PolicyOf(50, 0), DefaultSettings, Epoch); len(again.Stamps) > 0 || again.State != StateConverged || again.Skew != "" {
		t.Errorf("the next plan: %+v", again)
	}
}

func TestReplicasThatWaitUnderATopologySpreadAreExplained(t *testing.T) {
	o := SpreadObserved(Zoned(Replicas(6, SpotOnly), "abcabc"), ThreeZones(true))
	PendingFor(&o.Pods[5], time.Minute)
	o.Pods[5].Domains = nil
	if r := Plan(o, PolicyOf(100, 0), DefaultSettings, Epoch); len(r.Notes) != 1 || !strings.Contains(r.Notes[0], corev1.LabelTopologyZone) || !strings.Contains(r.Notes[0], "count together") {
		t.Errorf("notes %q", r.Notes)
	}
	if r := Plan(SpreadObserved(Zoned(Replicas(6, SpotOnly), "abcabc"), ThreeZones(true)), PolicyOf(100, 0), DefaultSettings, Epoch); len(r.Notes) != 0 {
		t.Errorf("notes %q", r.Notes)
	}
}
