package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/journal"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

func named(events []*plimsollv1.Event) (names []string) {
	for _, e := range events {
		names = append(names, e.GetCluster()+"/"+e.GetName())
	}
	return names
}

func TestEventsOfAllMembersAreListedTheNewestFirst(t *testing.T) {
	first, second := ledgers(t)
	begun := time.Now().Add(-time.Hour)
	for i, event := range []struct {
		at     *replica
		member string
	}{{first, "dev"}, {second, "test"}, {first, "prod"}, {second, "test"}, {first, "dev"}} {
		event.at.journal.Add(journal.Event{
			Type: journal.Move, At: begun.Add(time.Duration(i) * time.Minute), Member: event.member, Namespace: "shop", Kind: "Deployment",
			Name: string(rune('a' + i)), Reason: "insufficient-capacity",
		})
	}
	first.journal.Add(journal.Event{Type: journal.ClusterState, At: begun.Add(time.Hour), Member: "dev", Name: "state"})
	s := serve(t, first, nil)
	var all []*plimsollv1.Event
	request := &plimsollv1.ListEventsRequest{PageSize: 2}
	for {
		answer, err := s.events().ListEvents(as(t, "admin"), request)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, answer.GetEvents()...)
		if request.PageToken = answer.GetNextPageToken(); request.PageToken == "" {
			break
		}
	}
	if want := []string{"dev/state", "dev/e", "test/d", "prod/c", "test/b", "dev/a"}; !slices.Equal(named(all), want) {
		t.Errorf("%v, want %v", named(all), want)
	}
	answer, err := s.events().ListEvents(as(t, "admin"), &plimsollv1.ListEventsRequest{Namespace: "shop", Filter: `event.type == "MOVE" && event.cluster == "test"`, OrderBy: "at"})
	if want := []string{"test/b", "test/d"}; err != nil || !slices.Equal(named(answer.GetEvents()), want) {
		t.Errorf("%v, %v, want %v", answer, err, want)
	}
	s.give("dev", auth.Access{Verb: "list", Resource: "events", Member: "dev"})
	if answer, err := s.events().ListEvents(as(t, "dev"), &plimsollv1.ListEventsRequest{}); err != nil || len(answer.GetEvents()) != 3 {
		t.Errorf("of the one member that may be seen: %v, %v", answer, err)
	}
	if _, err := s.events().ListEvents(as(t, "nobody"), &plimsollv1.ListEventsRequest{}); status.Code(err) != codes.PermissionDenied {
		t.Error(err)
	}
	response, body := s.call(t, http.MethodGet, "/v1/events?cluster=prod", "", bearing("admin"))
	if response.StatusCode != http.StatusOK || !strings.Contains(body, `"type":"EVENT_TYPE_MOVE"`) {
		t.Errorf("%s %s", response.Status, body)
	}
}

// Much happens within a second when a node goes.
func TestEventsOfOneSecondAreListedTheNewestFirst(t *testing.T) {
	r, _ := ledgers(t)
	second := time.Now().Add(-time.Hour).Truncate(time.Second)
	for i, name := range []string{"a", "b", "c"} {
		at := second.Add(time.Duration(i) * time.Millisecond)
		r.journal.Add(journal.Event{Type: journal.Move, At: at, Member: "dev", Namespace: "shop", Name: name})
	}
	answer, err := serve(t, r, nil).events().ListEvents(as(t, "admin"), &plimsollv1.ListEventsRequest{Cluster: "dev"})
	if want := []string{"dev/c", "dev/b", "dev/a"}; err != nil || !slices.Equal(named(answer.GetEvents()), want) {
		t.Errorf("%v, %v, want %v", named(answer.GetEvents()), err, want)
	}
}

func TestAWatchTellsOfEventsAsTheyCome(t *testing.T) {
	first, second := ledgers(t)
	first.journal.Add(journal.Event{Type: journal.Interruption, Member: "dev", Subject: "node-1"})
	s := serve(t, first, nil)
	stream, err := s.events().WatchEvents(as(t, "admin"), &plimsollv1.WatchEventsRequest{Filter: `event.type != "REQUEUE"`})
	if err != nil {
		t.Fatal(err)
	}
	next := func() *plimsollv1.WatchEventsResponse {
		message, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return message
	}
	if message := next(); message.GetEvent().GetSubject() != "node-1" {
		t.Fatal(message)
	}
	if message := next(); message.GetType() != plimsollv1.WatchEventType_WATCH_EVENT_TYPE_SYNCED {
		t.Fatal(message)
	}
	second.journal.Add(journal.Event{Type: journal.Requeue, Member: "test"})
	second.journal.Add(journal.Event{Type: journal.InsufficientCapacityBegan, Member: "test", Subject: "spot"})
	if message := next(); message.GetEvent().GetType() != plimsollv1.EventType_EVENT_TYPE_INSUFFICIENT_CAPACITY_BEGAN || message.GetEvent().GetCluster() != "test" {
		t.Error(message)
	}
}

// Who may see one namespace of a member gets what is about it, and nothing else of the member.
func TestEventsOfANamespaceAreOfThatNamespaceOnly(t *testing.T) {
	r, _ := ledgers(t)
	r.journal.Add(journal.Event{Type: journal.Move, Member: "dev", Namespace: "shop", Name: "a"})
	r.journal.Add(journal.Event{Type: journal.Move, Member: "dev", Namespace: "bank", Name: "b"})
	r.journal.Add(journal.Event{Type: journal.ClusterState, Member: "dev", Name: "state"})
	s := serve(t, r, nil)
	s.give("tenant", auth.Access{Verb: "list", Resource: "events", Member: "dev", Namespace: "shop"})
	answer, err := s.events().ListEvents(as(t, "tenant"), &plimsollv1.ListEventsRequest{Cluster: "dev", Namespace: "shop"})
	if want := []string{"dev/a"}; err != nil || !slices.Equal(named(answer.GetEvents()), want) {
		t.Errorf("listed: %v, %v", answer, err)
	}
	stream, err := s.events().WatchEvents(as(t, "tenant"), &plimsollv1.WatchEventsRequest{Cluster: "dev", Namespace: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	var watched []*plimsollv1.Event
	for len(watched) < 2 {
		message, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if message.GetEvent() != nil {
			watched = append(watched, message.GetEvent())
		}
		if message.GetType() == plimsollv1.WatchEventType_WATCH_EVENT_TYPE_SYNCED {
			r.journal.Add(journal.Event{Type: journal.Move, Member: "dev", Namespace: "bank", Name: "c"})
			r.journal.Add(journal.Event{Type: journal.Move, Member: "dev", Namespace: "shop", Name: "d"})
		}
	}
	if want := []string{"dev/a", "dev/d"}; !slices.Equal(named(watched), want) {
		t.Errorf("watched: %v, want %v", named(watched), want)
	}
}

// What the journal knows of an event reaches its readers, each in its own field.
func TestAnEventIsShownWithAllThatIsKnownOfIt(t *testing.T) {
	e := journal.Event{
		ID: "id", At: time.Unix(1, 0), Type: journal.Interruption, Member: "member", Namespace: "namespace", Kind: "kind", Name: "name",
		Subject: "subject", Reason: "reason", Message: "message", User: "user",
	}
	shown := eventMessage(&e).ProtoReflect()
	for i := range shown.Descriptor().Fields().Len() {
		field := shown.Descriptor().Fields().Get(i)
		want := string(field.Name())
		switch want {
		case "at":
			want = e.At.UTC().String()
		case "type":
			want = plimsollv1.EventType_EVENT_TYPE_INTERRUPTION.String()
		case "cluster":
			want = "member"
		}
		got := shown.Get(field).String()
		switch value := shown.Interface().(*plimsollv1.Event); field.Name() {
		case "at":
			got = value.GetAt().AsTime().String()
		case "type":
			got = value.GetType().String()
		}
		if got != want {
			t.Errorf("%s is %q, want %q", field.Name(), got, want)
		}
	}
}
