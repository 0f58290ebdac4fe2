package main

import (
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// begun is when all histories here begin.
var begun = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return begun.Add(time.Duration(seconds * float64(time.Second))) }

// expect wants one sentence for each part, in this order, that has it.
func expect(t *testing.T, got []string, parts ...string) {
	t.Helper()
	if len(got) != len(parts) {
		t.Fatalf("got %d sentences, want %d:\n%s", len(got), len(parts), strings.Join(got, "\n"))
	}
	for i, part := range parts {
		if !strings.Contains(got[i], part) {
			t.Errorf("sentence %d does not say %q: %s", i, part, got[i])
		}
	}
}

func grant(process string, seconds float64) Grant {
	return Grant{Process: process, At: at(seconds), Duration: leaseDuration, Holder: process}
}

func release(process string, seconds float64) Grant {
	return Grant{Process: process, At: at(seconds), Duration: time.Second}
}

func write(process string, seconds float64) Write {
	return Write{Process: process, Member: "a", At: at(seconds), What: "patch"}
}

func TestWritesWithinTheirTenuresAreFine(t *testing.T) {
	wrong, undecided := doubleWrites(
		[]Grant{grant("r1.1", 0), grant("r1.1", 1), grant("r2.1", 6), grant("r2.1", 7), release("r2.1", 8), grant("r3.1", 8.1)},
		[]Write{write("r1.1", 0.1), write("r1.1", 5.9), write("r2.1", 6.1), write("r2.1", 7.9), write("r3.1", 8.2)}, &slowness{})
	expect(t, wrong)
	expect(t, undecided)
}

func TestWritesWithoutATenureAreFound(t *testing.T) {
	grants := []Grant{grant("r1.1", 0), grant("r2.1", 10), release("r2.1", 11)}
	wrong, _ := doubleWrites(grants, []Write{
		write("r1.1", 5.1),  // its Lease has run out
		write("r2.1", 11.1), // it has given it up
		write("r3.1", 12),   // it never had one
	}, &slowness{})
	expect(t, wrong, "r1.1", "r2.1", "r3.1 at 12:00:12.000 in a: it has never held the Lease")
}

func TestWritesOfTwoWithinOneTenureAreFound(t *testing.T) {
	// The second one was granted the Lease, by whatever mistake, while the first may still act.
	grants := []Grant{grant("r1.1", 0), grant("r2.1", 3)}
	wrong, _ := doubleWrites(grants, []Write{write("r1.1", 1), write("r2.1", 3.5), write("r1.1", 4)}, &slowness{})
	expect(t, wrong, "r2.1 at 12:00:03.500 in a: r1.1 has written since", "r1.1 at 12:00:04.000 in a: r2.1 has written since")
	// One that holds it and waits is fine.
	wrong, _ = doubleWrites(grants, []Write{write("r1.1", 1), write("r1.1", 4), write("r2.1", 5.1)}, &slowness{})
	expect(t, wrong)
}

func TestOnlyMeasuredSlownessExcusesALateWrite(t *testing.T) {
	grants, late := []Grant{grant("r1.1", 0)}, []Write{write("r1.1", 5.2)}
	short := &slowness{delays: []Delay{{From: at(4), To: at(5.3)}}}
	wrong, undecided := doubleWrites(grants, late, short)
	expect(t, wrong, "r1.1")
	expect(t, undecided)
	long := &slowness{delays: []Delay{{From: at(3), To: at(5.5)}}}
	wrong, undecided = doubleWrites(grants, late, long)
	expect(t, wrong)
	expect(t, undecided, "r1.1")
	elsewhere := &slowness{delays: []Delay{{From: at(10), To: at(20)}}}
	wrong, _ = doubleWrites(grants, late, elsewhere)
	expect(t, wrong, "r1.1")
}

func TestWritesAreReadFromTheAuditLog(t *testing.T) {
	event := kube.AuditEvent{Verb: "patch", User: fleet.HubUser, UserAgent: "r2.3 plimsoll-hub/dev", URI: "/x", Code: 200, Received: at(1)}
	review, report, other, dry := event, event, event, event
	review.APIGroup, report.Resource, other.User, dry.URI = "authorization.k8s.io", "events", "somebody", "/x?dryRun=All"
	writes := writesIn("a", []kube.AuditEvent{event, review, report, other, dry})
	if len(writes) != 1 || writes[0] != (Write{Process: "r2.3", Member: "a", At: at(1), What: "patch /x (200)"}) {
		t.Errorf("got %+v", writes)
	}
}

// gone is a moment in which a ready on-demand pod went, and how many of its kind were ready then.
func gone(pod string, seconds float64, left int) fleet.Moment {
	return fleet.Moment{At: at(seconds), Pod: pod, Left: true, Capacity: kube.OnDemand, WasReady: true, ReadyOnDemand: left}
}

func seesAll(string, time.Time) time.Time { return begun }

func seesWithin(sight time.Duration) sighted {
	return func(_ string, at time.Time) time.Time { return at.Add(-sight) }
}

func TestAFloorThatTheHubBreaksIsFound(t *testing.T) {
	career := &Career{
		Workload: "web", Wishes: []Wish{{Replicas: 8, Floor: 3, Asked: begun, Answered: begun}},
		EvictedBy: map[string]string{"ours": "r1.1", "ours-too": "r1.1"},
		Moments:   []fleet.Moment{gone("ours", 10, 3), gone("theirs", 20, 2), gone("ours-too", 30, 2)},
	}
	expect(t, floorBreaks(career, seesWithin(sight)), "evicted ours-too at 12:00:30.000, 2 on-demand replicas were ready")
	// What others took is no excuse once it can be seen, and one before.
	career.Moments[2].At = at(21)
	expect(t, floorBreaks(career, seesWithin(sight)))
	// What the hub took itself is never an excuse.
	career.EvictedBy["theirs"] = "r2.1"
	expect(t, floorBreaks(career, seesWithin(sight)), "r2.1 evicted theirs", "r1.1 evicted ours-too")
}

func TestAFloorHoldsFromWhenItCanBeKnown(t *testing.T) {
	wishes := []Wish{
		{Replicas: 8, Floor: 1, Asked: at(0), Answered: at(0)},
		{Replicas: 8, Floor: 3, Asked: at(10), Answered: at(11)},
		{Replicas: 2, Floor: 3, Asked: at(20)}, // nobody knows whether it is in force
	}
	for _, c := range []struct{ from, at, want float64 }{{5, 6, 1}, {9, 11, 1}, {10.5, 12, 1}, {12, 14, 3}, {12, 21, 2}, {40, 42, 2}} {
		if got := floorAt(wishes, at(c.from), at(c.at)); got != int(c.want) {
			t.Errorf("from %v, at %v: got a floor of %d, want %v", c.from, c.at, got, c.want)
		}
	}
}

func TestPodsThatTheHubPlacesBelowTheFloorAreFound(t *testing.T) {
	moment := func(onDemand, spot, slipped int) fleet.Moment {
		return fleet.Moment{At: at(1), Pod: "new", Mix: fleet.Mix{Spot: spot, OnDemand: onDemand}, Slipped: slipped}
	}
	career := &Career{Workload: "web", Steady: true, Wishes: []Wish{steadyWish}, Moments: []fleet.Moment{
		moment(3, 5, 0), moment(2, 5, 0), moment(2, 6, 1), // one is missing; one came past the hub
	}}
	expect(t, floorBreaks(career, seesAll))
	career.Moments = append(career.Moments, moment(2, 6, 0))
	expect(t, floorBreaks(career, seesAll), "there are 6 spot, 2 on-demand")
}

func TestAReplicaSeesNothingWhileItIsBlinded(t *testing.T) {
	faults := []Injection{
		{Fault: "member stale", Replica: "r1", From: at(10), To: at(15)},
		{Fault: "hub stale", Replica: "r2", From: at(10), To: at(15)},
	}
	since := sightOf(faults, &slowness{delays: []Delay{{From: at(30), To: at(33)}}})
	for _, c := range []struct {
		process  string
		at, want float64
	}{{"r1.1", 9, 7}, {"r1.1", 14, 10}, {"r1.1", 16, 10}, {"r1.1", 20, 18}, {"r2.1", 14, 12}, {"r2.1", 33, 28}} {
		if got := since(c.process, at(c.at)); !got.Equal(at(c.want)) {
			t.Errorf("%s at %v has seen everything until %s, want %v", c.process, c.at, got.Format(clock), c.want)
		}
	}
}

func TestPodsTakenPastTheirBudgetAreFound(t *testing.T) {
	deleted := kube.AuditEvent{Verb: "delete", Resource: "pods", Namespace: "shop", Name: "web-1", User: fleet.HubUser, URI: "/pods/web-1"}
	probe, others := deleted, deleted
	probe.Namespace, others.User = fleet.Namespace, "somebody"
	got := budgetBreaks("a", []kube.AuditEvent{deleted, probe, others}, []Eviction{
		{Process: "r1.1", Member: "a", Pod: "named", UID: "1"}, {Process: "r1.1", Member: "a", Pod: "unnamed"}, {Member: "b", Pod: "elsewhere"},
	})
	expect(t, got, "delete /pods/web-1", "unnamed")
}

func order(answers ...Answer) Order {
	return Order{Operation: "1", Workload: "web", Process: "r1.1", Invoked: at(1), Returned: at(2), Answers: answers}
}

func answer(from, to float64, state State) Answer {
	return Answer{Process: "r1.1", Invoked: at(from), Returned: at(to), State: state}
}

func TestOrdersAreJudgedByTheirHistory(t *testing.T) {
	later := []Execution{{Workload: "web", Started: at(20), Doubt: time.Millisecond}}
	before := []Execution{{Workload: "web", Started: at(0.5), Doubt: time.Millisecond}, {Workload: "another", Started: at(20)}}
	for name, c := range map[string]struct {
		order Order
		runs  []Execution
		lost  bool
	}{
		"it is done":                             {order(answer(3, 4, Pending), answer(4, 5, Done)), nil, false},
		"it has failed, and that was reported":   {order(answer(3, 4, Failed)), nil, false},
		"it waits for ever":                      {order(answer(3, 4, Pending), answer(50, 51, Pending)), later, true},
		"nobody was asked":                       {order(), later, true},
		"another replica has made up for it":     {order(answer(3, 4, Superseded)), later, false},
		"nobody has made up for it":              {order(answer(3, 4, Superseded)), before, true},
		"it is forgotten and nobody has made up": {order(answer(3, 4, Unknown)), nil, true},
		"its replica ends, and another makes up for it before anybody asks": {order(answer(30, 31, Unknown)), later, false},
		"it is done and forgotten":              {order(answer(3, 4, Done), answer(5, 6, Unknown)), nil, false},
		"it is done, and then it waits":         {order(answer(3, 4, Done), answer(5, 6, Pending)), later, true},
		"it is given up, and then it is done":   {order(answer(3, 4, Superseded), answer(5, 6, Done)), later, true},
		"two get different answers at one time": {order(answer(3, 6, Pending), answer(4, 5, Done)), nil, false},
	} {
		lost := lostOrders([]Order{c.order}, c.runs, true, func(time.Time, time.Time) bool { return true })
		if (len(lost) > 0) != c.lost {
			t.Errorf("%s: got %v, want it to be lost: %t", name, lost, c.lost)
		}
	}
}

func TestAnOrderIsGivenUpOnlyWhenTheOwnerChanged(t *testing.T) {
	later := []Execution{{Workload: "web", Started: at(20)}}
	orders := []Order{order(answer(3, 4, Superseded))}
	same := ownerChanged([]Grant{grant("r1.1", 0), grant("r1.1", 1), grant("r1.1", 2), grant("r1.1", 5)}, nil)
	expect(t, lostOrders(orders, later, true, same), "have had the same owner all the time")
	other := ownerChanged([]Grant{grant("r1.1", 0), grant("r2.1", 2)}, nil)
	expect(t, lostOrders(orders, later, true, other))
	gap := ownerChanged([]Grant{grant("r1.1", 0), grant("r1.1", 4)}, nil) // the fence was shut before it was renewed
	expect(t, lostOrders(orders, later, true, gap))
	byHand := ownerChanged([]Grant{grant("r1.1", 0)}, []Injection{{Fault: "Lease deleted", From: at(1), To: at(2)}})
	expect(t, lostOrders(orders, later, true, byHand))
}

func TestAnOrderThatIsOpenIsNotLostUntilAllHasComeToRest(t *testing.T) {
	changed := func(time.Time, time.Time) bool { return true }
	open := []Order{order(answer(3, 4, Pending))}
	expect(t, lostOrders(open, nil, false, changed))
	expect(t, lostOrders(open, nil, true, changed), "did not come to an end")
	senseless := []Order{order(answer(3, 4, Done), answer(5, 6, Pending))}
	expect(t, lostOrders(senseless, nil, false, changed), "did not come to an end")
}
