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
	return (&Interruptions{}).Of(node, epoch)
}

var seventyOverThree = policy.Mix{Percent: 70, Floor: 3, Managed: true}

// Karpenter consolidates a member: the on-demand nodes are tainted, and their replacements do not exist yet.
func TestAnAdvisoryNoticeKeepsThePaceOfMovesAndTheFloorAndWaitsForTheWindow(t *testing.T) {
	pods := releasableAll(doomed(replicas(10, seventyOverThree), doomOfTaint(t, "karpenter.sh/disrupted"), isOnDemand))
	p, o := policyOf(70, 3), observedOf(pods, 10)
	p.Window = mustWindow(t, "0 4 * * *", "1h")
	r := Plan(o, p, testSettings, epoch)
	if len(r.Evictions)+len(r.Releases) > 0 || r.State != StateWaiting || waitOf(&r, WaitWindow) == nil || r.OnDemandActual != 3 || r.Doomed != 0 || r.Advised != 3 {
		t.Errorf("the window is shut: %+v", r)
	}
	if len(r.Pods) != 3 || r.Pods[0].Doomed || r.Pods[0].Reason != "its node n is at risk of interruption: taint karpenter.sh/disrupted" {
		t.Errorf("%+v", r.Pods)
	}
	open := epoch.Add(4 * time.Hour)
	r = Plan(o, p, testSettings, open)
	if diff := cmp.Diff(map[string]int{"release advisory": 1}, purposes(&r)); diff != "" {
		t.Errorf("one at a time, and the floor makes before it breaks, whatever the strategy: %s", diff)
	}
	o.NoRelease = "Service shop/web selects pod-template-hash"
	r = Plan(o, p, testSettings, open)
	if len(r.Evictions)+len(r.Releases) > 0 || waitOf(&r, WaitReplacement) == nil || r.State != StateWaiting {
		t.Errorf("the floor goes before anything serves in its place: %+v", r)
	}
}

func TestARebalanceRecommendationTakesNoMoreThanAMove(t *testing.T) {
	advice := doomOfTaint(t, "aws-node-termination-handler/rebalance-recommendation")
	pods := doomed(replicas(50, spotOnly), advice, func(*Pod) bool { return true })
	r := Plan(observedOf(pods, 50), policyOf(100, 0), testSettings, epoch)
	if diff := cmp.Diff(map[string]int{"evict advisory": 1}, purposes(&r)); diff != "" || r.SpotActual != 50 {
		t.Errorf("%s %+v", diff, r)
	}
	if r = Plan(observedOf(releasableAll(slices.Clone(pods)), 50), policyOf(100, 0), testSettings, epoch); len(r.Releases) != 1 || len(r.Evictions) > 0 {
		t.Errorf("what can be released is, whatever the strategy: %+v", r)
	}
	pods = arrived(pods, 7, capacity.Spot)
	if r = Plan(observedOf(pods, 57), policyOf(100, 0), testSettings, epoch); len(r.Evictions) != 5 {
		t.Errorf("%d of 57 go where ten percent may", len(r.Evictions))
	}
	o := observedOf(pods, 57)
	o.LastMove = epoch.Add(-time.Second)
	o.Pods[56].Created = epoch.Add(-time.Second)
	if r = Plan(o, policyOf(100, 0), testSettings, epoch); len(r.Evictions) != 0 || waitOf(&r, WaitCooldown) == nil {
		t.Errorf("within the cool-down: %+v", r)
	}
	o = observedOf(pods, 57)
	o.Pods[56].Bound, o.Pods[56].Ready, o.Pods[56].UnschedulableSince = false, false, epoch.Add(-time.Hour)
	if r = Plan(o, policyOf(100, 0), testSettings, epoch); len(r.Evictions) != 0 {
		t.Errorf("a replacement finds no node, and others go: %+v", r.Evictions)
	}
}

func TestAPodThatMayHaveToGoHoldsItsSlotUntilItIsReplaced(t *testing.T) {
	a, m := NewAccounting(false), policy.Mix{Percent: 50, Managed: true}
	pods := doomed(replicas(4, m), &Doom{Node: "n", Weight: WeightAdvisory}, func(p *Pod) bool { return p.Slot == 2 })
	for i := range pods {
		pods[i].Version = 1
		a.Observe(&pods[i], epoch)
	}
	if got := a.Reserve(Ask{ID: "r", Wanted: 5, Mix: m}, epoch); got.Slot != 4 {
		t.Errorf("a further pod gets %+v", got)
	}
	if !pods[2].Supply() {
		t.Error("it is no supply")
	}
}

func TestANodeThatGoesForCertainIsLeftInBatchesOutsideTheWindow(t *testing.T) {
	certain := &Doom{Node: "n", Notice: "taint"}
	p := policyOf(100, 0)
	p.Window = mustWindow(t, "0 4 * * *", "1h")
	o := observedOf(doomed(replicas(40, spotOnly), certain, func(p *Pod) bool { return p.Slot < 20 }), 40)
	o.LastMove = epoch.Add(-time.Second)
	r := Plan(o, p, testSettings, epoch)
	if diff := cmp.Diff(map[string]int{"evict interruption": 4}, purposes(&r)); diff != "" || waitOf(&r, WaitReplacement) == nil {
		t.Errorf("%s %+v", diff, r)
	}
	for i := range 3 {
		o.Pods[i].GoneBy = epoch.Add(time.Minute)
	}
	if r = Plan(o, p, testSettings, epoch); len(r.Evictions) != 1 {
		t.Errorf("%d go while three are on the move", len(r.Evictions))
	}
	far := &Doom{Node: "n", Notice: "taint", By: epoch.Add(time.Hour)}
	o = observedOf(doomed(replicas(40, spotOnly), far, func(p *Pod) bool { return p.Slot < 20 }), 40)
	if r = Plan(o, p, testSettings, epoch); len(r.Evictions) != 4 || !r.Recheck.Equal(far.By.Add(-doomUrgent)) {
		t.Errorf("a deadline far away: %d go, looks again at %s", len(r.Evictions), r.Recheck)
	}
	if r = Plan(o, p, testSettings, far.By.Add(-doomUrgent)); len(r.Evictions) != 20 {
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
		"all at once where there is a deadline":       {Doom{Node: "n", By: epoch.Add(2 * time.Minute)}, policy.StrategyEvict, func(*Observed) {}, map[string]int{"release interruption": 3}},
		"in the last minute it ends in order":         {Doom{Node: "n", By: epoch.Add(DoomMargin)}, policy.StrategyEvict, func(*Observed) {}, map[string]int{"evict interruption": 3}},
		"one at a time where it cannot be":            {Doom{Node: "n"}, policy.StrategyRelease, func(o *Observed) { o.NoRelease = "Service web" }, map[string]int{"evict interruption": 1}},
		"a node that has gone serves nobody":          {Doom{Node: "n", Gone: true}, policy.StrategyEvict, func(*Observed) {}, map[string]int{"evict interruption": 3}},
		"on-demand replicas that stay are the floor":  {Doom{Node: "n"}, policy.StrategyEvict, moreOnDemand, map[string]int{"evict interruption": 1}},
		"the next waits until the last one is back":   {Doom{Node: "n"}, policy.StrategyEvict, oneOfTheFloorIsGone, nil},
		"and until it has been ready for long enough": {Doom{Node: "n"}, policy.StrategyEvict, oneOfTheFloorIsYoung, nil},
	} {
		o := observedOf(releasableAll(doomed(replicas(10, seventyOverThree), &c.doom, isOnDemand)), 10)
		c.change(&o)
		s := testSettings
		s.Strategy = c.strategy
		r := Plan(o, policyOf(70, 3), s, epoch)
		if len(c.want) == 0 {
			c.want = map[string]int{}
		}
		if diff := cmp.Diff(c.want, purposes(&r)); diff != "" {
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
	o.LastMove = epoch.Add(-time.Second)
}

// oneOfTheFloorIsYoung is the same when the replacement has just become ready.
func oneOfTheFloorIsYoung(o *Observed) {
	o.NoRelease, o.MinReady = "Service web", 10*time.Second
	o.Pods[0].Doom, o.Pods[0].Created, o.Pods[0].UnreadySince = nil, epoch.Add(-time.Minute), epoch.Add(-time.Second)
}

func TestAStatefulSetLosesOneOrdinalOfTheFloorAtATimeAndNoneForAdvice(t *testing.T) {
	pods := replicas(3, policy.Mix{Managed: true})
	for i := range pods {
		pods[i].Name, pods[i].DeletionCost = fmt.Sprintf("db-%d", i), ""
	}
	all := func(*Pod) bool { return true }
	o := observedOf(doomed(pods, &Doom{Node: "n", Weight: WeightAdvisory}, all), 3)
	o.Ordinals = true
	if r := Plan(o, policyOf(0, 3), testSettings, epoch); len(r.Evictions) > 0 || r.State != StateConverged || r.Advised != 3 {
		t.Errorf("on advice: %+v", r)
	}
	o.Pods = doomed(pods, &Doom{Node: "n"}, all)
	if r := Plan(o, policyOf(0, 3), testSettings, epoch); len(r.Evictions) != 1 {
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
		return Plan(observedOf(pods, 10), policyOf(percent, 0), testSettings, epoch)
	}
	all := func(*Pod) bool { return true }
	for name, r := range map[string]Result{
		"the mix":              plan(protected(replicas(10, spotOnly)), 0),
		"advice":               plan(protected(doomed(replicas(10, spotOnly), &Doom{Weight: WeightAdvisory}, all)), 100),
		"no known time to end": plan(protected(doomed(replicas(10, spotOnly), &Doom{}, all)), 100),
	} {
		w := waitOf(&r, WaitProtected)
		if len(r.Evictions)+len(r.Releases) > 0 || w == nil || w.Replicas != 10 || r.State != StateWaiting || r.Pods[0].Waits != WaitProtected {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := plan(protected(doomed(replicas(10, spotOnly), &Doom{By: epoch.Add(time.Minute)}, all)), 100); len(r.Evictions) != 10 {
		t.Errorf("%d leave a node that goes in a minute", len(r.Evictions))
	}
	some := replicas(10, spotOnly)
	protected(some[:9])
	if r := plan(some, 0); len(r.Evictions) != 1 || r.Evictions[0].Name != "web-9" {
		t.Errorf("the one that does not ask: %+v", r.Evictions)
	}
}
