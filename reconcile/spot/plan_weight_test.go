package spot

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// doomed gives the pods for which it is asked a node that goes.
func doomed(pods []Pod, d *Doom, which func(*Pod) bool) []Pod {
	for i := range pods {
		if which(&pods[i]) {
			pods[i].Doom = d
		}
	}
	return pods
}

func isOnDemand(p *Pod) bool { return p.Capacity == capacity.OnDemand }

func releasableAll(pods []Pod) []Pod {
	for i := range pods {
		pods[i].Hash = "abc"
	}
	return pods
}

func doomOfTaint(t *testing.T, key string) *Doom {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: key}}}}
	return (&Interruptions{}).Of(node, Epoch)
}

var seventyOverThree = policy.Mix{Percent: 70, Floor: 3, Managed: true}

// Karpenter consolidates a member: the on-demand nodes are tainted, and their replacements do not exist yet.
func TestAnAdvisoryNoticeKeepsThePaceOfMovesAndTheFloorAndWaitsForTheWindow(t *testing.T) {
	pods := releasableAll(doomed(Replicas(10, seventyOverThree), doomOfTaint(t, "karpenter.sh/disrupted"), isOnDemand))
	p, o := PolicyOf(70, 3), ObservedOf(pods, 10)
	p.Window = MustWindow(t, "0 4 * * *", "1h")
	r := Plan(o, p, DefaultSettings, Epoch)
	if len(r.Evictions)+len(r.Releases) > 0 || r.State != StateWaiting || WaitOf(&r, WaitWindow) == nil || r.OnDemandActual != 3 || r.Doomed != 0 || r.Advised != 3 {
		t.Errorf("the window is shut: %+v", r)
	}
	if len(r.Pods) != 3 || r.Pods[0].Doomed || r.Pods[0].Reason != "its node n is at risk of interruption: taint karpenter.sh/disrupted" {
		t.Errorf("%+v", r.Pods)
	}
	open := Epoch.Add(4 * time.Hour)
	r = Plan(o, p, DefaultSettings, open)
	if diff := cmp.Diff(map[string]int{"release advisory": 1}, Purposes(&r)); diff != "" {
		t.Errorf("one at a time, and the floor makes before it breaks, whatever the strategy: %s", diff)
	}
	o.NoRelease = "Service shop/web selects pod-template-hash"
	r = Plan(o, p, DefaultSettings, open)
	if len(r.Evictions)+len(r.Releases) > 0 || WaitOf(&r, WaitReplacement) == nil || r.State != StateWaiting {
		t.Errorf("the floor goes before anything serves in its place: %+v", r)
	}
}

func TestARebalanceRecommendationTakesNoMoreThanAMove(t *testing.T) {
	advice := doomOfTaint(t, "aws-node-termination-handler/rebalance-recommendation")
	pods := doomed(Replicas(50, SpotOnly), advice, func(*Pod) bool { return true })
	r := Plan(ObservedOf(pods, 50), PolicyOf(100, 0), DefaultSettings, Epoch)
	if diff := cmp.Diff(map[string]int{"evict advisory": 1}, Purposes(&r)); diff != "" || r.SpotActual != 50 {
		t.Errorf("%s %+v", diff, r)
	}
	if r = Plan(ObservedOf(releasableAll(slices.Clone(pods)), 50), PolicyOf(100, 0), DefaultSettings, Epoch); len(r.Releases) != 1 || len(r.Evictions) > 0 {
		t.Errorf("what can be released is, whatever the strategy: %+v", r)
	}
	pods = Arrived(pods, 7, capacity.Spot)
	if r = Plan(ObservedOf(pods, 57), PolicyOf(100, 0), DefaultSettings, Epoch); len(r.Evictions) != 5 {
		t.Errorf("%d of 57 go where ten percent may", len(r.Evictions))
	}
	o := ObservedOf(pods, 57)
	o.LastMove = Epoch.Add(-time.Second)
	o.Pods[56].Created = Epoch.Add(-time.Second)
	if r = Plan(o, PolicyOf(100, 0), DefaultSettings, Epoch); len(r.Evictions) != 0 || WaitOf(&r, WaitCooldown) == nil {
		t.Errorf("within the cool-down: %+v", r)
	}
	o = ObservedOf(pods, 57)
	o.Pods[56].Bound, o.Pods[56].Ready, o.Pods[56].UnschedulableSince = false, false, Epoch.Add(-time.Hour)
	if r = Plan(o, PolicyOf(100, 0), DefaultSettings, Epoch); len(r.Evictions) != 0 {
		t.Errorf("a replacement finds no node, and others go: %+v", r.Evictions)
	}
}

func TestAPodThatMayHaveToGoHoldsItsSlotUntilItIsReplaced(t *testing.T) {
	a, m := NewAccounting(false), policy.Mix{Percent: 50, Managed: true}
	pods := doomed(Replicas(4, m), &Doom{Node: "n", Weight: WeightAdvisory}, func(p *Pod) bool { return p.Slot == 2 })
	for i := range pods {
		pods[i].Version = 1
		a.Observe(&pods[i], Epoch)
	}
	if got := a.Reserve(Ask{ID: "r", Wanted: 5, Mix: m}, Epoch); got.Slot != 4 {
		t.Errorf("a further pod gets %+v", got)
	}
	if !pods[2].Supply() {
		t.Error("it is no supply")
	}
}

func TestANodeThatGoesForCertainIsLeftInBatchesOutsideTheWindow(t *testing.T) {
	certain := &Doom{Node: "n", Notice: "taint"}
	p := PolicyOf(100, 0)
	p.Window = MustWindow(t, "0 4 * * *", "1h")
	o := ObservedOf(doomed(Replicas(40, SpotOnly), certain, func(p *Pod) bool { return p.Slot < 20 }), 40)
	o.LastMove = Epoch.Add(-time.Second)
	r := Plan(o, p, DefaultSettings, Epoch)
	if diff := cmp.Diff(map[string]int{"evict interruption": 4}, Purposes(&r)); diff != "" || WaitOf(&r, WaitReplacement) == nil {
		t.Errorf("%s %+v", diff, r)
	}
	for i := range 3 {
		o.Pods[i].GoneBy = Epoch.Add(time.Minute)
	}
	if r = Plan(o, p, DefaultSettings, Epoch); len(r.Evictions) != 1 {
		t.Errorf("%d go while three are on the move", len(r.Evictions))
	}
	far := &Doom{Node: "n", Notice: "taint", By: Epoch.Add(time.Hour)}
	o = ObservedOf(doomed(Replicas(40, SpotOnly), far, func(p *Pod) bool { return p.Slot < 20 }), 40)
	if r = Plan(o, p, DefaultSettings, Epoch); len(r.Evictions) != 4 || !r.Recheck.Equal(far.By.Add(-DoomUrgent)) {
		t.Errorf("a deadline far away: %d go, looks again at %s", len(r.Evictions), r.Recheck)
	}
	if r = Plan(o, p, DefaultSettings, far.By.Add(-DoomUrgent)); len(r.Evictions) != 20 {
		t.Errorf("the deadline is near: %d go", len(r.Evictions))
	}
}

// The last replicas of the floor are all on nodes that go.
func TestTheFloorOnNodesThatGoServesUntilItsReplacementsDo(t *testing.T) {
	for name, c := range map[string]struct {
		doom     Doom
		strategy policy.Strategy
		change   func(o *Observed)
		want     map[string]int
	}{
		"it is released, whatever the strategy":       {Doom{Node: "n"}, policy.StrategyEvict, func(*Observed) {}, map[string]int{"release interruption": 1}},
		"all at once where there is a deadline":       {Doom{Node: "n", By: Epoch.Add(2 * time.Minute)}, policy.StrategyEvict, func(*Observed) {}, map[string]int{"release interruption": 3}},
		"in the last minute it ends in order":         {Doom{Node: "n", By: Epoch.Add(DoomMargin)}, policy.StrategyEvict, func(*Observed) {}, map[string]int{"evict interruption": 3}},
		"one at a time where it cannot be":            {Doom{Node: "n"}, policy.StrategyRelease, func(o *Observed) { o.NoRelease = "Service web" }, map[string]int{"evict interruption": 1}},
		"a node that has gone serves nobody":          {Doom{Node: "n", Gone: true}, policy.StrategyEvict, func(*Observed) {}, map[string]int{"evict interruption": 3}},
		"on-demand replicas that stay are the floor":  {Doom{Node: "n"}, policy.StrategyEvict, moreOnDemand, map[string]int{"evict interruption": 1}},
		"the next waits until the last one is back":   {Doom{Node: "n"}, policy.StrategyEvict, oneOfTheFloorIsGone, nil},
		"and until it has been ready for long enough": {Doom{Node: "n"}, policy.StrategyEvict, oneOfTheFloorIsYoung, nil},
	} {
		o := ObservedOf(releasableAll(doomed(Replicas(10, seventyOverThree), &c.doom, isOnDemand)), 10)
		c.change(&o)
		s := DefaultSettings
		s.Strategy = c.strategy
		r := Plan(o, PolicyOf(70, 3), s, Epoch)
		if len(c.want) == 0 {
			c.want = map[string]int{}
		}
		if diff := cmp.Diff(c.want, Purposes(&r)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// moreOnDemand makes three spot replicas on-demand ones that stay.
func moreOnDemand(o *Observed) {
	more := 3
	for i := range o.Pods {
		if p := &o.Pods[i]; p.Capacity == capacity.Spot && more > 0 {
			p.Capacity = capacity.OnDemand
			more--
		}
	}
}

// oneOfTheFloorIsGone is what an eviction of ours has left: a replica of the floor is gone, and its replacement not there yet.
func oneOfTheFloorIsGone(o *Observed) {
	o.NoRelease = "Service web"
	o.Pods = o.Pods[1:]
	o.LastMove = Epoch.Add(-time.Second)
}

// oneOfTheFloorIsYoung is the same when the replacement has just become ready.
func oneOfTheFloorIsYoung(o *Observed) {
	o.NoRelease, o.MinReady = "Service web", 10*time.Second
	o.Pods[0].Doom, o.Pods[0].Created, o.Pods[0].UnreadySince = nil, Epoch.Add(-time.Minute), Epoch.Add(-time.Second)
}

func TestAStatefulSetLosesOneOrdinalOfTheFloorAtATimeAndNoneForAdvice(t *testing.T) {
	pods := Replicas(3, policy.Mix{Managed: true})
	for i := range pods {
		pods[i].Name, pods[i].DeletionCost = fmt.Sprintf("db-%d", i), ""
	}
	all := func(*Pod) bool { return true }
	o := ObservedOf(doomed(pods, &Doom{Node: "n", Weight: WeightAdvisory}, all), 3)
	o.Ordinals = true
	if r := Plan(o, PolicyOf(0, 3), DefaultSettings, Epoch); len(r.Evictions) > 0 || r.State != StateConverged || r.Advised != 3 {
		t.Errorf("on advice: %+v", r)
	}
	o.Pods = doomed(pods, &Doom{Node: "n"}, all)
	if r := Plan(o, PolicyOf(0, 3), DefaultSettings, Epoch); len(r.Evictions) != 1 {
		t.Errorf("for certain: %+v", r)
	}
}

func TestPodsThatAskNotToBeDisruptedLeaveOnlyNodesThatGoSoon(t *testing.T) {
	protected := func(pods []Pod) []Pod {
		for i := range pods {
			pods[i].DoNotDisrupt = true
		}
		return pods
	}
	plan := func(pods []Pod, percent int) Result {
		return Plan(ObservedOf(pods, 10), PolicyOf(percent, 0), DefaultSettings, Epoch)
	}
	all := func(*Pod) bool { return true }
	for name, r := range map[string]Result{
		"the mix":              plan(protected(Replicas(10, SpotOnly)), 0),
		"advice":               plan(protected(doomed(Replicas(10, SpotOnly), &Doom{Weight: WeightAdvisory}, all)), 100),
		"no known time to end": plan(protected(doomed(Replicas(10, SpotOnly), &Doom{}, all)), 100),
	} {
		w := WaitOf(&r, WaitProtected)
		if len(r.Evictions)+len(r.Releases) > 0 || w == nil || w.Replicas != 10 || r.State != StateWaiting || r.Pods[0].Waits != WaitProtected {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := plan(protected(doomed(Replicas(10, SpotOnly), &Doom{By: Epoch.Add(time.Minute)}, all)), 100); len(r.Evictions) != 10 {
		t.Errorf("%d leave a node that goes in a minute", len(r.Evictions))
	}
	some := Replicas(10, SpotOnly)
	protected(some[:9])
	if r := plan(some, 0); len(r.Evictions) != 1 || r.Evictions[0].Name != "web-9" {
		t.Errorf("the one that does not ask: %+v", r.Evictions)
	}
}
