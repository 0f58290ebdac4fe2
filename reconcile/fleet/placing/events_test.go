package placing

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/tools/events"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
)

// eventsOf makes a round about a toy, and returns the Events that come of it.
func eventsOf(t *testing.T, y *toy) []string {
	t.Helper()
	counted, err := newMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	recorder := events.NewFakeRecorder(100)
	c := &Controller{options: Options{Events: recorder}, metrics: counted}
	before := y.object.Status.DeepCopy().Members
	c.announce(y.decide(), before)
	close(recorder.Events)
	var all []string
	for event := range recorder.Events {
		all = append(all, event)
	}
	return all
}

func oneOf(t *testing.T, all []string, want ...string) {
	t.Helper()
	n := 0
	for _, event := range all {
		if strings.HasPrefix(event, want[0]) {
			n++
			for _, part := range want[1:] {
				if !strings.Contains(event, part) {
					t.Errorf("%q says nothing of %q", event, part)
				}
			}
		}
	}
	if n != 1 {
		t.Errorf("%d Events %s, want one: %q", n, want[0], all)
	}
}

func TestEventsTellOfMembersThatAreLostBackAndGone(t *testing.T) {
	y := newToy(t, seventy(12, 3))
	if all := eventsOf(t, y); len(all) == 0 || !strings.HasPrefix(all[0], "Normal Moved a: +") {
		t.Errorf("%q", all)
	}
	y.settle(0)
	y.members[2].Reachable, y.members[2].Since = false, y.now
	if all := eventsOf(t, y); len(all) > 0 {
		t.Errorf("within the grace: %q", all)
	}
	y.now = y.now.Add(2 * time.Minute)
	oneOf(t, eventsOf(t, y), "Warning MemberLost", "c: ", "other members replace its replicas")
	for _, event := range eventsOf(t, y) {
		if strings.Contains(event, "MemberLost") {
			t.Errorf("it is said again: %q", event)
		}
	}
	y.members[2].Reachable = true
	oneOf(t, eventsOf(t, y), "Normal MemberBack", "c ")
	y.settle(12)
	y.members = y.members[:2] // it is unregistered
	oneOf(t, eventsOf(t, y), "Warning LeftBehind", "c is no longer a member", "it keeps 4 replicas")
}

// client-go takes Events about one version of an object with one reason for one that repeats: what the second says is lost.
func TestOneEventSaysWhatHappenedInAllMembers(t *testing.T) {
	y := newToy(t, seventy(12, 3))
	oneOf(t, eventsOf(t, y), "Normal Moved", "a: +", "b: +", "c: +")
	y.settle(0)
	for i := range 2 {
		y.members[i].Reachable, y.members[i].Since = false, y.now.Add(-time.Hour)
	}
	oneOf(t, eventsOf(t, y), "Warning MemberLost", "a: ", "b: ")
}

func TestPlacementsAreCountedByTheStateOfTheirMembers(t *testing.T) {
	counted, err := newMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	y := newToy(t, seventy(12, 3))
	y.settle(0)
	y.members[2].Reachable, y.members[2].Since = false, y.now.Add(-time.Hour)
	counted.seen([]*item{y.decide()})
	if lost, placed := counted.members.WithLabelValues("c", string(v1alpha1.MemberLost)), counted.members.WithLabelValues("a", string(v1alpha1.MemberLost)); testutil.ToFloat64(lost) != 1 || testutil.ToFloat64(placed) != 0 {
		t.Errorf("%v are lost in c, and %v in a", testutil.ToFloat64(lost), testutil.ToFloat64(placed))
	}
}

func TestSeriesOfWhatIsOverAreRemoved(t *testing.T) {
	counted, err := newMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	y := newToy(t, seventy(12, 3))
	y.settle(0)
	series := func(items ...*item) [3]int {
		counted.seen(items)
		return [3]int{testutil.CollectAndCount(counted.placements), testutil.CollectAndCount(counted.members), testutil.CollectAndCount(counted.replicas)}
	}
	want := [3]int{1, 3, 3 * 2 * 3} // members in one state each, with two capacity types and three counts
	if got := series(y.decide()); got != want {
		t.Errorf("%v series, want %v", got, want)
	}
	y.members[2].Reachable, y.members[2].Since = false, y.now.Add(-time.Hour)
	if got := series(y.decide()); got != want {
		t.Errorf("%v series when a member is lost, want %v", got, want)
	}
	lost := y.decide()
	lost.stop = &stop{reason: reconcile.ReasonPaused, keeps: true, waits: true} // it may be back by now
	if got := series(lost); got[1] != 0 {
		t.Errorf("%d series of the members of what is paused", got[1])
	}
	if got := series(); got != [3]int{} { // this replica does not act
		t.Errorf("%v series of nothing", got)
	}
}

func TestMovesOfAMemberThatIsGoneAreCountedNoMore(t *testing.T) {
	b := newBench(t, web(9, 3))
	b.rounds(6)
	all := testutil.CollectAndCount(b.metrics.moves)
	registered := b.options.Members
	b.options.Members = func() []Member { return registered()[:2] }
	b.rounds(3)
	if left, gone := testutil.CollectAndCount(b.metrics.moves), b.metrics.moves.DeletePartialMatch(prometheus.Labels{"member": registered()[2].Name}); left == 0 || all <= left || gone > 0 {
		t.Errorf("%d series before, %d after, %d of the member that is gone", all, left, gone)
	}
}
