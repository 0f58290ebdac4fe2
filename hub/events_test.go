package hub

import (
	"slices"
	"testing"

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

func TestTheJournalKnowsAllThatPlacementTells(t *testing.T) {
	h := newEventLog()
	for _, what := range []spot.EventType{spot.EventMove, spot.EventInsufficientCapacityBegan, spot.EventInsufficientCapacityEnded, spot.EventInterruption} {
		h.placement(spot.Event{Type: what, Member: "prod", Workload: policy.WorkloadKey{Kind: "Deployment"}, Subject: "web-1", Reason: "move", Message: "why"})
	}
	events, _ := h.journal.List("prod", "", "", 100)
	for _, e := range events {
		if e.Type == "" || e.Kind != "Deployment" || e.Subject != "web-1" || e.Reason != "move" || e.Message != "why" || e.At.IsZero() {
			t.Errorf("%+v", e)
		}
	}
	if len(events) != 4 {
		t.Errorf("%d events, want 4", len(events))
	}
}
