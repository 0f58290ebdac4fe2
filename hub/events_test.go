package hub

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/hub/journal"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

func TestTheJournalHasEachStateOfAMemberOnce(t *testing.T) {
	h := newEventLog()
	for _, event := range []clusters.Event{
		{Status: clusters.Status{Name: "prod", State: clusters.StateConnecting}},
		{Status: clusters.Status{Name: "prod", State: clusters.StateReady}},
		{Status: clusters.Status{Name: "prod", State: clusters.StateReady, Message: "another"}},
		{Status: clusters.Status{Name: "prod", State: clusters.StateUnreachable}},
		{Status: clusters.Status{Name: "prod", State: clusters.StateUnreachable}, Removed: true},
		{Status: clusters.Status{Name: "prod", State: clusters.StateReady}},
	} {
		h.member(event)
	}
	events, _ := h.journal.List("prod", "", "", 100)
	var states []clusters.State
	for _, e := range events {
		if e.Type != journal.ClusterState {
			t.Errorf("%+v", e)
		}
		states = append(states, clusters.State(e.Subject))
	}
	if want := []clusters.State{clusters.StateConnecting, clusters.StateReady, clusters.StateUnreachable, clusters.StateReady}; !slices.Equal(states, want) {
		t.Errorf("%v, want %v", states, want)
	}
}

// A replica that starts learns of states that began long ago.
func TestTheJournalKnowsSinceWhenAndWhyAMemberIsInItsState(t *testing.T) {
	h, since := newEventLog(), time.Now().Add(-time.Hour)
	h.member(clusters.Event{Status: clusters.Status{
		Name: "prod", State: clusters.StateUnreachable, Reason: "ProbeFailed", Message: "it is silent", Since: since,
	}})
	events, _ := h.journal.List("prod", "", "", 100)
	if len(events) != 1 {
		t.Fatalf("%+v", events)
	}
	if e := events[0]; !e.At.Equal(since) || e.Reason != "ProbeFailed" || e.Message != "the member is Unreachable: it is silent" {
		t.Errorf("%+v", e)
	}
}

func TestTheJournalKnowsAllThatPlacementTells(t *testing.T) {
	h := newEventLog()
	all := []struct {
		told spot.EventType
		want journal.Type
	}{
		{spot.EventMove, journal.Move}, {spot.EventInterruption, journal.Interruption},
		{spot.EventInsufficientCapacityBegan, journal.InsufficientCapacityBegan}, {spot.EventInsufficientCapacityEnded, journal.InsufficientCapacityEnded},
	}
	for _, what := range all {
		h.placement(spot.Event{
			Type: what.told, Member: "prod", Workload: policy.WorkloadKey{Kind: "Deployment", NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}},
			Subject: "web-1", Reason: "move", Message: "why",
		})
	}
	events, _ := h.journal.List("prod", "shop", "", 100)
	for i, e := range events {
		if e.Type != all[i].want || e.Kind != "Deployment" || e.Name != "web" || e.Subject != "web-1" || e.Reason != "move" || e.Message != "why" || e.At.IsZero() {
			t.Errorf("%s: %+v", all[i].told, e)
		}
	}
	if len(events) != 4 {
		t.Errorf("%d events, want 4", len(events))
	}
}
