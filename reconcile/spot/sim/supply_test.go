package sim

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/shortage"
)

// scaling is a member at rest with ten replicas on spot, a floor of one, and an autoscaler that brings nodes for thirty.
func scaling(t *testing.T, takes time.Duration, tells bool) *single {
	t.Helper()
	w := newSingle(t, false, 10, spottest.PolicyOf(100, 1))
	w.addNode(capacity.Spot, 10)
	w.addNode(capacity.OnDemand, 4)
	w.until("settled", time.Minute, w.settled)
	w.scaler.takes, w.scaler.signs = takes, map[bool]float64{true: 1}[tells]
	w.scaler.makes(capacity.Spot, 1000, 30)
	w.scaler.makes(capacity.OnDemand, 1000, 30)
	return w
}

func TestAScaleUpWaitsForNodesThatAreOnTheirWay(t *testing.T) {
	for _, takes := range []time.Duration{45 * time.Second, 90 * time.Second, 150 * time.Second} {
		w := scaling(t, takes, true)
		w.replicas = 40
		most := 0
		w.pass(15*time.Minute, func() {
			_, onDemand := w.on(capacity.OnDemand)
			most = max(most, onDemand)
		})
		if len(w.decisions[capacity.Spot])+len(w.decisions[capacity.OnDemand]) > 0 || most > 1 || len(w.gone) > 0 || !w.settled() {
			t.Errorf("nodes take %s: %d decisions, at most %d on-demand replicas where the floor is 1, evicted %v; %s",
				takes, len(w.decisions[capacity.Spot]), most, w.gone, w.describe())
		}
	}
}

func TestWithoutASignNodesThatAreSlowAreTakenForADroughtOnceAtMost(t *testing.T) {
	for _, takes := range []time.Duration{45 * time.Second, 90 * time.Second, 150 * time.Second} {
		w := scaling(t, takes, false)
		w.scaler.idle, w.step = 10*time.Minute, 5*time.Second
		for round := range 6 {
			w.replicas = 40
			w.pass(20*time.Minute, nil)
			if n := len(w.decisions[capacity.Spot]); n > 1 {
				t.Fatalf("nodes take %s: %d premature decisions after %d scale-ups", takes, n, round+1)
			}
			w.replicas = 10
			w.pass(20*time.Minute, nil)
		}
		if len(w.decisions[capacity.OnDemand]) > 1 {
			t.Errorf("nodes take %s: on-demand was taken for dry %d times", takes, len(w.decisions[capacity.OnDemand]))
		}
	}
}

// An autoscaler of pods moves the replicas between 10 and 40, and one of nodes follows with its delay.
func TestAnAutoscalerThatFlapsEvictsNobody(t *testing.T) {
	for _, takes := range []time.Duration{45 * time.Second, 90 * time.Second, 150 * time.Second} {
		w := scaling(t, takes, true)
		w.scaler.idle, w.step = 10*time.Minute, 5*time.Second
		start, most := w.now, 0
		for range 9 {
			w.replicas = 40
			w.pass(20*time.Minute, func() {
				_, onDemand := w.on(capacity.OnDemand)
				most = max(most, onDemand)
			})
			w.replicas = 10
			w.pass(20*time.Minute, nil)
		}
		if len(w.gone) > 0 || most > 1 {
			t.Errorf("nodes take %s: %d evictions in %s, at most %d on-demand replicas where the floor is 1", takes, len(w.gone), w.now.Sub(start), most)
		}
	}
}

func TestASignThatHoldsForTooLongDoesNotPutOffADroughtForEver(t *testing.T) {
	w := scaling(t, time.Hour, true) // launched, and never there
	w.replicas = 12
	w.pass(shortage.DefaultSettings().NodeStart+10*time.Second, nil)
	if len(w.decisions[capacity.Spot]) != 1 {
		t.Errorf("%d decisions; %s", len(w.decisions[capacity.Spot]), w.describe())
	}
	w.pass(10*time.Second, nil)
	if w.ready() != 12 {
		t.Errorf("they are not replaced on-demand: %s", w.describe())
	}
}

func TestWithoutAnySignADroughtIsCoveredAfterTheTimeout(t *testing.T) {
	// The shortest is hardly longer than an admission may take, and the last longer than a node takes to start.
	for _, timeout := range []time.Duration{policy.MinPendingTimeout, time.Minute, 10 * time.Minute} {
		w := newSingle(t, false, 20, spottest.PolicyOf(100, 0))
		w.settings.PendingTimeout = timeout
		w.addNode(capacity.Spot, 40)
		w.addNode(capacity.OnDemand, 40)
		w.until("settled", time.Minute, w.settled)
		w.loseNodes(capacity.Spot)
		w.pass(timeout-time.Second, nil)
		if len(w.gone) > 0 {
			t.Errorf("with a timeout of %s: %d pods are replaced before it", timeout, len(w.gone))
		}
		w.until("covered on-demand", 11*time.Second, func() bool { ready, _ := w.on(capacity.OnDemand); return ready == 20 })
	}
}

func TestAProbeForWhichANodeIsComingWaitsForIt(t *testing.T) {
	w := newSingle(t, false, 4, spottest.PolicyOf(100, 0))
	w.addNode(capacity.Spot, 10)
	w.addNode(capacity.OnDemand, 10)
	w.until("settled", time.Minute, w.settled)
	w.loseNodes(capacity.Spot)
	w.until("covered", 2*time.Minute, func() bool { ready, _ := w.on(capacity.OnDemand); return ready == 4 })
	w.scaler.takes = 200 * time.Second
	w.scaler.makes(capacity.Spot, 1000, 10)
	// The first probe starts after two minutes, and alone would be over before the node comes.
	w.until("found to have room", 2*time.Minute+210*time.Second, func() bool { return len(w.droughts.Of(capacity.Spot).Decisions()) == 0 })
	w.until("back on spot", 5*time.Minute, w.settled)
}

func TestReplicasAboveTheFloorGoToSpotWhileOnDemandIsDry(t *testing.T) {
	for name, w := range map[string]*single{"Deployment": newSingle(t, false, 10, spottest.PolicyOf(50, 2)), "StatefulSet": newSingle(t, true, 10, spottest.PolicyOf(50, 2))} {
		w.addNode(capacity.Spot, 100)
		w.addNode(capacity.OnDemand, 1)
		w.until("as well as it gets", 2*time.Minute, func() bool { return w.ready() == 9 })
		if spot, _ := w.on(capacity.Spot); spot != 8 {
			t.Errorf("%s: %d on spot; %s", name, spot, w.describe())
		}
		since := w.now
		w.pass(2*time.Hour, func() {
			if _, onDemand := w.on(capacity.OnDemand); onDemand < 2 {
				t.Fatalf("%s: the floor does not wait for on-demand: %s", name, w.describe())
			}
		})
		if n := w.readyEvictions(since); n > 0 || w.ready() != 9 {
			t.Errorf("%s: %d ready replicas evicted while on-demand is dry; %s", name, n, w.describe())
		}
		if notes := strings.Join(w.plan().Notes, "; "); !strings.Contains(notes, "on-demand has had no room") {
			t.Errorf("%s: it is not reported: %s", name, notes)
		}
		w.addNode(capacity.OnDemand, 100)
		w.until(name+" back where it belongs", 10*time.Minute, w.settled)
		if n := w.readyEvictions(since); n != 3 {
			t.Errorf("%s: %d ready replicas were moved back, want 3", name, n)
		}
	}
}

func TestAWorkloadThatAsksForNoSpotWaitsForOnDemand(t *testing.T) {
	w := newSingle(t, false, 10, spottest.PolicyOf(0, 2))
	w.addNode(capacity.Spot, 100)
	w.addNode(capacity.OnDemand, 5)
	w.pass(time.Hour, func() {
		if _, spot := w.on(capacity.Spot); spot > 0 {
			t.Fatalf("%d replicas on spot", spot)
		}
	})
}

func TestMovesIntoCapacityThatIsNotThereAreTakenBack(t *testing.T) {
	for _, from := range []int{100, 0} {
		w := newSingle(t, false, 100, spottest.PolicyOf(from, 0))
		there := capacity.Spot
		if from == 0 {
			there = capacity.OnDemand
		}
		w.addNode(there, 100)
		w.until("settled", time.Minute, w.settled)
		w.policy = spottest.PolicyOf(100-from, 0)
		start := w.now
		w.until("taken back", 3*time.Minute, func() bool { return len(w.gone) > 0 && w.ready() == 100 })
		w.step = 10 * time.Second
		w.pass(4*time.Hour, nil)
		if n := w.readyEvictions(start); n > 10 || w.ready() != 100 {
			t.Errorf("from %d %%: %d ready replicas evicted; %s", from, n, w.describe())
		}
	}
}

func TestARaisedFloorIsMovedOneByOneWhileOnDemandIsDry(t *testing.T) {
	w := newSingle(t, false, 10, spottest.PolicyOf(80, 0))
	w.addNode(capacity.Spot, 20)
	w.addNode(capacity.OnDemand, 1)
	w.until("covered", 3*time.Minute, func() bool { return w.ready() == 10 })
	w.policy = spottest.PolicyOf(80, 4)
	since := w.now
	w.pass(time.Hour, nil)
	if _, onDemand := w.on(capacity.OnDemand); onDemand != 2 || w.ready() != 9 || w.readyEvictions(since) != 1 {
		t.Errorf("one replica waits for the floor: %s", w.describe())
	}
	w.addNode(capacity.OnDemand, 1)
	w.pass(10*time.Minute, nil)
	if _, onDemand := w.on(capacity.OnDemand); onDemand != 3 || w.ready() != 9 {
		t.Errorf("the next one follows when it serves: %s", w.describe())
	}
	w.addNode(capacity.OnDemand, 10)
	w.until("settled", 20*time.Minute, w.settled)
}

func TestWhereNeitherTypeHasRoomNothingGoesToAndFro(t *testing.T) {
	w := newSingle(t, false, 10, spottest.PolicyOf(50, 1))
	w.addNode(capacity.Spot, 2)
	w.addNode(capacity.OnDemand, 2)
	w.pass(10*time.Minute, nil)
	replaced := len(w.gone)
	w.pass(3*time.Hour, nil)
	if len(w.gone) != replaced {
		t.Errorf("%d evictions beyond the first %d; %s", len(w.gone)-replaced, replaced, w.describe())
	}
	w.addNode(capacity.Spot, 20)
	w.until("served by spot", 35*time.Minute, func() bool { return w.ready() >= 9 })
	w.addNode(capacity.OnDemand, 20)
	w.until("settled", time.Hour, w.settled)
}

// spreadOverZones is what a topology spread constraint of a template asks for.
func spreadOverZones(t *testing.T) []string {
	spec := &corev1.PodSpec{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule}}}
	return capacity.RequirementsOf(spec, "shop", "", spottest.MustLabels(t)).Constraints
}

// A volume in a zone without spot nodes, or a zone that has too many replicas already, keeps a replica away, and a probe does not find that.
func TestAProbeThatIsEasierThanItsReplicasIsBelievedEverLess(t *testing.T) {
	volume := []string{capacity.ConstraintVolume + "shop/data-db-"}
	for name, c := range map[string]struct {
		ordinals bool
		needs    []string
	}{
		"Deployment": {false, volume}, "StatefulSet": {true, volume}, "Deployment that is spread": {false, spreadOverZones(t)},
		"Deployment, and nothing shows why": {false, nil}, "StatefulSet, and nothing shows why": {true, nil},
	} {
		w := newSingle(t, c.ordinals, 10, spottest.PolicyOf(50, 1))
		w.needs = c.needs
		w.addNode(capacity.Spot, 20)
		w.addNode(capacity.OnDemand, 40)
		w.refuses = func(_ *Pod, n *Node) bool { return n.capacity == capacity.Spot }
		w.until("covered", 3*time.Minute, func() bool { ready, _ := w.on(capacity.OnDemand); return ready == 10 })
		start := w.now
		w.step = 5 * time.Second
		evicted := map[string]int{}
		for hour := range 12 {
			w.pass(time.Hour, func() {
				if hour%3 == 1 && w.now.Second() == 0 {
					w.droughts.NodeJoined(capacity.Spot, w.now) // further nodes are no reason to believe the next probe
				}
			})
		}
		for _, e := range w.gone {
			if e.ready && !e.at.Before(start) {
				evicted[e.name]++
				if w.ordinals && evicted[e.name] > 1 {
					t.Errorf("%s was moved again after it had found no node", e.name)
				}
			}
		}
		if n := w.readyEvictions(start); n > 5 || w.readyEvictions(start.Add(6*time.Hour)) > 1 {
			t.Errorf("%s: %d ready replicas evicted in 12 hours, %d of them in the last 6", name, n, w.readyEvictions(start.Add(6*time.Hour)))
		}
	}
}

// Half of the ordinals have their volumes where spot nodes are.
func TestOrdinalsThatFindNoNodeStayAndTheOthersMove(t *testing.T) {
	w := newSingle(t, true, 10, spottest.PolicyOf(50, 0))
	w.needs = []string{capacity.ConstraintVolume + "shop/data-db-"}
	w.addNode(capacity.OnDemand, 40)
	w.refuses = func(p *Pod, n *Node) bool {
		number, _ := phrase.Ordinal(p.Name)
		return n.capacity == capacity.Spot && number%2 == 1
	}
	w.until("covered", 3*time.Minute, func() bool { ready, _ := w.on(capacity.OnDemand); return ready == 10 })
	w.addNode(capacity.Spot, 20)
	w.step = 5 * time.Second
	w.until("settled", 24*time.Hour, w.settled)
	failed := map[string]int{}
	for _, e := range w.gone {
		if number, _ := phrase.Ordinal(e.name); e.ready && number%2 == 1 {
			failed[e.name]++
		}
	}
	for name, n := range failed {
		if n > 1 {
			t.Errorf("%s was moved %d times to where its volume is not", name, n)
		}
	}
}
