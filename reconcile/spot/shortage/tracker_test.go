package shortage

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
)

// testNamespace has all pods that are in no other.
const testNamespace = "shop"

func cpu(milli int64, constraints ...string) capacity.Requirements {
	return capacity.Requirements{CPU: milli, Constraints: constraints}
}

// pendingPod has been unschedulable since a time.
func pendingPod(uid string, shape capacity.Requirements, since time.Time) Pod {
	return Pod{UID: types.UID(uid), Namespace: testNamespace, Requirements: shape, Timeout: time.Minute, UnschedulableSince: since}
}

// trackerWorld is a Drought with probes that exist as it says.
type trackerWorld struct {
	*Tracker
	probes map[string]Probe
	opened int
}

func newTrackerWorld() *trackerWorld {
	return &trackerWorld{Tracker: NewSpotTracker(DefaultSettings()), probes: map[string]Probe{}}
}

// step does what the plan says.
func (w *trackerWorld) step(now time.Time) Plan {
	plan := w.Step(now)
	for _, name := range plan.Delete {
		delete(w.probes, name)
		w.ProbeGone(name)
	}
	for _, p := range plan.Create {
		w.probes[p.Name] = p
		w.ObserveProbe(p, now)
	}
	for _, noted := range plan.Note {
		p := w.probes[noted.Name]
		p.Namespaces = noted.Namespaces
		w.probes[p.Name] = p
		w.ObserveProbe(p, now)
	}
	for _, name := range plan.Open {
		p := w.probes[name]
		p.Gated, p.OpenedAt = false, now
		w.probes[name] = p
		w.ObserveProbe(p, now)
		w.opened++
	}
	return plan
}

// restart forgets everything but the probes.
func (w *trackerWorld) restart(now time.Time) {
	w.Tracker = NewSpotTracker(DefaultSettings())
	for _, p := range w.probes {
		w.ObserveProbe(p, now)
	}
}

// bindOpen lets the scheduler find room for the probes that wait for it.
func (w *trackerWorld) bindOpen(now time.Time) {
	for name, p := range w.probes {
		if !p.Gated {
			p.BoundAt = now
			w.probes[name] = p
			w.ObserveProbe(p, now)
		}
	}
}

// open returns the CPU requests of the probes that wait for a node.
func (w *trackerWorld) open() (cpu []int64) {
	for _, p := range w.probes {
		if !p.Gated {
			cpu = append(cpu, p.Requirements.CPU)
		}
	}
	return cpu
}

func TestSpotIsDryForAShapeOnceAPodHasWaitedForItsTimeout(t *testing.T) {
	w := newTrackerWorld()
	w.Observe(pendingPod("a", cpu(500), epoch), epoch)
	if plan := w.step(epoch.Add(59 * time.Second)); !plan.Recheck.Equal(epoch.Add(time.Minute)) || len(plan.Create) > 0 {
		t.Errorf("%+v", plan)
	}
	before := w.Generation()
	now := epoch.Add(time.Minute)
	plan := w.step(now)
	if since, dry := w.Dry(cpu(500), testNamespace); !dry || !since.Equal(now) || w.Generation() == before {
		t.Errorf("dry since %v: %v", since, dry)
	}
	if len(plan.Create) != 1 || !plan.Create[0].Gated || !plan.Create[0].NextProbe.Equal(now.Add(2*time.Minute)) {
		t.Errorf("%+v", plan)
	}
	if plan := w.Step(now); !plan.Empty() || !plan.Recheck.Equal(now.Add(2*time.Minute)) {
		t.Errorf("with its probe there, nothing is to be done: %+v", plan)
	}
}

func TestAPodThatIsPlacedOrGoneInTimeIsNoDrought(t *testing.T) {
	w := newTrackerWorld()
	w.Observe(pendingPod("a", cpu(500), epoch), epoch)
	w.Observe(pendingPod("b", cpu(500), epoch), epoch)
	bound := pendingPod("a", cpu(500), epoch)
	bound.BoundAt = epoch.Add(time.Second)
	w.Observe(bound, epoch.Add(time.Second))
	w.Gone("b")
	if plan := w.step(epoch.Add(time.Hour)); len(w.Decisions())+len(plan.Create) > 0 || !plan.Recheck.IsZero() {
		t.Errorf("%+v", plan)
	}
}

// One impossible pod must not speak for all.
func TestADecisionHoldsForPodsThatAreAtLeastAsHardToPlaceAndForNoOthers(t *testing.T) {
	w := newTrackerWorld()
	shape := capacity.Requirements{CPU: 1000, Memory: 1 << 30, Constraints: []string{"select:zone=a"}, Tolerations: []string{"x"}}
	w.Observe(pendingPod("a", shape, epoch), epoch)
	w.step(epoch.Add(time.Minute))
	for name, c := range map[string]struct {
		change func(s *capacity.Requirements)
		dry    bool
	}{
		"the same":                {func(*capacity.Requirements) {}, true},
		"larger":                  {func(s *capacity.Requirements) { s.CPU *= 2 }, true},
		"with another request":    {func(s *capacity.Requirements) { s.Other = []capacity.Request{{Name: "gpu", Amount: 1}} }, true},
		"more constrained":        {func(s *capacity.Requirements) { s.Constraints = []string{"apart:x", "select:zone=a"} }, true},
		"less tolerant":           {func(s *capacity.Requirements) { s.Tolerations = nil }, true},
		"smaller":                 {func(s *capacity.Requirements) { s.Memory-- }, false},
		"less constrained":        {func(s *capacity.Requirements) { s.Constraints = nil }, false},
		"differently constrained": {func(s *capacity.Requirements) { s.Constraints = []string{"select:zone=b"} }, false},
		"more tolerant":           {func(s *capacity.Requirements) { s.Tolerations = []string{"x", "y"} }, false},
		"of a higher priority":    {func(s *capacity.Requirements) { s.Priority = 1 }, false},
	} {
		other := shape
		c.change(&other)
		if _, dry := w.Dry(other, testNamespace); dry != c.dry {
			t.Errorf("%s: dry is %v", name, dry)
		}
	}
}

func TestTheSmallestShapeOfAGroupIsProbedAndSpeaksForAll(t *testing.T) {
	w := newTrackerWorld()
	for i, shape := range []capacity.Requirements{cpu(4000), cpu(1000), cpu(2000), cpu(1000, "select:disk=ssd"), {Memory: 5}} {
		w.Observe(pendingPod(fmt.Sprint(i), shape, epoch), epoch)
	}
	w.step(epoch.Add(time.Minute))
	var probed []string
	for _, p := range w.probes {
		probed = append(probed, p.Requirements.String())
	}
	slices.Sort(probed)
	if diff := cmp.Diff([]string{`{"cpu":1000}`, `{"memory":5}`}, probed); diff != "" {
		t.Error(diff)
	}
	for i := range 5 { // they are replaced
		w.Gone(types.UID(fmt.Sprint(i)))
	}
	w.step(epoch.Add(3 * time.Minute))
	w.bindOpen(epoch.Add(3*time.Minute + time.Second))
	w.step(epoch.Add(3*time.Minute + 2*time.Second))
	if len(w.Decisions())+len(w.probes) > 0 {
		t.Errorf("left: %+v, probes %+v", w.Decisions(), w.probes)
	}
}

// A pod that no node could ever hold is not probed, and not tried again, because easier ones have room.
func TestAShapeThatWasDryLongBeforeAnEasierOneStandsForItself(t *testing.T) {
	w := newTrackerWorld()
	w.Observe(pendingPod("giant", cpu(1<<20), epoch), epoch)
	w.step(epoch.Add(time.Minute))
	w.Gone("giant")
	now := epoch.Add(time.Hour)
	w.Observe(pendingPod("small", cpu(100), now.Add(-time.Minute)), now)
	w.step(now)
	w.Gone("small")
	w.opened = 0
	for w.opened == 0 || now.Before(epoch.Add(70*time.Minute)) || len(w.open()) == 0 {
		now = now.Add(10 * time.Second)
		w.step(now)
		if slices.Contains(w.open(), 1<<20) {
			t.Fatal("the giant is probed while not even the small shape has room")
		}
	}
	w.bindOpen(now)
	w.step(now)
	if _, dry := w.Dry(cpu(100), testNamespace); dry {
		t.Error("the small shape is still dry")
	}
	if _, dry := w.Dry(cpu(1<<20), testNamespace); !dry {
		t.Error("room for a small pod is taken for room for a giant")
	}
}

func TestProbesBackOffFromTwoToThirtyMinutesAlsoThroughRestarts(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		w := newTrackerWorld()
		w.Observe(pendingPod("a", cpu(100), epoch), epoch)
		now := epoch.Add(time.Minute)
		w.step(now)
		w.Gone("a")
		var gaps []time.Duration
		last, opened := now, 0
		for range 6 * 3600 {
			now = now.Add(time.Second)
			if restarts && now.Unix()%37 == 0 {
				w.restart(now)
			}
			w.step(now)
			if len(w.probes) != 1 {
				t.Fatalf("%d probes", len(w.probes))
			}
			if w.opened > opened {
				gaps, opened, last = append(gaps, now.Sub(last)-DefaultSettings().ProbeTime), w.opened, now
			}
		}
		gaps[0] += DefaultSettings().ProbeTime // no probe before the first
		want := []time.Duration{2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 30 * time.Minute, 30 * time.Minute}
		if diff := cmp.Diff(want, gaps[:6]); diff != "" {
			t.Errorf("restarts %v: %s", restarts, diff)
		}
	}
}

func TestADroughtThatComesBackGoesOnWithItsBackOff(t *testing.T) {
	w := newTrackerWorld()
	w.Observe(pendingPod("a", cpu(100), epoch), epoch)
	now := epoch.Add(time.Minute)
	w.step(now)
	w.Gone("a")
	now = now.Add(2 * time.Minute)
	w.step(now)
	w.bindOpen(now)
	w.step(now)
	w.Observe(pendingPod("b", cpu(100), now.Add(-time.Hour)), now)
	if plan := w.step(now.Add(59 * time.Second)); len(w.Decisions()) > 0 || !plan.Recheck.Equal(now.Add(time.Minute)) {
		t.Errorf("what waited before counts from the end of the drought on: %+v", plan)
	}
	now = now.Add(time.Minute)
	w.step(now)
	if v := w.Decisions(); len(v) != 1 || !v[0].NextProbe.Equal(now.Add(4*time.Minute)) {
		t.Errorf("%+v", v)
	}
}

func TestADroughtThatComesBackAfterAnHourIsANewOne(t *testing.T) {
	w := newTrackerWorld()
	w.Observe(pendingPod("a", cpu(100), epoch), epoch)
	w.step(epoch.Add(time.Minute))
	w.Gone("a")
	w.Observe(Pod{UID: "b", Namespace: testNamespace, Requirements: cpu(100), BoundAt: epoch.Add(2 * time.Minute)}, epoch.Add(2*time.Minute))
	now := epoch.Add(2 * time.Hour)
	w.Observe(pendingPod("c", cpu(100), now), now)
	now = now.Add(time.Minute)
	w.step(now)
	if v := w.Decisions(); len(v) != 1 || v[0].Tries != 0 || !v[0].NextProbe.Equal(now.Add(2*time.Minute)) {
		t.Errorf("%+v", v)
	}
}

func TestTheProbeOfADroughtThatIsOverDoesNotBringItBack(t *testing.T) {
	w := newTrackerWorld()
	w.Observe(pendingPod("a", cpu(100), epoch), epoch)
	now := epoch.Add(time.Minute)
	w.step(now)
	w.Gone("a")
	w.Observe(Pod{UID: "b", Namespace: testNamespace, Requirements: cpu(100), BoundAt: now.Add(time.Second)}, now.Add(time.Second))
	for _, p := range w.probes { // the cache shows it until its deletion is seen
		w.ObserveProbe(p, now.Add(2*time.Second))
	}
	if _, dry := w.Dry(cpu(100), testNamespace); dry || len(w.probes) != 1 {
		t.Errorf("dry %v, %d probes", dry, len(w.probes))
	}
	if plan := w.step(now.Add(2 * time.Second)); len(plan.Delete) != 1 || len(plan.Create) > 0 {
		t.Errorf("%+v", plan)
	}
}

func TestAReplicaThatIsPlacedEndsTheDroughtUnlessOthersStillWait(t *testing.T) {
	w := newTrackerWorld()
	w.Observe(pendingPod("a", cpu(100), epoch), epoch)
	w.Observe(pendingPod("b", cpu(200), epoch), epoch)
	now := epoch.Add(time.Minute)
	w.step(now)
	bound := Pod{UID: "c", Namespace: testNamespace, Requirements: cpu(300), BoundAt: now.Add(2 * time.Second)}
	w.Observe(bound, now.Add(2*time.Second))
	if _, dry := w.Dry(cpu(100), testNamespace); !dry {
		t.Error("room for one is not room for all while another still waits")
	}
	w.Gone("a")
	bound.BoundAt = now.Add(-time.Second)
	w.Observe(bound, now.Add(3*time.Second))
	bound.Requirements, bound.BoundAt = cpu(50), now.Add(4*time.Second)
	w.Observe(bound, now.Add(4*time.Second))
	if _, dry := w.Dry(cpu(100), testNamespace); !dry {
		t.Error("a pod that was placed before, or an easier one, shows nothing")
	}
	bound.Requirements = cpu(100)
	w.Observe(bound, now.Add(5*time.Second))
	if _, dry := w.Dry(cpu(100), testNamespace); dry {
		t.Error("a pod of the shape was placed")
	}
	if plan := w.step(now.Add(5 * time.Second)); len(plan.Create) > 0 || len(w.probes) > 0 {
		t.Errorf("%+v", plan)
	}
}

func TestANewSpotNodeIsProbedSoonerButNotMoreOftenThanEveryTwoMinutes(t *testing.T) {
	w := newTrackerWorld()
	w.Observe(pendingPod("a", cpu(100), epoch), epoch)
	now := epoch.Add(time.Minute)
	w.step(now)
	w.Gone("a")
	for now.Before(epoch.Add(20 * time.Minute)) { // probes at 3, 9 and 19 minutes: the last is over at 21
		now = now.Add(time.Second)
		w.step(now)
	}
	now = epoch.Add(21*time.Minute + 10*time.Second)
	w.step(now)
	opened := w.opened
	for now.Before(epoch.Add(23 * time.Minute)) {
		w.NodeJoined(now)
		w.step(now)
		if w.opened > opened {
			t.Fatalf("probed at %s", now.Sub(epoch))
		}
		now = now.Add(time.Second)
	}
	w.NodeJoined(now)
	w.step(now)
	if w.opened != opened+1 {
		t.Error("the new node is not probed")
	}
}

func TestDecisionsThatNobodyNeedsEnd(t *testing.T) {
	w := newTrackerWorld()
	w.Observe(pendingPod("a", cpu(100), epoch), epoch)
	w.step(epoch.Add(time.Minute))
	w.Gone("a")
	w.Forget(cpu(100).String(), epoch, epoch.Add(2*time.Minute))
	if len(w.Decisions()) != 1 {
		t.Fatal("a decision ends that another one was before")
	}
	w.Forget(cpu(100).String(), epoch.Add(time.Minute), epoch.Add(2*time.Minute))
	w.step(epoch.Add(2 * time.Minute))
	if len(w.Decisions())+len(w.probes) > 0 {
		t.Errorf("%+v", w.Decisions())
	}
}

func TestAProbePodTellsAllThatAHubHasToKnow(t *testing.T) {
	w := newTrackerWorld()
	w.Observe(pendingPod("a", cpu(100, "select:zone=a"), epoch), epoch)
	made := w.step(epoch.Add(time.Minute)).Create[0]
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: made.Name, Annotations: made.Annotations(testKeys), CreationTimestamp: metav1.NewTime(epoch)},
		Spec: corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: "x"}}}}
	read := func() Probe {
		p, ok := ProbeOf(testKeys, pod)
		if !ok {
			t.Fatal("it is not read")
		}
		return p
	}
	if diff := cmp.Diff(made, read()); diff != "" {
		t.Error(diff)
	}
	pod.Spec.SchedulingGates = nil
	if got := read(); got.Gated || !got.OpenedAt.Equal(epoch) {
		t.Errorf("%+v", got)
	}
	opened := epoch.Add(3 * time.Minute)
	pod.Annotations[testKeys.ProbeOpened()] = opened.Format(time.RFC3339)
	pod.Spec.NodeName = "n"
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(opened)}}
	if got := read(); !got.OpenedAt.Equal(opened) || !got.BoundAt.Equal(opened) {
		t.Errorf("%+v", got)
	}
	pod.Annotations[testKeys.ProbeTries()] = "many"
	if _, ok := ProbeOf(testKeys, pod); ok {
		t.Error("a probe without a number of tries is none of ours")
	}
}

// Whatever happens: every pod that waits for too long is of a dry shape, there is at most one open probe in a chain of
// shapes, and a plan that was carried out asks for nothing more.
func TestDroughtsAreLevelTriggered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, now := newTrackerWorld(), epoch
		pods := map[string]Pod{}
		drawShape := func() capacity.Requirements {
			s := capacity.Requirements{CPU: int64(rapid.IntRange(1, 4).Draw(t, "cpu")), Memory: int64(rapid.IntRange(1, 3).Draw(t, "memory"))}
			if rapid.Bool().Draw(t, "constrained") {
				s.Constraints = []string{"select:zone=a"}
			}
			return s
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			name := fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "pod"))
			switch rapid.IntRange(0, 6).Draw(t, "what") {
			case 0, 1:
				if p, ok := pods[name]; !ok || !p.BoundAt.IsZero() {
					pods[name] = pendingPod(name, drawShape(), now)
					w.Observe(pods[name], now)
				}
			case 2:
				if p, ok := pods[name]; ok && p.BoundAt.IsZero() {
					p.BoundAt = now
					pods[name] = p
					w.Observe(p, now)
				}
			case 3:
				delete(pods, name)
				w.Gone(types.UID(name))
			case 4:
				w.bindOpen(now)
			case 5:
				w.NodeJoined(now)
			case 6:
				w.restart(now)
				for _, p := range pods {
					w.Observe(p, now)
				}
			}
			w.step(now)
			if again := w.Step(now); !again.Empty() {
				t.Fatalf("not idempotent: %+v", again)
			}
			for _, p := range pods {
				if _, dry := w.Dry(p.Requirements, testNamespace); p.BoundAt.IsZero() && !now.Before(w.pendingSince(&p).Add(p.Timeout)) && !dry {
					t.Fatalf("%+v has waited since %s, and spot is not dry", p.Requirements, p.UnschedulableSince)
				}
			}
			if len(w.probes) != len(w.Decisions()) {
				t.Fatalf("%d probes for %d decisions", len(w.probes), len(w.Decisions()))
			}
			now = now.Add(time.Duration(rapid.IntRange(1, 90).Draw(t, "seconds")) * time.Second)
		}
	})
}

// Requirements are compared part by part, and calls about other pods wait meanwhile.
func TestRequirementsOfVeryManyPartsAreNotJudged(t *testing.T) {
	parts := make([]string, maxParts+1)
	for i := range parts {
		parts[i] = fmt.Sprintf("select:k%03d=", i)
	}
	for n, judged := range map[int]bool{maxParts: true, maxParts + 1: false} {
		d := NewSpotTracker(DefaultSettings())
		d.Observe(pendingPod("a", cpu(100, parts[:n]...), epoch), epoch)
		next := d.Step(epoch.Add(time.Minute))
		if _, dry := d.Dry(cpu(200, parts...), testNamespace); dry != judged || len(d.Decisions()) == 1 != judged {
			t.Errorf("a pod of %d parts that waits makes %d decisions: %+v", n, len(d.Decisions()), next)
		}
		d = NewSpotTracker(DefaultSettings())
		d.Exclude(cpu(100, parts[:n]...), testNamespace, true, epoch)
		if len(d.Decisions()) == 1 != judged {
			t.Errorf("pods of %d parts that nodes leave out make %d decisions", n, len(d.Decisions()))
		}
	}
}

// inNamespace is a pod of another namespace.
func inNamespace(namespace string, p Pod) Pod {
	p.Namespace = namespace
	p.UID = types.UID(namespace + "/" + string(p.UID))
	return p
}

// A tenant can have pods that never find a node, for reasons that their requirements do not show, and ask for as little as it likes.
func TestAPodThatWaitsSpeaksForItsNamespaceUntilItsProbeHasFailed(t *testing.T) {
	w := newTrackerWorld()
	w.Observe(inNamespace("tenant", pendingPod("a", cpu(1), epoch)), epoch)
	now := epoch.Add(time.Minute)
	w.step(now)
	if _, dry := w.Dry(cpu(100), "tenant"); !dry {
		t.Fatal("it does not speak for its own namespace")
	}
	if _, dry := w.Dry(cpu(100), "shop"); dry {
		t.Error("one tenant turns spot off for all")
	}
	// Its probe starts, although the pod waits, and finds room.
	now = now.Add(DefaultSettings().FirstProbe)
	if w.step(now); w.opened != 1 {
		t.Fatalf("%d probes are opened", w.opened)
	}
	w.bindOpen(now)
	w.step(now)
	if len(w.Decisions()) > 0 || w.Probing(cpu(100), "shop") || !w.Probing(cpu(100), "tenant") {
		t.Errorf("%v; others return one at a time: %t", w.Decisions(), w.Probing(cpu(100), "shop"))
	}
	// It comes back, and others that wait are judged by their own time.
	w.Observe(pendingPod("b", cpu(50), now.Add(-time.Second)), now)
	now = now.Add(time.Minute)
	w.step(now)
	if _, dry := w.Dry(cpu(100), testNamespace); !dry {
		t.Error("the end of a tenant's decision puts off that of another")
	}
	if _, dry := w.Dry(cpu(100), "another"); dry {
		t.Error("two of them speak for all")
	}
}

func TestAShortageHoldsForAllOnceItsProbeHasFailedOrManyShowIt(t *testing.T) {
	probed, shown := newTrackerWorld(), newTrackerWorld()
	for _, w := range []*trackerWorld{probed, shown} {
		w.Observe(inNamespace("a", pendingPod("p", cpu(100), epoch)), epoch)
		w.step(epoch.Add(time.Minute))
	}
	for _, namespace := range []string{"b", "c"} {
		if _, dry := shown.Dry(cpu(100), "z"); dry {
			t.Errorf("it holds for all before a pod of %s shows it", namespace)
		}
		shown.Observe(inNamespace(namespace, pendingPod("p", cpu(100), epoch)), epoch.Add(time.Minute))
		shown.step(epoch.Add(time.Minute))
	}
	opened := epoch.Add(time.Minute).Add(DefaultSettings().FirstProbe)
	probed.step(opened)
	before := probed.Generation()
	probed.step(opened.Add(DefaultSettings().ProbeTime))
	if probed.Generation() == before {
		t.Error("nobody is woken")
	}
	for name, w := range map[string]*trackerWorld{"a probe has failed": probed, "pods of three namespaces wait": shown} {
		if _, dry := w.Dry(cpu(100), "z"); !dry || len(w.Decisions()) != 1 {
			t.Errorf("%s: %v", name, w.Decisions())
		}
	}
}

// Where pods of many namespaces wait, an autoscaler needs no probe to bring nodes. But why they find none is not all in their requirements.
func TestPodsOfManyNamespacesThatWaitPutOffAProbeForAWhileOnly(t *testing.T) {
	w := newTrackerWorld()
	for _, namespace := range []string{"a", "b", "c"} {
		w.Observe(inNamespace(namespace, pendingPod("p", cpu(1), epoch)), epoch)
	}
	now := epoch.Add(time.Minute)
	w.step(now)
	now = now.Add(DefaultSettings().FirstProbe)
	latest := now.Add(DefaultSettings().FirstProbe)
	if plan := w.step(now); w.opened != 0 || !plan.Recheck.Equal(latest) {
		t.Errorf("%d probes are opened, and it is looked at again at %s", w.opened, plan.Recheck)
	}
	if w.step(latest); w.opened != 1 {
		t.Fatalf("%d probes are opened", w.opened)
	}
	w.bindOpen(latest)
	w.step(latest)
	if _, dry := w.Dry(cpu(100), testNamespace); dry {
		t.Error("pods that find no node for reasons of their own turn spot off for all, and a probe has found room")
	}
}

// Probes are the memory of a process that takes over, whichever namespaces have shown a decision since its probe was made.
func TestNamespacesThatShowADecisionLaterAreWrittenOnItsProbe(t *testing.T) {
	for name, opened := range map[string]bool{"before it is opened": false, "after": true} {
		w, standby := newTrackerWorld(), NewSpotTracker(DefaultSettings())
		first := inNamespace("a", pendingPod("p", cpu(100), epoch))
		now := epoch.Add(time.Minute)
		for _, d := range []*Tracker{w.Tracker, standby} {
			d.Observe(first, epoch)
			d.Step(now)
		}
		w.step(now)
		if opened {
			now = now.Add(DefaultSettings().FirstProbe)
			w.step(now)
		}
		for n, namespace := range []string{"b", "c"} {
			w.Observe(inNamespace(namespace, pendingPod("p", cpu(100), epoch)), now)
			if plan := w.step(now); len(plan.Note) != 1 || len(plan.Create)+len(plan.Delete) > 0 || w.opened == 1 != opened {
				t.Errorf("%s: %+v", name, plan)
			}
			if plan := w.Step(now); !plan.Empty() {
				t.Errorf("%s: it is noted, and done again: %+v", name, plan)
			}
			for _, p := range w.probes {
				standby.ObserveProbe(p, now)
			}
			w.restart(now)
			for what, d := range map[string]*Tracker{"a restart": w.Tracker, "a standby": standby} {
				if _, dry := d.Dry(cpu(100), namespace); !dry {
					t.Errorf("%s: %s does not know that %s has shown it", name, what, namespace)
				}
				if _, dry := d.Dry(cpu(100), "z"); dry != (n == 1) {
					t.Errorf("%s: for %s it holds for all: %t", name, what, dry)
				}
			}
			if plan := standby.Step(now); len(plan.Note) > 0 {
				t.Errorf("%s: a standby knows better: %+v", name, plan.Note)
			}
		}
	}
}

// A pod of one tenant that waits for ever is no reason that another's, which was placed, shows nothing, or that the probe of a
// harder shape is not opened.
func TestAPodThatWaitsForEverHoldsUpNoOthers(t *testing.T) {
	w := newTrackerWorld()
	w.Observe(inNamespace("tenant", pendingPod("a", cpu(1), epoch)), epoch)
	w.Observe(pendingPod("b", cpu(500), epoch), epoch)
	now := epoch.Add(time.Minute)
	w.step(now)
	now = now.Add(DefaultSettings().FirstProbe)
	if w.step(now); w.opened != 2 {
		t.Errorf("%d probes are opened, want those of both", w.opened)
	}
	w.Observe(boundTo("b", cpu(500), epoch, time.Time{}), now)
	if _, dry := w.Dry(cpu(500), testNamespace); dry {
		t.Error("the decision stands on what a tenant says")
	}
}

func TestATenantMakesFewDecisions(t *testing.T) {
	w := newTrackerWorld()
	for n := range 2 * maxOwn {
		w.Observe(inNamespace("tenant", pendingPod(fmt.Sprint(n), cpu(100, fmt.Sprintf("select:n=%03d", n)), epoch)), epoch)
	}
	w.Observe(pendingPod("b", cpu(100, "select:b=b"), epoch), epoch)
	w.step(epoch.Add(time.Minute))
	if n := len(w.Decisions()); n != maxOwn+1 {
		t.Errorf("%d decisions stand", n)
	}
	if _, dry := w.Dry(cpu(100, "select:b=b"), testNamespace); !dry {
		t.Error("there is no room for that of another namespace")
	}
}

// Shortages of one namespace leave room for those of others, however long its requirements are.
func TestATenantsLongRequirementsLeaveRoomForThoseOfOthers(t *testing.T) {
	w := newTrackerWorld()
	long := strings.Repeat("a", capacity.MaxText/2)
	for n := range maxOwn {
		w.Observe(inNamespace("tenant", pendingPod(fmt.Sprint(n), cpu(100, fmt.Sprintf("select:%s=%03d", long, n)), epoch)), epoch)
	}
	w.step(epoch.Add(time.Minute))
	bytes := 0
	for _, v := range w.Decisions() {
		bytes += len(v.Requirements.String())
	}
	if bytes == 0 || bytes > maxOwnBytes {
		t.Errorf("%d decisions stand with %d bytes", len(w.Decisions()), bytes)
	}
}
