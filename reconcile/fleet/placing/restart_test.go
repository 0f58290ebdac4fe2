package placing

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
)

func ownAutoscaler() *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "own"},
		Spec:       autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}},
	}
}

func (b *bench) create(member string, o *autoscalingv2.HorizontalPodAutoscaler) {
	b.Helper()
	if err := b.cluster[member].Client.Create(b.Context(), o); err != nil {
		b.Fatal(err)
	}
}

// Which members another autoscaler scales is in no cache: a hub that starts asks before it plans, or it would take replicas from
// the others for a member that it may not touch. StatefulSets have no slots to wait for, so the wrong plan would be done at once.
func TestAHubThatStartsAsksMembersBeforeItPlans(t *testing.T) {
	for _, ordinals := range []bool{false, true} {
		b := newBench(t, web(9, 3))
		b.create("a", ownAutoscaler())
		p := b.rounds(6)
		again := newBench(t, p)
		again.create("a", ownAutoscaler())
		again.views = b.views
		for name, v := range again.views {
			if ordinals {
				v.Ordinals = []spot.FleetOrdinal{}
			}
			again.views[name] = v
		}
		done := len(again.log)
		if again.rounds(5); len(again.log) != done {
			t.Errorf("after a restart: %v", again.log[done:])
		}
	}
}

// What spot placement saw before the member was out of reach, or somebody else's, says nothing of now.
func TestAnOldSightIsNotPlannedFrom(t *testing.T) {
	b := newBench(t, web(9, 3))
	b.rounds(4)
	b.acts = false
	b.rounds(1)
	b.acts = true
	old := b.views["a"]
	old.At, old.Replicas, old.Spot, old.OnDemand = b.now.Add(-time.Hour), 9, spot.FleetCount{Ready: 6}, spot.FleetCount{Ready: 3}
	right := b.views["a"]
	b.views["a"] = old
	done := len(b.log)
	if b.rounds(4); len(b.log) != done || len(b.revisited) == 0 {
		t.Errorf("%v, revisited: %v", b.log[done:], b.revisited)
	}
	b.views["a"] = right
	if b.rounds(3); len(b.log) != done {
		t.Errorf("%v", b.log[done:])
	}
}

func TestAWorkloadThatComesAfterItsPlacementIsSeenAtOnce(t *testing.T) {
	b := newBench(t, web(9, 3))
	there := b.views["c"]
	delete(b.views, "c")
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{enabled: "true"}}}
	if err := b.cluster["c"].Client.Delete(b.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	b.rounds(10)
	if b.ready() != 9 || b.state("c") != v1alpha1.MemberOut {
		t.Fatalf("%+v", b.views)
	}
	if err := b.cluster["c"].Client.Create(b.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	b.views["c"] = there
	if b.rounds(2); b.state("c") == v1alpha1.MemberOut {
		t.Error("it is taken for missing")
	}
	if b.rounds(40); b.views["c"].Replicas != 3 || b.ready() != 9 {
		t.Errorf("%+v", b.views)
	}
}

func TestWhatAMemberThatDoesNotAnswerSaidBeforeHolds(t *testing.T) {
	before := facts{asked: epoch, exists: true, scaler: "HorizontalPodAutoscaler own", selector: "app=web"}
	now := epoch.Add(time.Minute)
	if got := (facts{problem: "timeout"}).after(before, now); got != (facts{asked: now, exists: true, scaler: before.scaler, selector: before.selector, problem: "timeout"}) {
		t.Errorf("%+v", got)
	}
	if got := (facts{exists: true}).after(before, now); got != (facts{asked: now, exists: true}) {
		t.Errorf("%+v", got)
	}
}

func TestHowLongSpotHasHeldOutlivesARestart(t *testing.T) {
	b := newBench(t, web(9, 3))
	b.rounds(4)
	b.now = b.now.Add(50 * time.Hour)
	p := b.rounds(1)
	again := newBench(t, p)
	again.views, again.now = b.views, b.now
	again.rounds(2)
	life := again.memory[string(p.UID)].members["a"].spot.Life(again.now)
	if life < fleet.FirstLife+50*time.Hour {
		t.Errorf("a life of %s is predicted", life)
	}
	done := len(again.log)
	if again.rounds(3); len(again.log) != done {
		t.Errorf("%v", again.log[done:])
	}
}

// An order that is taken back is not carried out, even if the member's agent had it already.
func TestWhatIsNotWantedAnyMoreIsNotWritten(t *testing.T) {
	b := newBench(t, web(9, 3))
	b.rounds(4)
	b.gate = make(chan struct{})
	done := len(b.log)
	for _, replicas := range []int32{30, 9} {
		b.ask(replicas)
		b.see()
		b.round(b.Context(), b.now)
		b.now = b.now.Add(time.Second)
	}
	close(b.gate)
	b.agents.wait()
	if n := b.ran("scale a", done); n > 0 {
		t.Errorf("%v", b.log[done:])
	}
	if b.rounds(3); b.ready() != 9 {
		t.Errorf("%+v", b.views)
	}
}

// All spot of a member goes. Spot placement there waits a minute for nodes; the fleet does not.
func TestALossOfSpotIsCoveredElsewhereWithinSeconds(t *testing.T) {
	b := newBench(t, web(30, 3))
	b.rounds(4)
	v := b.views["a"]
	v.Spot, v.SpotUnboundSince = spot.FleetCount{Starting: v.Spot.Ready}, b.now
	b.views["a"] = v
	b.rounds(8)
	if b.ready() < 30 || b.views["a"].Spot.Ready > 1 {
		t.Errorf("%d are ready: %+v", b.ready(), b.views)
	}
}

// A status has whole seconds. After a restart clocks that differ by next to nothing must not have it written again.
func TestClocksThatDriftDoNotChangeHowLongSpotHasHeld(t *testing.T) {
	set := v1alpha1.Counts{Set: 2}
	last := &v1alpha1.MemberStatus{Name: "a", State: v1alpha1.MemberPlaced, Spot: set, SpotHeld: v1alpha1.Held{Since: &metav1.Time{Time: epoch}}}
	for drift, want := range map[time.Duration]time.Time{-time.Millisecond: epoch, time.Millisecond: epoch, time.Minute: epoch.Add(time.Minute)} {
		m := &memberMemory{known: true, spot: fleet.Resume(epoch.Add(drift), 0)}
		s := &sight{member: &Member{Name: "a", Reachable: true}, known: true, last: last, view: spot.FleetView{Spot: spot.FleetCount{Ready: 2}}}
		m.update(s, time.Minute, epoch.Add(time.Hour))
		if s.held.Since == nil || !s.held.Since.Time.Equal(want) {
			t.Errorf("a drift of %s: %+v, want %s", drift, s.held, want)
		}
	}
}
