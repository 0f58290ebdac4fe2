package api

import (
	"cmp"
	"context"
	"time"

	"google.golang.org/grpc"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/clusters/plain"
	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/lists"
	"github.com/plimsoll-dev/plimsoll/hub/journal"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

type eventService struct {
	plimsollv1.UnimplementedEventServiceServer
	*core
	feed *feed[*plimsollv1.Event]
}

// newestFirst is how events are listed unless the caller says otherwise.
const newestFirst = "at desc"

// eventsAsked is a request with that order.
type eventsAsked struct{ *plimsollv1.ListEventsRequest }

// GetOrderBy implements listRequest.
func (r eventsAsked) GetOrderBy() string {
	return cmp.Or(r.ListEventsRequest.GetOrderBy(), newestFirst)
}

// ListEvents implements [plimsollv1.EventServiceServer].
func (s *eventService) ListEvents(ctx context.Context, request *plimsollv1.ListEventsRequest) (*plimsollv1.ListEventsResponse, error) {
	found, next, err := s.eventList(eventsAsked{request}, request.GetCluster(), request.GetNamespace()).list(ctx, lists.EventFilters)
	if err != nil {
		return nil, err
	}
	return &plimsollv1.ListEventsResponse{Events: found.items, NextPageToken: next, AsOf: found.moment(), Unreachable: found.unreachable}, nil
}

// eventList lists the events of a member in a namespace; empty: of all of them.
func (s *eventService) eventList(asked listRequest, cluster, namespace string) *ownerListing[*plimsollv1.Event] {
	list := &ownerListing[*plimsollv1.Event]{gap: noGap}
	list.listing = listing[*plimsollv1.Event]{
		core: s.core, asked: asked, cluster: cluster, what: []string{resourceEvents, namespace},
		needs: auth.Access{Verb: verbList, Resource: resourceEvents, Namespace: namespace}, length: 2, nameOf: nameOfEvent,
	}
	list.scan = func(member string, behind lists.Position, limit int) ([]entry[*plimsollv1.Event], uint64, bool) {
		last := ""
		if behind != nil {
			last = behind[1]
		}
		events, more := s.events.List(member, namespace, last, limit)
		found := make([]entry[*plimsollv1.Event], 0, len(events))
		for i := range events {
			found = append(found, entry[*plimsollv1.Event]{item: eventMessage(&events[i])})
		}
		return found, uint64(itemCost * len(found)), more
	}
	list.remote = func(ctx context.Context, conn grpc.ClientConnInterface, request pageRequest) (listed[*plimsollv1.Event], error) {
		answer, err := plimsollv1.NewEventServiceClient(conn).ListEvents(ctx, &plimsollv1.ListEventsRequest{
			Cluster: request.cluster, Namespace: namespace,
			PageSize: request.size, PageToken: request.token, Filter: request.filter, OrderBy: request.orderBy,
		})
		return listed[*plimsollv1.Event]{answer.GetEvents(), answer}, err
	}
	return list
}

// noGap is that of what a replica knows by itself, whatever state the member is in.
func noGap(clusters.Status) (reason string, since time.Time) { return "", time.Time{} }

func nameOfEvent(e *plimsollv1.Event) lists.Position {
	return lists.Position{e.GetCluster(), e.GetId()}
}

// WatchEvents implements [plimsollv1.EventServiceServer].
func (s *eventService) WatchEvents(request *plimsollv1.WatchEventsRequest, stream grpc.ServerStreamingServer[plimsollv1.WatchEventsResponse]) error {
	compiled, err := lists.EventFilters.Compile(request.GetFilter())
	if err != nil {
		return err
	}
	if err := s.registered(request.GetCluster()); err != nil {
		return err
	}
	w := watching[*plimsollv1.Event, *plimsollv1.WatchEventsResponse]{
		core: s.core, feed: s.feed, filter: compiled, token: request.GetResumeToken(), send: sending(stream), member: request.GetCluster(),
		needs: auth.Access{Verb: verbList, Resource: resourceEvents, Namespace: request.GetNamespace()},
		query: []string{resourceEvents, request.GetCluster(), request.GetNamespace(), request.GetFilter()},
		selects: func(e *plimsollv1.Event) bool {
			return request.GetNamespace() == "" || request.GetNamespace() == e.GetNamespace()
		},
		nameOnly: func(e *plimsollv1.Event) *plimsollv1.Event {
			return &plimsollv1.Event{Cluster: e.GetCluster(), Id: e.GetId(), Namespace: e.GetNamespace()}
		},
		event: func(e watchEvent, item *plimsollv1.Event) *plimsollv1.WatchEventsResponse {
			return &plimsollv1.WatchEventsResponse{Type: e.what, Event: item, ResumeToken: e.token, Reason: e.reason, Unreachable: e.unreachable}
		},
	}
	return w.run(stream.Context())
}

func eventMessage(e *journal.Event) *plimsollv1.Event {
	return &plimsollv1.Event{
		Id: e.ID, At: moment(e.At), Type: eventTypes[e.Type], Cluster: e.Member, Namespace: e.Namespace, Kind: e.Kind, Name: e.Name,
		Subject: e.Subject, Reason: e.Reason, Message: plain.Text(e.Message, apierror.MaxText), User: plain.Text(e.User, apierror.MaxText),
	}
}

var eventTypes = map[journal.Type]plimsollv1.EventType{
	journal.Move:                      plimsollv1.EventType_EVENT_TYPE_MOVE,
	journal.InsufficientCapacityBegan: plimsollv1.EventType_EVENT_TYPE_INSUFFICIENT_CAPACITY_BEGAN,
	journal.InsufficientCapacityEnded: plimsollv1.EventType_EVENT_TYPE_INSUFFICIENT_CAPACITY_ENDED,
	journal.Interruption:              plimsollv1.EventType_EVENT_TYPE_INTERRUPTION,
	journal.ClusterState:              plimsollv1.EventType_EVENT_TYPE_CLUSTER_STATE,
	journal.Requeue:                   plimsollv1.EventType_EVENT_TYPE_REQUEUE,
}
