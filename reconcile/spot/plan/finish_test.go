package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/plantest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// releasing are 10 replicas of which some were released: the replacements of the first `ready` of them serve, those of the
// next `starting` exist.
func releasing(released, ready, starting int) plan.Observed {
	pods := plantest.Replicas(10, policy.Mix{Managed: true})
	for i := range released {
		stand := pods[i]
		stand.UID, stand.Name, stand.Capacity = stand.UID+"-old", stand.Name+"-old", capacity.Spot
		stand.Hash = plan.ReleasedHash("abc")
		stand.Released = &plan.Released{Owner: spottest.OwnerUID, Hash: "abc", For: plan.PurposeMove, At: spottest.Epoch.Add(-time.Minute)}
		pods = append(pods, stand)
		pods[i].Created = spottest.Epoch.Add(-30 * time.Second)
		pods[i].UnreadySince = pods[i].Created
		pods[i].Ready = i < ready
	}
	missing := released - ready - starting
	return plantest.ObservedOf(append(pods[:released-missing:released-missing], pods[released:]...), 10)
}

func TestAReleasedPodStandsInUntilItsReplacementIsReady(t *testing.T) {
	s := plantest.DefaultSettings
	s.MaxMoves = policy.MoveLimit{Count: 3}
	for name, c := range map[string]struct{ ready, starting, ends int }{
		"missing": {0, 0, 0}, "starting": {0, 3, 0}, "one is ready": {1, 1, 1}, "all are": {3, 0, 3},
	} {
		o := releasing(3, c.ready, c.starting)
		r := plan.Plan(o, spottest.PolicyOf(0, 0), s, spottest.Epoch)
		want := map[string]int{}
		if c.ends > 0 {
			want["evict finish"] = c.ends
		}
		if diff := cmp.Diff(want, plantest.Purposes(&r)); diff != "" || r.Released != 3 || r.State == plan.StateConverged {
			t.Errorf("%s: %s %+v", name, diff, r)
		}
		if r.Moving != 3 {
			t.Errorf("%s: %d on the move", name, r.Moving)
		}
	}
}

func TestAReplicaThatWasBrokenBeforeHoldsNoReleaseUp(t *testing.T) {
	o := releasing(1, 1, 0)
	o.Pods[5].Ready = false // created an hour ago
	if r := plan.Plan(o, spottest.PolicyOf(0, 0), plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) != 1 {
		t.Errorf("%+v", r)
	}
}

// A quota counts the pod that was released, so that its replacement cannot be made.
func TestAReplacementThatNobodyMakesIsWaitedForOnlySoLong(t *testing.T) {
	o := releasing(1, 0, 0)
	r := plan.Plan(o, spottest.PolicyOf(0, 0), plantest.DefaultSettings, spottest.Epoch)
	if len(r.Evictions) != 0 || !r.Recheck.Equal(spottest.Epoch.Add(plan.StuckAfter-59*time.Second)) {
		t.Errorf("%+v", r)
	}
	if r := plan.Plan(o, spottest.PolicyOf(0, 0), plantest.DefaultSettings, spottest.Epoch.Add(plan.StuckAfter)); len(r.Evictions) != 1 || r.Evictions[0].For != plan.PurposeFinish {
		t.Errorf("%+v", r)
	}
}

func TestWhatWasReleasedIsFinishedWhateverBecomesOfItsWorkload(t *testing.T) {
	finishes := func(r plan.Result) bool {
		return len(r.Evictions) == 2 && r.Evictions[0].For == plan.PurposeFinish && len(r.Releases) == 0
	}
	o := releasing(2, 0, 0)
	o.Replicas, o.Owners[0].Replicas = 0, 0
	if r := plan.Plan(o, spottest.PolicyOf(0, 0), plantest.DefaultSettings, spottest.Epoch); !finishes(r) {
		t.Errorf("scaled to nothing: %+v", r)
	}
	o = releasing(2, 2, 0)
	if r := plan.Plan(o, spottest.PolicyOf(100, 0), plantest.DefaultSettings, spottest.Epoch); !finishes(plan.Result{Evictions: r.Evictions[:2]}) {
		t.Errorf("the policy changed back: %+v", r)
	}
	if r := plan.Plan(o, policy.Policy{}, plantest.DefaultSettings, spottest.Epoch); !finishes(r) {
		t.Errorf("no policy any more: %+v", r)
	}
	if r := plan.Finish(o, plantest.DefaultSettings, spottest.Epoch); !finishes(r) {
		t.Errorf("not enabled any more: %+v", r)
	}
	o.Owners[0].UID = "another"
	if r := plan.Plan(o, spottest.PolicyOf(0, 0), plantest.DefaultSettings, spottest.Epoch); !finishes(r) {
		t.Errorf("its ReplicaSet is gone: %+v", r)
	}
	o.Owners = nil
	if r := plan.Finish(o, plantest.DefaultSettings, spottest.Epoch); !finishes(r) {
		t.Errorf("its workload is gone: %+v", r)
	}
	s := plantest.DefaultSettings
	s.ReadOnly = true
	if r := plan.Finish(o, s, spottest.Epoch); len(r.Evictions) > 0 {
		t.Errorf("read-only: %+v", r)
	}
}

func TestAReleaseForTheMixEndsWithinTheWindowAndOneForAnInterruptionAtAnyTime(t *testing.T) {
	p := spottest.PolicyOf(0, 0)
	p.Window = spottest.MustWindow(t, "30 4 * * *", "1h")
	o := releasing(2, 2, 0)
	o.Pods[len(o.Pods)-1].Released.For = plan.PurposeInterruption
	r := plan.Plan(o, p, plantest.DefaultSettings, spottest.Epoch)
	if len(r.Evictions) != 1 || r.Evictions[0].Pod != o.Pods[len(o.Pods)-1].UID || plantest.WaitOf(&r, plan.WaitWindow) == nil {
		t.Errorf("%+v", r)
	}
	if r := plan.Plan(o, p, plantest.DefaultSettings, spottest.Epoch.Add(5*time.Hour)); len(r.Evictions) != 2 {
		t.Errorf("%+v", r)
	}
}

func TestMovesReleaseWhatServesAndEvictWhatDoesNot(t *testing.T) {
	s := plantest.DefaultSettings
	s.Strategy, s.MaxMoves = policy.StrategyRelease, policy.MoveLimit{Count: 4}
	pods := plantest.Arrived(plantest.Replicas(10, spottest.SpotOnly), 4, capacity.OnDemand)
	for i := range pods {
		pods[i].Hash = "abc"
	}
	pods[7].Ready = false
	o := plantest.ObservedOf(pods, 14)
	o.Budgets = []plan.Budget{{Name: "web", Healthy: true}} // allows none: a release needs none
	for i := range o.Pods {
		o.Pods[i].Budgets = []int{0}
	}
	r := plan.Plan(o, spottest.PolicyOf(40, 0), s, spottest.Epoch)
	if diff := cmp.Diff(map[string]int{"evict move": 1, "release move": 3}, plantest.Purposes(&r)); diff != "" {
		t.Error(diff)
	}
	want := plan.Released{Owner: spottest.OwnerUID, OwnerName: "web", Hash: "abc", For: plan.PurposeMove, At: spottest.Epoch, Until: spottest.Epoch.Add(plan.StandInTime)}
	if diff := cmp.Diff(want, r.Releases[0].Released); diff != "" {
		t.Error(diff)
	}
	o.NoRelease = "Service shop/web selects pod-template-hash"
	r = plan.Plan(o, spottest.PolicyOf(40, 0), s, spottest.Epoch)
	if len(r.Releases) > 0 || len(r.Evictions) != 1 {
		t.Errorf("%+v", r)
	}
	if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], o.NoRelease) {
		t.Errorf("why nothing is released: %q", r.Notes)
	}
}

func TestAStatefulSetThatShouldReleaseSaysThatItEvicts(t *testing.T) {
	s := plantest.DefaultSettings
	s.Strategy = policy.StrategyRelease
	o := plantest.ObservedOf(plantest.Replicas(4, spottest.SpotOnly), 4)
	o.Ordinals = true
	if r := plan.Plan(o, spottest.PolicyOf(50, 0), s, spottest.Epoch); len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "StatefulSet") {
		t.Errorf("%q", r.Notes)
	}
}

func TestTheCoolDownIsReadOffReleasedPods(t *testing.T) {
	s := plantest.DefaultSettings
	o := plantest.ObservedOf(plantest.Replicas(10, spottest.SpotOnly), 10)
	stand := o.Pods[0]
	stand.UID, stand.Released = "old", &plan.Released{Owner: spottest.OwnerUID, For: plan.PurposeMove, At: spottest.Epoch.Add(-2 * time.Second)}
	o.Pods = append(o.Pods, stand)
	r := plan.Plan(o, spottest.PolicyOf(0, 0), s, spottest.Epoch)
	if w := plantest.WaitOf(&r, plan.WaitCooldown); w == nil || !w.Until.Equal(spottest.Epoch.Add(9*time.Second)) {
		t.Errorf("%+v", r)
	}
	stand.Released.For = plan.PurposeInterruption
	if r := plan.Plan(o, spottest.PolicyOf(0, 0), s, spottest.Epoch); plantest.WaitOf(&r, plan.WaitCooldown) != nil {
		t.Errorf("an interruption is no batch of moves: %+v", r)
	}
}

func TestAReplacementOfABatchThatIsRememberedDoesNotProlongItsCoolDown(t *testing.T) {
	o := plantest.ObservedOf(plantest.Replicas(20, spottest.SpotOnly), 20)
	o.LastMove = spottest.Epoch.Add(-10 * time.Second)
	o.Pods[0].Moved, o.Pods[0].Created = true, spottest.Epoch.Add(-8*time.Second)
	if r := plan.Plan(o, spottest.PolicyOf(0, 0), plantest.DefaultSettings, spottest.Epoch); len(r.Evictions) == 0 {
		t.Errorf("%+v", r)
	}
}

func TestAReleasedPodIsReadOffItsAnnotationAndLabelTogether(t *testing.T) {
	want := plan.Released{Owner: spottest.OwnerUID, OwnerName: "web-abc", Workload: "web", Hash: "abc", For: plan.PurposeMove, At: spottest.Epoch}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-1", UID: "1",
		Labels: map[string]string{plan.TemplateHash: plan.ReleasedHash("abc")}, Annotations: map[string]string{spottest.DefaultKeys.Released(): want.String()}}}
	got := plan.PodOf(spottest.DefaultKeys.OfPods(), pod, capacity.Spot)
	if got.Released == nil || got.Owner != spottest.OwnerUID || got.Supply() || !got.Alive() {
		t.Fatalf("%+v", got)
	}
	if diff := cmp.Diff(want, *got.Released); diff != "" {
		t.Error(diff)
	}
	pod.Labels[plan.TemplateHash] = "abc" // copied into a template, or given back by a person
	if got := plan.PodOf(spottest.DefaultKeys.OfPods(), pod, capacity.Spot); got.Released != nil || got.Owner != "" || got.Hash != "abc" {
		t.Errorf("%+v", got)
	}
	for _, bad := range []string{"", "true", `{"owner":""}`, `{"owner":"x"}`, string(make([]byte, 5000))} {
		if _, ok := plan.ParseReleased(bad); ok {
			t.Errorf("%.20q is accepted", bad)
		}
	}
}

// Whoever writes pods may write that they were released in the year 3000.
func TestAReleaseInTheFutureIsStuck(t *testing.T) {
	for name, c := range map[string]struct {
		at     time.Time
		moving int
	}{
		"another hub's clock is a little ahead": {spottest.Epoch.Add(time.Minute), 3},
		"the year 3000":                         {time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC), 0},
	} {
		o := releasing(3, 0, 0)
		for i := range o.Pods {
			if o.Pods[i].Released != nil {
				o.Pods[i].Released.At = c.at
			}
		}
		if r := plan.Plan(o, spottest.PolicyOf(0, 0), plantest.DefaultSettings, spottest.Epoch); r.Moving != c.moving || r.Released != 3 {
			t.Errorf("%s: %d of %d released pods are on the move, want %d", name, r.Moving, r.Released, c.moving)
		}
	}
}
