package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/nodes"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/slots"
)

// interrupted gives the pods for which it is asked a node that goes.
func interrupted(pods []plan.Pod, d *plan.Interruption, which func(*plan.Pod) bool) []plan.Pod {
	for i := range pods {
		if which(&pods[i]) {
			pods[i].Interruption = d
		}
	}
	return pods
}

func isOnDemand(p *plan.Pod) bool { return p.Capacity == capacity.OnDemand }

func releasableAll(pods []plan.Pod) []plan.Pod {
	for i := range pods {
		pods[i].Hash = "abc"
	}
	return pods
}

func interruptionOfTaint(t *testing.T, key string) *plan.Interruption {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: key}}}}
	return (&nodes.Interruptions{}).Of(node, spottest.Epoch)
}

var seventyOverThree = policy.Mix{Percent: 70, Floor: 3, Managed: true}

// Karpenter consolidates a member: the on-demand nodes are tainted, and their replacements do not exist yet.
func TestAnAdvisoryNoticeKeepsThePaceOfMovesAndTheFloorAndWaitsForTheWindow(t *testing.T) {
	pods := releasableAll(interrupted(plantest.Replicas(10, seventyOverThree), interruptionOfTaint(t, "karpenter.sh/disrupted"), isOnDemand))
	p, o := spottest.PolicyOf(70, 3), plantest.ObservedOf(pods, 10)
	p.Window = spottest.MustWindow(t, "0 4 * * *", "1h")
	r := plan.Plan(o, p, plantest.DefaultSettings, spottest.Epoch)
	if len(r.Evictions)+len(r.Releases) > 0 || r.State != plan.StateWaiting || plantest.WaitOf(&r, plan.WaitWindow) == nil || r.OnDemandActual != 3 || r.Interrupted != 0 || r.Advised != 3 {
		t.Errorf("the window is shut: %+v", r)
	}
	if len(r.Pods) != 3 || r.Pods[0].Interrupted || r.Pods[0].Reason != "its node n is at risk of interruption: taint karpenter.sh/disrupted" {
		t.Errorf("%+v", r.Pods)
	}
	open := spottest.Epoch.Add(4 * time.Hour)
	r = plan.Plan(o, p, plantest.DefaultSettings, open)
	if diff := cmp.Diff(map[string]int{"release advisory": 1}, plantest.Purposes(&r)); diff != "" {
		t.Errorf("one at a time, and the floor makes before it breaks, whatever the strategy: %s", diff)
	}
	o.NoRelease = "Service shop/web selects pod-template-hash"
	r = plan.Plan(o, p, plantest.DefaultSettings, open)
	if len(r.Evictions)+len(r.Releases) > 0 || plantest.WaitOf(&r, plan.WaitReplacement) == nil || r.State != plan.StateWaiting {
		t.Errorf("the floor goes before anything serves in its place: %+v", r)
	}
}

func TestARebalanceRecommendationTakesNoMoreThanAMove(t *testing.T) {
	advice := interruptionOfTaint(t, "aws-node-termination-handler/rebalance-recommendation")
	pods := interrupted(plantest.Replicas(50, spottest.SpotOnly), advice, func(*plan.Pod) bool { return true })
	r := plan.Plan(plantest.ObservedOf(pods, 50), spottest.PolicyOf(100, 0), plantest.DefaultSettings, spottest.Epoch)
	if diff := cmp.Diff(map[string]int{"evict advisory": 1}, plantest.Purposes(&r)); diff != "" || r.SpotActual != 50 {
		t.Errorf("%s %+v", diff, r)
	}
	if r = plan.Plan(plantest.ObservedOf(releasableAll(slices.Clone(pods)), 50), spottest.PolicyOf(100, 0), plantest.DefaultSettings, spottest.Epoch); len(r.Releases) != 1 || len(r.Evictions) > 0 {
		t.Errorf("what can be released is, whatever the strategy: %+v", r)
	}
	pods = plantest.Arrived(pods, 7, capacity.Spot)
	if r = plan.Plan(plantest.ObservedOf(pods, 57), spottest.PolicyOf(100, 0), plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) != 5 {
		t.Errorf("%d of 57 go where ten percent may", len(r.Evictions))
	}
	o := plantest.ObservedOf(pods, 57)
	o.LastMove = spottest.Epoch.Add(-time.Second)
	o.Pods[56].Created = spottest.Epoch.Add(-time.Second)
	if r = plan.Plan(o, spottest.PolicyOf(100, 0), plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) != 0 || plantest.WaitOf(&r, plan.WaitCooldown) == nil {
		t.Errorf("within the cool-down: %+v", r)
	}
	o = plantest.ObservedOf(pods, 57)
	o.Pods[56].Bound, o.Pods[56].Ready, o.Pods[56].UnschedulableSince = false, false, spottest.Epoch.Add(-time.Hour)
	if r = plan.Plan(o, spottest.PolicyOf(100, 0), plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) != 0 {
		t.Errorf("a replacement finds no node, and others go: %+v", r.Evictions)
	}
}

func TestAPodThatMayHaveToGoHoldsItsSlotUntilItIsReplaced(t *testing.T) {
	a, m := slots.NewAccounting(false), policy.Mix{Percent: 50, Managed: true}
	pods := interrupted(plantest.Replicas(4, m), &plan.Interruption{Node: "n", Weight: plan.WeightAdvisory}, func(p *plan.Pod) bool { return p.Slot == 2 })
	for i := range pods {
		pods[i].Version = 1
		a.Observe(&pods[i], spottest.Epoch)
	}
	if got := a.Reserve(slots.Ask{ID: "r", Wanted: 5, Mix: m}, spottest.Epoch); got.Slot != 4 {
		t.Errorf("a further pod gets %+v", got)
	}
	if !pods[2].Supply() {
		t.Error("it is no supply")
	}
}

func TestANodeThatGoesForCertainIsLeftInBatchesOutsideTheWindow(t *testing.T) {
	certain := &plan.Interruption{Node: "n", Notice: "taint"}
	p := spottest.PolicyOf(100, 0)
	p.Window = spottest.MustWindow(t, "0 4 * * *", "1h")
	o := plantest.ObservedOf(interrupted(plantest.Replicas(40, spottest.SpotOnly), certain, func(p *plan.Pod) bool { return p.Slot < 20 }), 40)
	o.LastMove = spottest.Epoch.Add(-time.Second)
	r := plan.Plan(o, p, plantest.DefaultSettings, spottest.Epoch)
	if diff := cmp.Diff(map[string]int{"evict interruption": 4}, plantest.Purposes(&r)); diff != "" || plantest.WaitOf(&r, plan.WaitReplacement) == nil {
		t.Errorf("%s %+v", diff, r)
	}
	for i := range 3 {
		o.Pods[i].GoneBy = spottest.Epoch.Add(time.Minute)
	}
	if r = plan.Plan(o, p, plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) != 1 {
		t.Errorf("%d go while three are on the move", len(r.Evictions))
	}
	far := &plan.Interruption{Node: "n", Notice: "taint", By: spottest.Epoch.Add(time.Hour)}
	o = plantest.ObservedOf(interrupted(plantest.Replicas(40, spottest.SpotOnly), far, func(p *plan.Pod) bool { return p.Slot < 20 }), 40)
	if r = plan.Plan(o, p, plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) != 4 || !r.Recheck.Equal(far.By.Add(-plan.InterruptionUrgent)) {
		t.Errorf("a deadline far away: %d go, looks again at %s", len(r.Evictions), r.Recheck)
	}
	if r = plan.Plan(o, p, plantest.DefaultSettings, far.By.Add(-plan.InterruptionUrgent)); len(r.Evictions) != 20 {
		t.Errorf("the deadline is near: %d go", len(r.Evictions))
	}
}

// An autoscaler takes nodes away for certain, and those that it makes are not there yet: who has time waits for them.
func TestNoReplicaThatHasTimeJoinsThoseThatWaitForANode(t *testing.T) {
	for name, c := range map[string]struct {
		interruption plan.Interruption
		goes         int
	}{"certain": {plan.Interruption{Node: "n"}, 0}, "with a deadline": {plan.Interruption{Node: "n", By: spottest.Epoch.Add(time.Minute)}, 20}} {
		o := plantest.ObservedOf(interrupted(plantest.Replicas(40, spottest.SpotOnly), &c.interruption, func(p *plan.Pod) bool { return p.Slot < 20 }), 40)
		plantest.PendingFor(&o.Pods[39], 10*time.Second)
		r := plan.Plan(o, spottest.PolicyOf(100, 0), plantest.DefaultSettings, spottest.Epoch)
		w := plantest.WaitOf(&r, plan.WaitReplacement)
		if len(r.Evictions) != c.goes || (c.goes == 0) != (w != nil && w.Replicas == 20 && strings.Contains(w.Reason, "waits for a node with spot")) {
			t.Errorf("%s: %d go; %+v", name, len(r.Evictions), w)
		}
	}
}

// The last replicas of the floor are all on nodes that go.
func TestTheFloorOnNodesThatGoServesUntilItsReplacementsDo(t *testing.T) {
	for name, c := range map[string]struct {
		interruption plan.Interruption
		strategy     policy.Strategy
		change       func(o *plan.Observed)
		want         map[string]int
	}{
		"it is released, whatever the strategy":       {plan.Interruption{Node: "n"}, policy.StrategyEvict, func(*plan.Observed) {}, map[string]int{"release interruption": 1}},
		"all at once where there is a deadline":       {plan.Interruption{Node: "n", By: spottest.Epoch.Add(2 * time.Minute)}, policy.StrategyEvict, func(*plan.Observed) {}, map[string]int{"release interruption": 3}},
		"in the last minute it ends in order":         {plan.Interruption{Node: "n", By: spottest.Epoch.Add(plan.InterruptionMargin)}, policy.StrategyEvict, func(*plan.Observed) {}, map[string]int{"evict interruption": 3}},
		"one at a time where it cannot be":            {plan.Interruption{Node: "n"}, policy.StrategyRelease, func(o *plan.Observed) { o.NoRelease = "Service web" }, map[string]int{"evict interruption": 1}},
		"a node that has gone serves nobody":          {plan.Interruption{Node: "n", Gone: true}, policy.StrategyEvict, func(*plan.Observed) {}, map[string]int{"evict interruption": 3}},
		"on-demand replicas that stay are the floor":  {plan.Interruption{Node: "n"}, policy.StrategyEvict, moreOnDemand, map[string]int{"evict interruption": 1}},
		"the next waits until the last one is back":   {plan.Interruption{Node: "n"}, policy.StrategyEvict, oneOfTheFloorIsGone, nil},
		"and until it has been ready for long enough": {plan.Interruption{Node: "n"}, policy.StrategyEvict, oneOfTheFloorIsYoung, nil},
	} {
		o := plantest.ObservedOf(releasableAll(interrupted(plantest.Replicas(10, seventyOverThree), &c.interruption, isOnDemand)), 10)
		c.change(&o)
		s := plantest.DefaultSettings
		s.Strategy = c.strategy
		r := plan.Plan(o, spottest.PolicyOf(70, 3), s, spottest.Epoch)
		if len(c.want) == 0 {
			c.want = map[string]int{}
		}
		if diff := cmp.Diff(c.want, plantest.Purposes(&r)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// moreOnDemand makes three spot replicas on-demand ones that stay.
func moreOnDemand(o *plan.Observed) {
	more := 3
	for i := range o.Pods {
		if p := &o.Pods[i]; p.Capacity == capacity.Spot && more > 0 {
			p.Capacity = capacity.OnDemand
			more--
		}
	}
}

// oneOfTheFloorIsGone is what an eviction of ours has left: a replica of the floor is gone, and its replacement not there yet.
func oneOfTheFloorIsGone(o *plan.Observed) {
	o.NoRelease = "Service web"
	o.Pods = o.Pods[1:]
	o.LastMove = spottest.Epoch.Add(-time.Second)
}

// oneOfTheFloorIsYoung is the same when the replacement has just become ready.
func oneOfTheFloorIsYoung(o *plan.Observed) {
	o.NoRelease, o.MinReady = "Service web", 10*time.Second
	o.Pods[0].Interruption, o.Pods[0].Created, o.Pods[0].UnreadySince = nil, spottest.Epoch.Add(-time.Minute), spottest.Epoch.Add(-time.Second)
}

func TestAStatefulSetLosesOneOrdinalOfTheFloorAtATimeAndNoneForAdvice(t *testing.T) {
	pods := plantest.Replicas(3, policy.Mix{Managed: true})
	for i := range pods {
		pods[i].Name, pods[i].DeletionCost = fmt.Sprintf("db-%d", i), policy.NoCost
	}
	all := func(*plan.Pod) bool { return true }
	o := plantest.ObservedOf(interrupted(pods, &plan.Interruption{Node: "n", Weight: plan.WeightAdvisory}, all), 3)
	o.Ordinals = true
	if r := plan.Plan(o, spottest.PolicyOf(0, 3), plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) > 0 || r.State != plan.StateConverged || r.Advised != 3 {
		t.Errorf("on advice: %+v", r)
	}
	o.Pods = interrupted(pods, &plan.Interruption{Node: "n"}, all)
	if r := plan.Plan(o, spottest.PolicyOf(0, 3), plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) != 1 {
		t.Errorf("for certain: %+v", r)
	}
}

func TestPodsThatAskNotToBeDisruptedLeaveOnlyNodesThatGoSoon(t *testing.T) {
	protected := func(pods []plan.Pod) []plan.Pod {
		for i := range pods {
			pods[i].DoNotDisrupt = true
		}
		return pods
	}
	planFor := func(pods []plan.Pod, percent int) plan.Result {
		return plan.Plan(plantest.ObservedOf(pods, 10), spottest.PolicyOf(percent, 0), plantest.DefaultSettings, spottest.Epoch)
	}
	all := func(*plan.Pod) bool { return true }
	for name, r := range map[string]plan.Result{
		"the mix":              planFor(protected(plantest.Replicas(10, spottest.SpotOnly)), 0),
		"advice":               planFor(protected(interrupted(plantest.Replicas(10, spottest.SpotOnly), &plan.Interruption{Weight: plan.WeightAdvisory}, all)), 100),
		"no known time to end": planFor(protected(interrupted(plantest.Replicas(10, spottest.SpotOnly), &plan.Interruption{}, all)), 100),
	} {
		w := plantest.WaitOf(&r, plan.WaitProtected)
		if len(r.Evictions)+len(r.Releases) > 0 || w == nil || w.Replicas != 10 || r.State != plan.StateWaiting || r.Pods[0].Waits != plan.WaitProtected {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := planFor(protected(interrupted(plantest.Replicas(10, spottest.SpotOnly), &plan.Interruption{By: spottest.Epoch.Add(time.Minute)}, all)), 100); len(r.Evictions) != 10 {
		t.Errorf("%d leave a node that goes in a minute", len(r.Evictions))
	}
	some := plantest.Replicas(10, spottest.SpotOnly)
	protected(some[:9])
	if r := planFor(some, 0); len(r.Evictions) != 1 || r.Evictions[0].Name != "web-9" {
		t.Errorf("the one that does not ask: %+v", r.Evictions)
	}
}
