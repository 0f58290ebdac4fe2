package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	planner "github.com/plimsoll-dev/plimsoll/reconcile/fleet"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/placing"
	fleetv1 "github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
)

func (s *served) fleet() plimsollv1.FleetServiceClient {
	return plimsollv1.NewFleetServiceClient(s.conn)
}

// fleetCalls are those of everyCall about FleetPlacements.
func fleetCalls(s *served) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		plimsollv1.FleetService_ListFleetPlacements_FullMethodName: func(ctx context.Context) error {
			_, err := s.fleet().ListFleetPlacements(ctx, &plimsollv1.ListFleetPlacementsRequest{Namespace: "shop"})
			return err
		},
		plimsollv1.FleetService_GetFleetPlacement_FullMethodName: func(ctx context.Context) error {
			_, err := s.fleet().GetFleetPlacement(ctx, &plimsollv1.GetFleetPlacementRequest{Namespace: "shop", Name: "cart"})
			return err
		},
		plimsollv1.FleetService_WatchFleetPlacements_FullMethodName: func(ctx context.Context) error {
			stream, err := s.fleet().WatchFleetPlacements(ctx, &plimsollv1.WatchFleetPlacementsRequest{Namespace: "shop"})
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		},
		plimsollv1.FleetService_ExplainFleetPlacement_FullMethodName: func(ctx context.Context) error {
			_, err := s.fleet().ExplainFleetPlacement(ctx, &plimsollv1.ExplainFleetPlacementRequest{Namespace: "shop", Name: "cart"})
			return err
		},
		plimsollv1.FleetService_WhatIfFleetPlacement_FullMethodName: func(ctx context.Context) error {
			_, err := s.fleet().WhatIfFleetPlacement(ctx, &plimsollv1.WhatIfFleetPlacementRequest{Namespace: "shop", Name: "cart", MinOnDemand: new(int32(1))})
			return err
		},
	}
}

// anywhere are methods that every replica answers from what it follows itself.
var anywhere = map[string]bool{
	plimsollv1.FleetService_ListFleetPlacements_FullMethodName:  true,
	plimsollv1.FleetService_GetFleetPlacement_FullMethodName:    true,
	plimsollv1.FleetService_WatchFleetPlacements_FullMethodName: true,
}

// fleetLists implements Fleet; a type of its own, because of Members.Synced and the like.
type fleetLists struct{ *replica }

func (l fleetLists) Synced() bool {
	defer l.enter()()
	return !l.starting
}

func (l fleetLists) Namespaces() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []string
	for _, p := range l.placements {
		if len(all) == 0 || all[len(all)-1] != p.Namespace {
			all = append(all, p.Namespace)
		}
	}
	return all
}

func (l fleetLists) Placements(namespace string) []*fleetv1.FleetPlacement {
	defer l.enter()()
	var all []*fleetv1.FleetPlacement
	for _, p := range l.placements {
		if p.Namespace == namespace {
			all = append(all, p.DeepCopy())
		}
	}
	return all
}

func (l fleetLists) Placement(namespace, name string) (*fleetv1.FleetPlacement, bool) {
	for _, p := range l.Placements(namespace) {
		if p.Name == name {
			return p, true
		}
	}
	return nil, false
}

// plan is what all of this replica's FleetPlacements are explained from: the members are those that the status has.
func (l fleetLists) plan(p *fleetv1.FleetPlacement) (*planner.Fleet, []planner.Placement) {
	f, tier := &planner.Fleet{}, planner.Tier{}
	for i := range p.Status.Members {
		supply := planner.Supply{Room: planner.Unbounded, Start: time.Minute}
		f.Members = append(f.Members, planner.Member{Name: p.Status.Members[i].Name, Spot: supply, OnDemand: supply})
		tier = append(tier, planner.Choice{Member: p.Status.Members[i].Name})
	}
	return f, []planner.Placement{{Name: p.Name, Policy: planner.Policy{
		Replicas: int(*p.Spec.Replicas), MinOnDemand: int(p.Spec.Capacity.MinOnDemand), SpotPercentage: 100, Tiers: []planner.Tier{tier},
	}}}
}

func (l fleetLists) Explain(namespace, name string) (placing.Explanation, bool) {
	p, ok := l.Placement(namespace, name)
	if !ok {
		return placing.Explanation{}, false
	}
	f, placements := l.plan(p)
	found, ok := planner.Explain(f, placements, name, then)
	return placing.Explanation{Explanation: found, At: then}, ok
}

func (l fleetLists) Suppose(namespace, name string, h placing.Hypothesis) (placing.Supposition, bool) {
	p, ok := l.Placement(namespace, name)
	if !ok {
		return placing.Supposition{}, false
	}
	h.Change(&p.Spec)
	f, placements := l.plan(p)
	found, ok := planner.PlanOne(f, placements, name, then)
	return placing.Supposition{Result: found, CostNow: 1, Cost: 2, At: then}, ok
}

func (l fleetLists) Version() uint64 { return l.version.Add(1) }

// place adds a FleetPlacement with so many ready replicas in each member.
func (r *replica) place(namespace, name string, ready int32, members ...string) *fleetv1.FleetPlacement {
	p := &fleetv1.FleetPlacement{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	p.Spec.TargetRef = fleetv1.TargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: name}
	p.Spec.Replicas = new(ready * int32(len(members)))
	for _, member := range members {
		counts := fleetv1.Counts{Wanted: ready, Set: ready, Running: ready, Ready: ready}
		p.Status.Members = append(p.Status.Members, fleetv1.MemberStatus{Name: member, Tier: 1, State: fleetv1.MemberPlaced, Spot: counts, Reason: "tier 1, weight 1"})
		p.Status.LastMoves = append(p.Status.LastMoves, fleetv1.Move{Member: member, Capacity: "spot", By: ready, Reason: "tier 1"})
		p.Status.Replicas, p.Status.ReadyReplicas = p.Status.Replicas+ready, p.Status.ReadyReplicas+ready
	}
	p.Status.Conditions = []metav1.Condition{{Type: reconcile.ConditionReady, Status: metav1.ConditionTrue, Reason: fleetv1.ReasonPlaced, Message: "all are ready"}}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.placements = append(r.placements, p)
	return p
}

var listFleet = auth.Access{Group: "fleet.plimsoll.dev", Verb: "list", Resource: "fleetplacements"}

func TestFleetPlacementsAreListedByNamespaceAndNameWithFilterOrderAndPages(t *testing.T) {
	r := shop(t)
	r.place("shop", "search", 9, "prod", "dev")
	r.place("web", "front", 1, "prod")
	s := serve(t, r, nil)
	list := func(request *plimsollv1.ListFleetPlacementsRequest) (names []string) {
		t.Helper()
		for {
			answer, err := s.fleet().ListFleetPlacements(as(t, "admin"), request)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range answer.GetPlacements() {
				names = append(names, p.GetNamespace()+"/"+p.GetName())
			}
			if request.PageToken = answer.GetNextPageToken(); request.PageToken == "" {
				return names
			}
			if len(answer.GetPlacements()) > int(request.GetPageSize()) {
				t.Fatalf("a page of %d", len(answer.GetPlacements()))
			}
		}
	}
	for _, c := range []struct {
		request *plimsollv1.ListFleetPlacementsRequest
		want    string
	}{
		{&plimsollv1.ListFleetPlacementsRequest{}, "shop/cart shop/search web/front"},
		{&plimsollv1.ListFleetPlacementsRequest{PageSize: 1}, "shop/cart shop/search web/front"},
		{&plimsollv1.ListFleetPlacementsRequest{Namespace: "shop"}, "shop/cart shop/search"},
		{&plimsollv1.ListFleetPlacementsRequest{Namespace: "none"}, ""},
		{&plimsollv1.ListFleetPlacementsRequest{OrderBy: "ready desc", PageSize: 1}, "shop/search shop/cart web/front"},
		{&plimsollv1.ListFleetPlacementsRequest{OrderBy: "policy.replicas, name desc"}, "web/front shop/cart shop/search"},
		{&plimsollv1.ListFleetPlacementsRequest{Filter: `placement.members.exists(m, m.name == "dev")`}, "shop/search"},
		{&plimsollv1.ListFleetPlacementsRequest{Filter: `placement.state == "PLACED" && placement.ready < 4`, PageSize: 1}, "shop/cart web/front"},
	} {
		if got := strings.Join(list(c.request), " "); got != c.want {
			t.Errorf("%v: %q, want %q", c.request, got, c.want)
		}
	}
	for _, bad := range []*plimsollv1.ListFleetPlacementsRequest{{Filter: "placement.nonsense"}, {OrderBy: "nonsense"}, {PageToken: "nonsense"}, {Filter: `placement.state == "NONSENSE"`}} {
		if _, err := s.fleet().ListFleetPlacements(as(t, "admin"), bad); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%v: %v", bad, err)
		}
	}
	response, body := s.call(t, http.MethodGet, "/v1/fleetplacements?namespace=web&readMask=name,members.name", "", bearing("admin"))
	var answer struct{ Placements []map[string]any }
	if err := json.Unmarshal([]byte(body), &answer); err != nil || response.StatusCode != http.StatusOK || len(answer.Placements) != 1 || answer.Placements[0]["name"] != "front" {
		t.Errorf("over REST: HTTP %d: %s", response.StatusCode, body)
	}
}

func TestWhoMayListSomeNamespacesSeesTheirFleetPlacementsOnly(t *testing.T) {
	r := shop(t)
	r.place("web", "front", 1, "prod")
	s := serve(t, r, nil)
	right := listFleet
	right.Namespace = "web"
	s.give("webber", right)
	answer, err := s.fleet().ListFleetPlacements(as(t, "webber"), &plimsollv1.ListFleetPlacementsRequest{})
	if err != nil || len(answer.GetPlacements()) != 1 || answer.GetPlacements()[0].GetName() != "front" {
		t.Errorf("%v, %v", answer, err)
	}
	for _, request := range []*plimsollv1.ListFleetPlacementsRequest{{Namespace: "shop"}, {Namespace: "none"}} {
		if _, err := s.fleet().ListFleetPlacements(as(t, "webber"), request); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%v: %v", request, err)
		}
	}
}

func TestMembersThatACallerMayNotSeeAreNotNamed(t *testing.T) {
	r := shop(t)
	p := r.place("shop", "search", 2, "prod", "secret")
	p.Spec.GatherInto = "secret"
	p.Status.Members[0].Reason = "as secret has no room"
	p.Status.LastMoves[0].Reason = "secret has no room"
	p.Status.Conditions[0].Message = "member secret: it refused"
	s := serve(t, r, nil)
	s.give("tenant", listFleet, auth.Access{Group: "fleet.plimsoll.dev", Verb: "get", Resource: "fleetplacements"},
		auth.Access{Verb: "get", Resource: "workloads", Member: "prod", Namespace: "shop"})
	got, err := s.fleet().GetFleetPlacement(as(t, "tenant"), &plimsollv1.GetFleetPlacementRequest{Namespace: "shop", Name: "search"})
	if err != nil {
		t.Fatal(err)
	}
	shown := got.GetPlacement()
	if strings.Contains(shown.String(), "secret") || shown.GetHiddenMembers() != 1 || len(shown.GetMembers()) != 1 || len(shown.GetLastMoves()) != 1 || shown.GetReady() != 4 {
		t.Errorf("shown: %v", shown)
	}
	// A filter must not find out either, and a watch shows no more.
	list, err := s.fleet().ListFleetPlacements(as(t, "tenant"), &plimsollv1.ListFleetPlacementsRequest{Filter: `placement.members.exists(m, m.name == "secret")`})
	if err != nil || len(list.GetPlacements()) != 0 {
		t.Errorf("a filter by the name finds %v, %v", list, err)
	}
	stream, err := s.fleet().WatchFleetPlacements(as(t, "tenant"), &plimsollv1.WatchFleetPlacementsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	for synced := false; !synced; {
		message, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if told++; strings.Contains(message.String(), "secret") {
			t.Errorf("watched: %v", message)
		}
		synced = message.GetType() == plimsollv1.WatchEventType_WATCH_EVENT_TYPE_SYNCED
	}
	if told != 3 {
		t.Errorf("%d messages, want two FleetPlacements and SYNCED", told)
	}
	all, err := s.fleet().GetFleetPlacement(as(t, "admin"), &plimsollv1.GetFleetPlacementRequest{Namespace: "shop", Name: "search"})
	if err != nil || len(all.GetPlacement().GetMembers()) != 2 || all.GetPlacement().GetMessage() != "member secret: it refused" {
		t.Errorf("who may see all sees %v, %v", all, err)
	}
}

// What one watcher may see is not what the next is sent, whoever comes first.
func TestWatchersOfTheSameFleetPlacementAreEachShownWhatTheyMaySee(t *testing.T) {
	for _, order := range [][]string{{"admin", "tenant"}, {"tenant", "admin"}} {
		r := shop(t)
		r.place("shop", "search", 2, "prod", "secret")
		s := serve(t, r, nil)
		s.give("tenant", listFleet, auth.Access{Verb: "get", Resource: "workloads", Member: "prod", Namespace: "shop"})
		for _, who := range order {
			stream, err := s.fleet().WatchFleetPlacements(as(t, who), &plimsollv1.WatchFleetPlacementsRequest{})
			if err != nil {
				t.Fatal(err)
			}
			named := false
			for synced := false; !synced; {
				message, err := stream.Recv()
				if err != nil {
					t.Fatal(err)
				}
				named = named || strings.Contains(message.String(), "secret")
				synced = message.GetType() == plimsollv1.WatchEventType_WATCH_EVENT_TYPE_SYNCED
			}
			if named != (who == "admin") {
				t.Errorf("of %v, %s is told of the hidden member: %t", order, who, named)
			}
		}
	}
}

func TestAWatchTellsWhatBecomesOfFleetPlacements(t *testing.T) {
	r := shop(t)
	s := serve(t, r, nil)
	stream, err := s.fleet().WatchFleetPlacements(as(t, "admin"), &plimsollv1.WatchFleetPlacementsRequest{Filter: "placement.ready > 0"})
	if err != nil {
		t.Fatal(err)
	}
	next := func(what plimsollv1.WatchEventType, name string, ready int32) {
		t.Helper()
		for {
			message, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if message.GetType() == plimsollv1.WatchEventType_WATCH_EVENT_TYPE_BOOKMARK {
				continue
			}
			if message.GetType() != what || message.GetPlacement().GetName() != name || message.GetPlacement().GetReady() != ready {
				t.Fatalf("%v, want %v of %q with %d ready", message, what, name, ready)
			}
			return
		}
	}
	next(plimsollv1.WatchEventType_WATCH_EVENT_TYPE_PUT, "cart", 3)
	next(plimsollv1.WatchEventType_WATCH_EVENT_TYPE_SYNCED, "", 0)
	change := func(f func(p *fleetv1.FleetPlacement)) {
		r.mu.Lock()
		defer r.mu.Unlock()
		f(r.placements[0])
	}
	change(func(p *fleetv1.FleetPlacement) { p.Status.ReadyReplicas = 2 })
	next(plimsollv1.WatchEventType_WATCH_EVENT_TYPE_PUT, "cart", 2)
	change(func(p *fleetv1.FleetPlacement) { p.Status.ReadyReplicas = 0 })
	next(plimsollv1.WatchEventType_WATCH_EVENT_TYPE_REMOVED, "cart", 0)
	r.place("web", "front", 1, "prod")
	next(plimsollv1.WatchEventType_WATCH_EVENT_TYPE_PUT, "front", 1)
	r.mu.Lock()
	r.placements = r.placements[:1]
	r.mu.Unlock()
	next(plimsollv1.WatchEventType_WATCH_EVENT_TYPE_REMOVED, "front", 0)
}

func TestAHubWithoutFleetPlacementSaysSo(t *testing.T) {
	r := shop(t)
	s := serve(t, r, func(o *Options) { o.Fleet = nil })
	for method, call := range fleetCalls(s) {
		if err := call(as(t, "admin")); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "fleet.enabled") || apierror.ReasonOf(err) != "FLEET_DISABLED" {
			t.Errorf("%s: %v", method, err)
		}
	}
	r.mu.Lock()
	r.starting = true
	r.mu.Unlock()
	s = serve(t, r, nil)
	for method, call := range fleetCalls(s) {
		if err := call(as(t, "admin")); status.Code(err) != codes.Unavailable {
			t.Errorf("%s before they are read: %v", method, err)
		}
	}
}

func TestAFleetPlacementIsShownWhole(t *testing.T) {
	minute := fleetv1.Duration{Duration: metav1.Duration{Duration: time.Minute}}
	p := &fleetv1.FleetPlacement{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart", CreationTimestamp: metav1.NewTime(then)},
		Spec: fleetv1.FleetPlacementSpec{
			TargetRef: fleetv1.TargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, Replicas: new(int32(9)),
			Capacity: fleetv1.Capacity{MinOnDemand: 2, SpotPercentage: new(int32(80)), ExtraSpot: 1},
			Clusters: []fleetv1.Tier{{Members: []fleetv1.Choice{{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"region": "eu"}}, Weight: 2, Min: 1, Max: new(int32(7))}, {}}}},
			Spread:   fleetv1.Spread{MaxPercentPerMember: new(int32(50)), DomainLabel: "region", MaxPercentPerDomain: new(int32(70))},
			Prices:   []fleetv1.Price{{Spot: "1", OnDemand: "2.5"}}, ClusterLossGrace: &minute,
			Pace:     fleetv1.Pace{MaxMoves: new(int32(3)), Cooldown: &minute, Window: &fleetv1.Window{Schedule: "0 0 * * *", Duration: minute, TimeZone: "Asia/Tokyo"}},
			OnDelete: fleetv1.Gather, GatherInto: "a",
		},
		Status: fleetv1.FleetPlacementStatus{
			Replicas: 8, ReadyReplicas: 7, Spot: fleetv1.Counts{Wanted: 1, Set: 2, Running: 3, Ready: 4}, OnDemand: fleetv1.Counts{Wanted: 5},
			Insurance: 1, Unplaced: 2,
			Members:   []fleetv1.MemberStatus{{Name: "a", Tier: 1, State: fleetv1.MemberLost, Spot: fleetv1.Counts{Ready: 4}, OnDemand: fleetv1.Counts{Set: 5}, Reason: "why"}},
			LastMoves: []fleetv1.Move{{Time: metav1.NewTime(then), Member: "a", Capacity: "on-demand", By: -2, Reason: "so"}},
		},
	}
	p.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: fleetv1.ReasonIncomplete, Message: "m", LastTransitionTime: metav1.NewTime(then)}}
	want := &plimsollv1.FleetPlacement{
		Namespace: "shop", Name: "cart", Target: &plimsollv1.FleetTarget{ApiVersion: "apps/v1", Kind: "Deployment", Name: "web"},
		State: plimsollv1.FleetPlacementState_FLEET_PLACEMENT_STATE_INCOMPLETE, Reason: "Incomplete", Message: "m",
		Policy: &plimsollv1.FleetPolicy{
			Replicas: 9, MinOnDemand: 2, SpotPercentage: 80, ExtraSpot: 1,
			Tiers:  []*plimsollv1.FleetTier{{Members: []*plimsollv1.FleetChoice{{Selector: "region=eu", Weight: 2, Min: 1, Max: 7}, {}}}},
			Spread: &plimsollv1.FleetSpread{MaxPercentPerMember: 50, DomainLabel: "region", MaxPercentPerDomain: 70},
			Prices: []*plimsollv1.FleetPrice{{Spot: "1", OnDemand: "2.5"}}, ClusterLossGrace: durationpb.New(time.Minute),
			Pace: &plimsollv1.FleetPace{MaxMoves: 3, Cooldown: durationpb.New(time.Minute), WindowSchedule: "0 0 * * *",
				WindowDuration: durationpb.New(time.Minute), WindowTimeZone: "Asia/Tokyo"},
			OnDelete: "Gather", GatherInto: "a",
		},
		Running: 8, Ready: 7, Spot: &plimsollv1.FleetCounts{Wanted: 1, Set: 2, Running: 3, Ready: 4}, OnDemand: &plimsollv1.FleetCounts{Wanted: 5},
		Insurance: 1, Unplaced: 2,
		Members: []*plimsollv1.FleetMember{{Name: "a", Tier: 1, State: plimsollv1.FleetMemberState_FLEET_MEMBER_STATE_LOST,
			Spot: &plimsollv1.FleetCounts{Ready: 4}, OnDemand: &plimsollv1.FleetCounts{Set: 5}, Reason: "why"}},
		LastMoves:  []*plimsollv1.FleetMove{{MovedAt: timestamppb.New(then), Member: "a", Capacity: plimsollv1.CapacityType_CAPACITY_TYPE_ON_DEMAND, By: -2, Reason: "so"}},
		Conditions: []*plimsollv1.Condition{{Type: "Ready", Status: "False", Reason: "Incomplete", Message: "m", LastTransitionTime: timestamppb.New(then)}},
		CreatedAt:  timestamppb.New(then),
	}
	if diff := cmp.Diff(want, fleetPlacementMessage(p), protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	distinct(t, "member states", fleetMemberStates, plimsollv1.FleetMemberState_name, 1)
	distinct(t, "capacities", capacityWords, plimsollv1.CapacityType_name, 1)
}

// Planning takes up to half a second of a processor, and a caller who is not answered soon asks again.
func TestNoPlanIsMadeForACallerWhoHasGone(t *testing.T) {
	r := shop(t)
	r.place("shop", "search", 2, "prod")
	free, busy := make(chan struct{}), make(chan struct{})
	go func() { _ = r.questions.Ask(context.Background(), "somebody", func() { close(busy); <-free }) }()
	<-busy
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	calls := plimsollv1.NewFleetServiceClient(r.peer)
	_, why := calls.ExplainFleetPlacement(ctx, &plimsollv1.ExplainFleetPlacementRequest{Namespace: "shop", Name: "search"})
	_, what := calls.WhatIfFleetPlacement(ctx, &plimsollv1.WhatIfFleetPlacementRequest{Namespace: "shop", Name: "search", MinOnDemand: new(int32(4))})
	if status.Code(why) != codes.DeadlineExceeded || status.Code(what) != codes.DeadlineExceeded {
		t.Errorf("%v, %v", why, what)
	}
	close(free)
	if _, err := calls.ExplainFleetPlacement(t.Context(), &plimsollv1.ExplainFleetPlacementRequest{Namespace: "shop", Name: "search"}); err != nil {
		t.Error(err)
	}
}

func TestWhyAndWhatIfOfAFleetPlacement(t *testing.T) {
	r := shop(t)
	p := r.place("shop", "search", 2, "prod", "secret")
	p.Spec.Capacity.MinOnDemand = 1
	s := serve(t, r, nil)
	s.give("tenant", auth.Access{Group: "fleet.plimsoll.dev", Verb: "get", Resource: "fleetplacements"},
		auth.Access{Verb: "get", Resource: "workloads", Member: "prod", Namespace: "shop"})
	for who, members := range map[string]int{"admin": 2, "tenant": 1} {
		why, err := s.fleet().ExplainFleetPlacement(as(t, who), &plimsollv1.ExplainFleetPlacementRequest{Namespace: "shop", Name: "search"})
		if err != nil {
			t.Fatal(err)
		}
		if len(why.GetMembers()) != members || len(why.GetSummary()) == 0 || why.GetMembers()[0].GetWhySpot() == "" || why.GetPlacement().GetName() != "search" {
			t.Errorf("%s: %v", who, why)
		}
		what, err := s.fleet().WhatIfFleetPlacement(as(t, who), &plimsollv1.WhatIfFleetPlacementRequest{Namespace: "shop", Name: "search", MinOnDemand: new(int32(4))})
		if err != nil {
			t.Fatal(err)
		}
		if what.GetSpot() != 0 || what.GetOnDemand() != 4 || len(what.GetThen()) != members || what.GetCostThen() != 2 || what.GetThen()[0].GetSpot().GetReady() != 2 {
			t.Errorf("%s: %v", who, what)
		}
		if who == "tenant" && strings.Contains(why.String()+what.String(), "secret") {
			t.Errorf("the tenant sees\n%v\n%v", why, what)
		}
	}
	for field, request := range map[string]*plimsollv1.WhatIfFleetPlacementRequest{
		"tiers[0].members[0].selector": {Tiers: []*plimsollv1.FleetTier{{Members: []*plimsollv1.FleetChoice{{Selector: "a=b=c"}}}}},
		"tiers[0].members[0].min":      {Tiers: []*plimsollv1.FleetTier{{Members: []*plimsollv1.FleetChoice{{Min: 3, Max: 2}}}}},
		"prices[0].spot":               {Prices: []*plimsollv1.FleetPrice{{Spot: "-1", OnDemand: "2"}}},
		"spot_percentage":              {SpotPercentage: new(int32(101))},
	} {
		request.Namespace, request.Name = "shop", "search"
		if _, err := s.fleet().WhatIfFleetPlacement(as(t, "admin"), request); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	path := "/v1/namespaces/shop/fleetplacements/search"
	if response, body := s.call(t, http.MethodGet, path+":explain", "", bearing("admin")); response.StatusCode != http.StatusOK || !strings.Contains(body, "whyMember") {
		t.Errorf("HTTP %d: %s", response.StatusCode, body)
	}
	if response, body := s.call(t, http.MethodPost, path+":whatIf", `{"replicas": 6}`, bearing("admin")); response.StatusCode != http.StatusOK || !strings.Contains(body, `"onDemand":1`) {
		t.Errorf("HTTP %d: %s", response.StatusCode, body)
	}
}

// What an answer adds up would tell whether a selector matches a member that the caller may not see.
func TestWhoMayNotSeeAllMembersCannotFindOutTheirLabels(t *testing.T) {
	r := shop(t)
	p := r.place("shop", "search", 2, "prod", "secret")
	p.Spec.Spread.DomainLabel = "region"
	s := serve(t, r, nil)
	s.give("tenant", auth.Access{Group: "fleet.plimsoll.dev", Verb: "get", Resource: "fleetplacements"},
		auth.Access{Verb: "get", Resource: "workloads", Member: "prod", Namespace: "shop"})
	for _, selector := range []string{"region=secret", "region=nowhere", ""} {
		for what, request := range map[string]*plimsollv1.WhatIfFleetPlacementRequest{
			"tiers":  {Tiers: []*plimsollv1.FleetTier{{Members: []*plimsollv1.FleetChoice{{Selector: selector}}}}},
			"prices": {Prices: []*plimsollv1.FleetPrice{{Selector: selector, Spot: "1", OnDemand: "2"}}},
			"spread": {Spread: &plimsollv1.FleetSpread{DomainLabel: "zone", MaxPercentPerDomain: 50}},
		} {
			request.Namespace, request.Name = "shop", "search"
			_, err := s.fleet().WhatIfFleetPlacement(as(t, "tenant"), request)
			if status.Code(err) != codes.PermissionDenied || apierror.ReasonOf(err) != "ACCESS_DENIED" || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s %q: %v", what, selector, err)
			}
			if _, err := s.fleet().WhatIfFleetPlacement(as(t, "admin"), request); err != nil {
				t.Errorf("%s %q of one who sees all: %v", what, selector, err)
			}
		}
	}
	own := &plimsollv1.WhatIfFleetPlacementRequest{Namespace: "shop", Name: "search", Spread: &plimsollv1.FleetSpread{DomainLabel: "region", MaxPercentPerMember: 60}}
	if _, err := s.fleet().WhatIfFleetPlacement(as(t, "tenant"), own); err != nil {
		t.Errorf("the label of its own spec: %v", err)
	}
}
