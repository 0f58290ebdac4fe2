package placing

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/replay"
)

// keeper is a controller that keeps the history of a toy's FleetPlacement in a ConfigMap.
func keeper(t *testing.T, hub client.WithWatch) *Controller {
	return keeperOf(t, Options{Hub: hub, History: types.NamespacedName{Namespace: "hub", Name: "past"}})
}

func keeperOf(t *testing.T, o Options) *Controller {
	t.Helper()
	into, err := archiveOf(&o)
	if err != nil {
		t.Fatal(err)
	}
	counted, err := newMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	o.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	return &Controller{options: o, archive: into, metrics: counted}
}

// remembers makes a round about a toy, and waits for what it began.
func remembers(t *testing.T, c *Controller, y *toy) {
	t.Helper()
	c.remember(t.Context(), []*item{y.decide()}, y.members, y.now)
	c.agents.wait()
}

// small is the shape of the toys' pods, and fileOf the file of a member.
const small = `{"cpu":500}`

func fileOf(member string) string { return replay.HistoryKey(small, member) }

// shaped is a toy at rest whose pods have a shape.
func shaped(t *testing.T) *toy {
	t.Helper()
	y := newToy(t, seventy(30, 3))
	for _, v := range y.views {
		v.Requirements = small
	}
	y.settle(0)
	return y
}

func TestTheFleetsHistoryIsKeptAndSurvivesARestart(t *testing.T) {
	y := shaped(t)
	hub := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "hub", Name: "past"}}).Build()
	kept := func() *corev1.ConfigMap {
		t.Helper()
		found := &corev1.ConfigMap{}
		if err := hub.Get(t.Context(), types.NamespacedName{Namespace: "hub", Name: "past"}, found); err != nil {
			t.Fatal(err)
		}
		return found
	}
	c := keeper(t, hub)
	rounds := func() {
		for range 3 {
			y.now = y.now.Add(historyWrites)
			remembers(t, c, y)
		}
	}
	rounds()
	first := kept()
	if len(first.Data) != 3 || strings.Count(first.Data[fileOf("a")], `"t":`) != 1 {
		t.Fatalf("%v", first.Data)
	}
	rounds() // at rest nothing is written
	if again := kept(); again.ResourceVersion != first.ResourceVersion {
		t.Error("it is written at rest")
	}
	c = keeper(t, hub)
	rounds()
	if again := kept(); again.ResourceVersion != first.ResourceVersion {
		t.Error("it is written after a restart")
	}
	v := y.views["a"]
	v.SpotDrySince = y.now
	rounds()
	if got := kept().Data[fileOf("a")]; strings.Count(got, `"t":`) != 2 {
		t.Errorf("of a drought: %s", got)
	}
	if entries, bytes := testutil.ToFloat64(c.metrics.entries), testutil.ToFloat64(c.metrics.bytes); entries != 4 || bytes < 300 {
		t.Errorf("%v entries in %v bytes are counted", entries, bytes)
	}
}

// What a member had last would otherwise go on for ever in a replay.
func TestTheHistoryOfAMemberThatIsUnregisteredEnds(t *testing.T) {
	y := shaped(t)
	hub := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "hub", Name: "past"}}).Build()
	c := keeper(t, hub)
	rounds := func() map[string]string {
		t.Helper()
		for range 3 {
			y.now = y.now.Add(historyWrites)
			remembers(t, c, y)
		}
		found := &corev1.ConfigMap{}
		if err := hub.Get(t.Context(), types.NamespacedName{Namespace: "hub", Name: "past"}, found); err != nil {
			t.Fatal(err)
		}
		return found.Data
	}
	rounds()
	all := y.members
	y.members = all[:2]
	c.acts = y.now.Add(3*historyWrites - time.Second)
	if got := rounds()[fileOf("c")]; strings.Contains(got, `"capacity":0}`) {
		t.Errorf("it ended before the registrations were known: %s", got)
	}
	got := rounds()
	if !strings.HasSuffix(strings.TrimRight(got[fileOf("c")], "]}"), `"capacity":0`) || strings.Contains(got[fileOf("a")], `"capacity":0`) {
		t.Errorf("%v", got)
	}
	if again := rounds(); again[fileOf("c")] != got[fileOf("c")] {
		t.Errorf("it ends again: %s", again[fileOf("c")])
	}
	y.members = all
	if back := rounds()[fileOf("c")]; strings.HasSuffix(strings.TrimRight(back, "]}"), `"capacity":0`) {
		t.Errorf("it is registered again: %s", back)
	}
}

func TestTheFleetsHistoryIsKeptInFiles(t *testing.T) {
	y, o := shaped(t), Options{HistoryFolder: t.TempDir()}
	for _, reachable := range []bool{true, false, true} { // a member that is out of reach shows no shape
		y.members[2].Reachable, y.members[2].Since = reachable, y.now.Add(-time.Hour)
		c := keeperOf(t, o)
		for range 3 {
			y.now = y.now.Add(historyWrites)
			remembers(t, c, y)
		}
	}
	traces, err := replay.FindTraces([]string{o.HistoryFolder})
	if err != nil || len(traces) != 1 || len(traces[0].Zones) != 3 || traces[0].Name != "shop/web" {
		t.Fatalf("%v, %v", traces, err)
	}
	for i, want := range []int{replay.Open, replay.Open, 0} {
		if all := traces[0].Zones[i].Capacity; all[0] != replay.Open || slices.Min(all) != want {
			t.Errorf("%s: %v", traces[0].Zones[i].Name, all)
		}
	}
	o.History.Name = "past"
	if _, err := archiveOf(&o); err == nil {
		t.Error("it is kept twice")
	}
}

// What was noted within a minute of the last write is written when the replica stops, if it may still act.
func TestTheLastOfTheHistoryIsWrittenAtAStop(t *testing.T) {
	for _, acts := range []bool{true, false} {
		y := shaped(t)
		c := keeperOf(t, Options{HistoryFolder: t.TempDir(), ActsAny: func() bool { return acts }})
		c.clock = func() time.Time { return y.now }
		for range 2 { // it is read, and then written
			y.now = y.now.Add(historyWrites)
			remembers(t, c, y)
		}
		y.now = y.now.Add(time.Second)
		y.views["a"].SpotDrySince = y.now
		remembers(t, c, y)
		c.Flush(t.Context())
		kept, err := c.archive.read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{true: 4, false: 3}[acts]; kept.Entries() != want {
			t.Errorf("acts %v: %d entries, want %d", acts, kept.Entries(), want)
		}
	}
}

// A replica may lose its right to act while it writes, and get it back when another one has written since.
func TestWhatAnotherReplicaRecordedIsReadBeforeItIsWritten(t *testing.T) {
	y, o := shaped(t), Options{HistoryFolder: t.TempDir()}
	rounds := func(c *Controller) {
		for range 3 {
			y.now = y.now.Add(historyWrites)
			remembers(t, c, y)
		}
	}
	drought := func(is bool) {
		if y.views["a"].SpotDrySince = (time.Time{}); is {
			y.views["a"].SpotDrySince = y.now
		}
	}
	one, other := keeperOf(t, o), keeperOf(t, o)
	for range 2 {
		y.now = y.now.Add(historyWrites)
		remembers(t, one, y)
	}
	if one.past.busy == nil {
		t.Fatal("it does not write")
	}
	one.past.rest()
	drought(true)
	rounds(other)
	drought(false)
	y.views["a"].SpotProbing = true // there is room again
	rounds(other)
	y.views["a"].SpotProbing = false
	drought(true)
	rounds(one)
	known, err := one.archive.read(t.Context())
	if err != nil || known.Entries() != 6 { // three that are first, and three of a
		t.Errorf("%d entries, %v", known.Entries(), err)
	}
}

// Pods of one shape get the same nodes, whichever FleetPlacement they are of.
func TestASupplyIsThatOfAllPlacementsOfAShape(t *testing.T) {
	var p past
	one, two, other := shaped(t), shaped(t), shaped(t)
	two.object.Name, other.object.Name = "cart", "batch"
	for _, v := range other.views {
		v.Requirements = `{"cpu":8000}`
	}
	one.views["a"].SpotDrySince = one.now // the other two do not know yet
	two.views["b"].Requirements = ""      // nothing of it wants a replica there
	items := []*item{two.decide(), other.decide(), one.decide()}
	runs := one.views["a"].Spot.Ready + two.views["a"].Spot.Ready
	got := map[string]*supplyOf{}
	for _, s := range p.observe(items, one.now) {
		got[s.Requirements+s.Member] = s
	}
	if s := got[small+"a"]; len(got) != 6 || s.Capacity != runs || !slices.Equal(s.Placements, []string{"shop/cart", "shop/web"}) {
		t.Errorf("%d supplies; a: %+v, want %d", len(got), s, runs)
	}
	if s := got[small+"b"]; s.Capacity != replay.Open || len(s.Placements) != 2 {
		t.Errorf("b: %+v", s)
	}
	if s := got[`{"cpu":8000}a`]; s.Capacity != replay.Open || len(s.Placements) != 1 {
		t.Errorf("of another shape: %+v", s)
	}
	for _, y := range []*toy{one, two} {
		y.members[2].Reachable, y.members[2].Since = false, y.now.Add(-time.Hour)
		y.views["c"].Requirements = ""
	}
	for _, s := range p.observe([]*item{two.decide(), one.decide()}, one.now) {
		if s.Member == "c" && (s.Capacity != 0 || s.Requirements != small) {
			t.Errorf("out of reach: %+v", s)
		}
	}
}

func TestAHistoryThatCannotBeKeptIsLeftAlone(t *testing.T) {
	y := shaped(t)
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "hub", Name: "past"}, Data: map[string]string{"app.properties": "a=b"}}
	for name, objects := range map[string][]client.Object{"nobody made it": nil, "it is somebody else's": {theirs}} {
		hub := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).Build()
		c := keeper(t, hub)
		for range 20 {
			y.now = y.now.Add(time.Minute)
			remembers(t, c, y)
		}
		found := &corev1.ConfigMap{}
		err := hub.Get(t.Context(), types.NamespacedName{Namespace: "hub", Name: "past"}, found)
		if len(objects) == 0 != (err != nil) || (err == nil && found.Data["app.properties"] != "a=b") || len(found.Data) > 1 {
			t.Errorf("%s: %v, %v", name, found.Data, err)
		}
	}
}
