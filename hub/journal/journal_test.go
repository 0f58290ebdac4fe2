package journal

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func names(events []Event) (found string) {
	for _, e := range events {
		found += e.Name + " "
	}
	return found
}

func TestEventsAreListedInTheOrderInWhichTheyCame(t *testing.T) {
	j := New(Limits{})
	for _, e := range []Event{{Member: "a", Namespace: "x", Name: "1"}, {Member: "b", Name: "2"}, {Member: "a", Name: "3"}, {Member: "a", Namespace: "x", Name: "4"}} {
		j.Add(e)
	}
	all, more := j.List("a", "", "", 10)
	if names(all) != "1 3 4 " || more {
		t.Fatalf("%v, more: %v", all, more)
	}
	if some, more := j.List("a", "x", "", 1); names(some) != "1 " || !more {
		t.Errorf("one of a namespace: %v, more: %v", some, more)
	}
	if rest, _ := j.List("a", "", all[0].ID, 10); names(rest) != "3 4 " {
		t.Errorf("behind the first: %v", rest)
	}
	if none, more := j.List("c", "", "", 10); len(none) != 0 || more {
		t.Errorf("of a member without events: %v", none)
	}
}

// A replica that starts finds droughts that have lasted for days.
func TestAnOldEventAmongNewOnesTakesNoneOfThemAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := New(Limits{})
		old := time.Now().Add(-48 * time.Hour)
		for _, e := range []Event{{Name: "1", At: time.Now()}, {Name: "2", At: time.Now()}, {Name: "3", At: old}, {Name: "4", At: old}} {
			e.Member = "a"
			j.Add(e)
		}
		if all, _ := j.List("a", "", "", 10); names(all) != "1 2 3 4 " {
			t.Errorf("%v", all)
		}
		time.Sleep(25 * time.Hour)
		if none, _ := j.List("a", "", "", 10); len(none) != 0 {
			t.Errorf("a day later: %v", none)
		}
	})
}

func TestAMemberKeepsItsNewestEvents(t *testing.T) {
	j := New(Limits{OfMember: 3, Most: 100})
	for i := range 5 {
		j.Add(Event{Member: "a", Name: fmt.Sprint(i)})
	}
	if all, more := j.List("a", "", "", 10); names(all) != "2 3 4 " || more {
		t.Errorf("%v, more: %v", all, more)
	}
}

func TestAMemberWithManyEventsTakesNoneFromOthers(t *testing.T) {
	j := New(Limits{OfMember: 6, Most: 8})
	for i := range 3 {
		j.Add(Event{Member: "quiet", Name: fmt.Sprint(i)})
	}
	for i := range 100 {
		j.Add(Event{Member: "loud", Name: fmt.Sprint(i)})
	}
	if quiet, _ := j.List("quiet", "", "", 10); names(quiet) != "0 1 2 " {
		t.Errorf("quiet: %v", quiet)
	}
	if loud, _ := j.List("loud", "", "", 10); names(loud) != "95 96 97 98 99 " {
		t.Errorf("loud: %v", loud)
	}
}

// Who follows a member has to read again what another one has pushed out of it.
func TestAMemberThatLosesAnEventToAnotherHasChanged(t *testing.T) {
	j := New(Limits{OfMember: 3, Most: 4})
	for range 3 {
		j.Add(Event{Member: "loud"})
	}
	before := j.Version("loud")
	for range 2 {
		j.Add(Event{Member: "quiet"})
	}
	if events, _ := j.List("loud", "", "", 10); len(events) != 2 || j.Version("loud") == before {
		t.Errorf("%d events, version %d, which was %d", len(events), j.Version("loud"), before)
	}
}

func TestAMemberThatLosesARequeueToAnotherHasChanged(t *testing.T) {
	j := New(Limits{OfMember: 40, Most: 8})
	for range 2 {
		j.Add(Event{Member: "a", Type: Requeue, User: "greedy"})
	}
	before := j.Version("a")
	j.Add(Event{Member: "b", Type: Requeue, User: "greedy"}) // requeues have a quarter of all places
	if events, _ := j.List("a", "", "", 10); len(events) != 1 || j.Version("a") == before {
		t.Errorf("%d events, version %d, which was %d", len(events), j.Version("a"), before)
	}
}

func TestEventsAreForgottenAfterADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := New(Limits{})
		j.Add(Event{Member: "a", Name: "old"})
		before := j.Version("a")
		time.Sleep(23 * time.Hour)
		j.Add(Event{Member: "a", Name: "new"})
		if all, _ := j.List("a", "", "", 10); names(all) != "old new " {
			t.Errorf("after 23 hours: %v", all)
		}
		time.Sleep(2 * time.Hour)
		if all, _ := j.List("a", "", "", 10); names(all) != "new " {
			t.Errorf("after 25 hours: %v", all)
		}
		if j.Version("a") <= before+1 {
			t.Error("what was forgotten is no change")
		}
	})
}

func TestEventsOfManyWritersHaveNamesOfTheirOwn(t *testing.T) {
	j := New(Limits{})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				j.Add(Event{Member: "a"})
			}
		})
	}
	all.Wait()
	seen := map[string]bool{}
	events, _ := j.List("a", "", "", 1000)
	for _, e := range events {
		seen[e.ID] = true
	}
	if len(seen) != 400 {
		t.Errorf("%d names of 400 events", len(seen))
	}
}

// Whoever orders a lot loses the oldest of their own orders, in one member and over all of them, and nothing of what happened.
func TestTheRequeuesOfOneUserPushOutNothingElse(t *testing.T) {
	j := New(Limits{OfMember: 40, Most: 100})
	for i := range 12 {
		j.Add(Event{Member: "prod", Type: Move, Name: fmt.Sprint("move", i)})
	}
	j.Add(Event{Member: "prod", Type: Requeue, User: "bob", Name: "bobs"})
	for i := range 1000 {
		j.Add(Event{Member: "prod", Type: Requeue, User: "greedy", Name: fmt.Sprint("prod", i)})
		j.Add(Event{Member: fmt.Sprint("m", i%50), Type: Requeue, User: "greedy", Name: fmt.Sprint("m", i)})
	}
	events, _ := j.List("prod", "", "", 1000)
	kept, own := 0, 0
	for _, e := range events {
		switch {
		case e.Type == Move, e.User == "bob":
			kept++
		default:
			own++
		}
	}
	if kept != 13 {
		t.Errorf("%d of 13 events are left that are not of the one who orders a lot", kept)
	}
	if own == 0 || own > 10 {
		t.Errorf("%d orders are left of the one who orders a lot in one member, want at most 10", own)
	}
	if total, _, _ := j.orders.all(); total > 25 || j.total.events != total+12 {
		t.Errorf("%d orders and %d events in all", total, j.total)
	}
	if last := events[len(events)-1]; last.Name != "prod999" {
		t.Errorf("the last order is not there: %v", last)
	}
}

// held is how many bytes of texts the events of members have.
func held(j *Journal, members ...string) (bytes int) {
	for _, member := range members {
		events, _ := j.List(member, "", "", math.MaxInt)
		for i := range events {
			var s size
			s.add(&events[i], 1)
			bytes += s.bytes
		}
	}
	return bytes
}

// Who writes pods decides how long the text of their shape is.
func TestLongTextsOfOneMemberPushOutNothingElse(t *testing.T) {
	j := New(Limits{})
	j.Add(Event{Member: "quiet", Type: Move, Namespace: "shop", Name: "quiet"})
	j.Add(Event{Member: "loud", Type: Move, Namespace: "shop", Name: "moved"})
	j.Add(Event{Member: "loud", Type: ClusterState, Name: "ready"})
	long := strings.Repeat("a", 60<<10)
	for i := range 2000 {
		j.Add(Event{Member: "loud", Type: InsufficientCapacityBegan, Reason: long, Name: fmt.Sprint(i)})
		j.Add(Event{Member: "loud", Type: Move, Namespace: "greedy", Message: long, Name: fmt.Sprint(i)})
	}
	if n := held(j, "loud"); n > 2<<20 || n < 1<<20 {
		t.Errorf("%d bytes are held of a member, want almost 2 MiB", n)
	}
	members := []string{"loud", "quiet"}
	for i := range 2000 {
		member := fmt.Sprint("m", i%50)
		j.Add(Event{Member: member, Type: Interruption, Message: long})
		if i < 50 {
			members = append(members, member)
		}
	}
	if n := held(j, members...); n > 16<<20 || n != j.total.bytes {
		t.Errorf("%d bytes are held in all, and %d are counted", n, j.total.bytes)
	}
	if quiet, _ := j.List("quiet", "", "", 10); names(quiet) != "quiet " {
		t.Errorf("of another member: %v", names(quiet))
	}
	all, _ := j.List("loud", "", "", 1000)
	if !strings.HasPrefix(names(all), "moved ready ") || !strings.HasSuffix(names(all), " 1999 ") {
		t.Errorf("of another namespace, and of another type: %v", names(all))
	}
}

func TestManyEventsOfOneNamespacePushOutNoneOfOthers(t *testing.T) {
	j := New(Limits{OfMember: 20, Most: 30})
	for i := range 3 {
		j.Add(Event{Member: "a", Type: Move, Namespace: "shop", Name: fmt.Sprint("shop", i)})
	}
	for i := range 200 {
		j.Add(Event{Member: "a", Type: Move, Namespace: "greedy", Name: fmt.Sprint(i)})
		j.Add(Event{Member: "b", Type: Move, Namespace: "greedy", Name: fmt.Sprint(i)})
	}
	for _, member := range []string{"a", "b"} {
		events, _ := j.List(member, "greedy", "", 1000)
		if len(events) == 0 || events[len(events)-1].Name != "199" {
			t.Errorf("the newest of %s is not there: %v", member, names(events))
		}
	}
	if shop, _ := j.List("a", "shop", "", 10); names(shop) != "shop0 shop1 shop2 " {
		t.Errorf("%v", names(shop))
	}
	if j.total.events != 30 {
		t.Errorf("%d events in all", j.total.events)
	}
}

// An event that is too long by itself does not stay, and counts no more.
func TestAnEventThatIsLongerThanTheJournalIsForgotten(t *testing.T) {
	j := New(Limits{BytesOfMember: 1000, Bytes: 1000})
	j.Add(Event{Member: "a", Message: strings.Repeat("a", 1001)})
	j.Add(Event{Member: "a", Name: "short"})
	if all, _ := j.List("a", "", "", 10); names(all) != "short " || j.total.events != 1 {
		t.Errorf("%v, %d events in all", names(all), j.total.events)
	}
}
