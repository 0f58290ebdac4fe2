package shortage

import (
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
)

// boundTo is a pod that a node took which had come at a time.
func boundTo(uid string, shape capacity.Requirements, bound, joined time.Time) Pod {
	p := pendingPod(uid, shape, time.Time{})
	p.BoundAt, p.NodeJoined = bound, joined
	return p
}

func TestASignOfANodePutsADecisionOffUntilTheNodeIsLate(t *testing.T) {
	w := newTrackerWorld()
	p := pendingPod("a", cpu(100), epoch)
	p.NodeComing = true
	w.Observe(p, epoch.Add(time.Second))
	late := epoch.Add(w.settings.NodeStart)
	if plan := w.step(late.Add(-time.Second)); len(w.Decisions()) > 0 || !plan.Recheck.Equal(late) || !w.NodeComing("a", late.Add(-time.Second)) {
		t.Errorf("%+v, decisions %+v", plan, w.Decisions())
	}
	if w.step(late); len(w.Decisions()) != 1 || w.NodeComing("a", late) {
		t.Errorf("decisions %+v", w.Decisions())
	}
}

func TestAfterTheLastSignPodsHaveAMomentToBeBound(t *testing.T) {
	w := newTrackerWorld()
	p := pendingPod("a", cpu(100), epoch)
	p.NodeComing = true
	last := epoch.Add(100 * time.Second)
	w.Observe(p, last)
	p.NodeComing = false
	w.Observe(p, last.Add(5*time.Second))
	if w.step(last.Add(BindTime - time.Second)); len(w.Decisions()) > 0 {
		t.Error("it is judged while it may still be bound")
	}
	if w.step(last.Add(BindTime)); len(w.Decisions()) != 1 {
		t.Error("it is not judged")
	}
}

func TestAPodOfWhichNobodyHasAskedIsNotJudged(t *testing.T) {
	w := newTrackerWorld()
	p := pendingPod("a", cpu(100), epoch)
	p.Unasked = true
	w.Observe(p, epoch)
	if w.step(epoch.Add(time.Hour)); len(w.Decisions()) > 0 {
		t.Error("it is judged")
	}
	p.Unasked = false
	w.Observe(p, epoch.Add(time.Hour))
	if w.step(epoch.Add(time.Hour)); len(w.Decisions()) != 1 {
		t.Error("it is not judged")
	}
}

func TestPatienceIsTwiceTheStartTimeThatWasSeen(t *testing.T) {
	for name, c := range map[string]struct {
		bound, joined, want time.Duration // after the pod began to wait
	}{
		"a new node":                {90 * time.Second, 80 * time.Second, 160 * time.Second},
		"a node that was there":     {90 * time.Second, -time.Second, time.Minute},
		"a node that came too late": {time.Hour, time.Hour, time.Minute},
		"at most the bound":         {280 * time.Second, 270 * time.Second, 5 * time.Minute},
		"no less than the timeout":  {20 * time.Second, 10 * time.Second, time.Minute},
	} {
		w := newTrackerWorld()
		p := pendingPod("a", cpu(100), epoch)
		p.NodeComing = true
		w.Observe(p, epoch)
		bound := epoch.Add(c.bound)
		w.Observe(boundTo("a", cpu(100), bound, epoch.Add(c.joined)), bound)
		w.Observe(pendingPod("b", cpu(100), bound), bound)
		if next := w.Judge(bound); next.Sub(bound) != c.want {
			t.Errorf("%s: the next pod may wait for %s, want %s", name, next.Sub(bound), c.want)
		}
	}
}

func TestAProbeOnANodeThatWasMadeForThePodsTellsThatTheDecisionWasPremature(t *testing.T) {
	w := newTrackerWorld()
	w.Observe(pendingPod("a", cpu(100), epoch), epoch)
	w.step(epoch.Add(time.Minute))
	w.Gone("a")
	now := epoch.Add(3 * time.Minute)
	w.step(now)
	for _, p := range w.probes {
		p.BoundAt, p.NodeJoined = now, epoch.Add(100*time.Second)
		w.ObserveProbe(p, now)
	}
	w.step(now)
	w.Observe(pendingPod("b", cpu(200), now), now)
	if next := w.Judge(now); next.Sub(now) != 200*time.Second {
		t.Errorf("the next pod may wait for %s", next.Sub(now))
	}
}

func TestAStartTimeThatIsNotSeenAgainIsForgotten(t *testing.T) {
	var s StartTimes
	s.learn(2*time.Minute, epoch, epoch)
	s.learn(time.Minute, epoch.Add(time.Hour), epoch.Add(time.Hour))
	for after, want := range map[time.Duration]time.Duration{
		time.Hour: 2 * time.Minute, patienceHalves: time.Minute, 2 * patienceHalves: 30 * time.Second, 365 * patienceHalves: 0,
	} {
		if got := s.of(epoch.Add(after)); got != want {
			t.Errorf("after %s: %s, want %s", after, got, want)
		}
	}
	s.learn(2*time.Minute, epoch, epoch.Add(2*patienceHalves)) // reported again
	if got := s.of(epoch.Add(3 * patienceHalves)); got != 15*time.Second {
		t.Errorf("what was reported again counts for more: %s", got)
	}
	s.learn(time.Minute, epoch.Add(2*patienceHalves), epoch.Add(2*patienceHalves))
	if got := s.of(epoch.Add(2 * patienceHalves)); got != time.Minute {
		t.Errorf("it was seen again: %s", got)
	}
}

func TestAProbeWithASignIsGivenUntilItsNodeIsLate(t *testing.T) {
	w := newTrackerWorld()
	w.Observe(pendingPod("a", cpu(100), epoch), epoch)
	w.step(epoch.Add(time.Minute))
	w.Gone("a")
	opened := epoch.Add(3 * time.Minute)
	w.step(opened)
	if ask := w.AskOf(0, opened.Add(w.settings.ProbeTime-time.Second)); len(ask) > 0 {
		t.Errorf("it is asked before it matters: %+v", ask)
	}
	over := opened.Add(w.settings.ProbeTime)
	ask := w.AskOf(0, over)
	if len(ask) != 1 {
		t.Fatalf("%+v", ask)
	}
	w.ProbeSign(ask[0].Name, true, over)
	if plan := w.step(over); len(plan.Delete) > 0 || w.Decisions()[0].Tries != 0 {
		t.Errorf("it is given up: %+v", plan)
	}
	if w.step(opened.Add(w.settings.NodeStart)); w.Decisions()[0].Tries != 1 {
		t.Error("it waits for ever")
	}
}

func TestAProbeWaitsWhileReplicasOfItsShapeOfManyNamespacesWait(t *testing.T) {
	w := newTrackerWorld()
	w.Observe(pendingPod("a", cpu(100), epoch), epoch)
	for _, elsewhere := range []string{"b", "c"} {
		p := pendingPod(elsewhere, cpu(100), epoch)
		p.Namespace = elsewhere
		w.Observe(p, epoch)
	}
	w.step(epoch.Add(time.Minute))
	now := epoch.Add(time.Minute + 2*DefaultSettings().FirstProbe - time.Second)
	if w.step(now); w.opened > 0 {
		t.Error("an autoscaler would bring a node for the probe as well")
	}
	w.Gone("b")
	w.Observe(boundTo("a", cpu(100), epoch, time.Time{}), now)
	if w.step(now); len(w.Decisions()) > 0 {
		t.Error("the replica has found a node, and the decision stands")
	}
}
