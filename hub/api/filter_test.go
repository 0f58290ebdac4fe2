package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/lists"
)

func TestFiltersSeeTheFieldsOfTheResource(t *testing.T) {
	object := &plimsollv1.ObjectState{
		Key:   &plimsollv1.ObjectKey{Cluster: "prod", Controller: "webapp", Namespace: "shop", Name: "cart"},
		State: plimsollv1.ReconcileState_RECONCILE_STATE_WAITING, LastOutcome: plimsollv1.ReconcileOutcome_RECONCILE_OUTCOME_ERROR,
		Attempts: 4, LastError: "quota exceeded", LastFinishedAt: timestamppb.New(time.Now().Add(-time.Hour)),
	}
	for text, want := range map[string]bool{
		`object.key.namespace == "shop" && object.key.name.startsWith("ca")`: true,
		`object.state == "WAITING"`:                            true,
		`object.state in ["IDLE", "RUNNING"]`:                  false,
		`object.last_outcome != "DONE" && object.attempts > 3`: true,
		`object.priority == ""`:                                true,
		`object.last_error.matches("quota.*")`:                 true,
		`now - object.last_finished_at > duration("30m")`:      true,
		`has(object.next_try_at)`:                              false,
		`has(object.state)`:                                    true,
		`[object].exists(o, o.state == "WAITING")`:             true,
	} {
		compiled, err := lists.ObjectFilters.Compile(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if passes, ok, err := compiled.Passes(t.Context(), object); passes != want || !ok || err != nil {
			t.Errorf("%s: %v, %v, %v", text, passes, ok, err)
		}
	}
}

func TestAFilterThatCannotBeUsedIsRefusedAndSaysWhere(t *testing.T) {
	r := shop(t)
	s := serve(t, r, nil)
	for text, want := range map[string]string{
		`object.stat == "IDLE"`:            "line 1, column 7: undefined field 'stat'",
		"true &&\n object.attempts":        "line 2, column 8: expected type 'bool'",
		`object.state == "WAITNG"`:         "line 1, column 17: WAITNG is not a value of state",
		`object.state in ["IDLE", "BUSY"]`: "line 1, column 26: BUSY is not a value of state",
		`"WAITNG" == object.state`:         "line 1, column 1: WAITNG is not a value of state",
		`object.state != "WAITNG"`:         "line 1, column 17: WAITNG is not a value of state",
		`workload.name == "x"`:             "undeclared reference to 'workload'",
		`object.attempts`:                  "must be a boolean",
		`dyn(object).attempts`:             "must be a boolean", // also where only an item would tell its type
		`object.key.name == `:              "Syntax error",
		`object.last_error.matches("(")`:   "cannot be used",
		strings.Repeat("(", 300) + "true":  "is not a valid CEL expression",
		`1 / object.attempts > 0`:          "division by zero",
		`[1,2,3,4,5,6,7,8,9].all(a,[1,2,3,4,5,6,7,8,9].all(b,[1,2,3,4,5,6,7,8,9].all(c,[1,2,3,4,5,6,7,8,9].all(d, a+b+c+d+object.attempts > 0))))`: "costs too much",
	} {
		_, err := s.objects().ListObjects(as(t, "admin"), &plimsollv1.ListObjectsRequest{Filter: text})
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		for _, detail := range status.Convert(err).Details() {
			if bad, ok := detail.(*errdetails.BadRequest); ok && bad.GetFieldViolations()[0].GetField() != "filter" {
				t.Errorf("%s: %v", text, bad)
			}
		}
	}
	answer, body := s.call(t, http.MethodGet, "/v1/objects?filter="+url.QueryEscape(`object.stat == 1`), "", bearing("admin"))
	if answer.StatusCode != http.StatusBadRequest || !strings.Contains(body, "column 7") {
		t.Errorf("%s %s", answer.Status, body)
	}
}

func TestAnOrderThatCannotBeUsedIsRefusedAndSaysWhere(t *testing.T) {
	s := serve(t, shop(t), nil)
	for text, want := range map[string]string{
		"attempts, nme":                        "column 11: ObjectState has no field \"nme\"",
		"key":                                  "column 1: field \"key\" of ObjectState cannot be ordered by",
		"state.name":                           "column 1: field \"state\"",
		"attempts down":                        "column 1: must be a field",
		",":                                    "column 1: must be a field",
		"state,priority,attempts,reason,state": "column 32: must have at most 4 fields",
	} {
		if _, err := s.objects().ListObjects(as(t, "admin"), &plimsollv1.ListObjectsRequest{OrderBy: text}); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// anyLedger gives the members of a fleet keys with some attempts.
func anyLedger(rt *rapid.T, asked *replica, reachable []string) (all []*plimsollv1.ObjectState) {
	for _, member := range reachable {
		owner := asked.fleet.replicas[asked.fleet.owner(member)]
		for i := range rapid.IntRange(0, 6).Draw(rt, "objects") {
			owner.record(member, rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "controller"), "ns", fmt.Sprintf("o%d", i))
		}
		for key, record := range owner.records {
			if key.Member == member {
				record.Attempts = rapid.IntRange(0, 3).Draw(rt, "attempts")
				owner.records[key] = record
				all = append(all, objectMessage(&record))
			}
		}
	}
	return all
}

func TestPagesOfAFilteredAndOrderedListPutTogetherAreTheWholeList(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		asked, reachable := anyFleet(rt, t)
		all := anyLedger(rt, asked, reachable)
		filtered, by := rapid.Bool().Draw(rt, "filtered"), rapid.SampledFrom([]string{"", "attempts", "attempts desc", "key.name desc, attempts"}).Draw(rt, "order")
		request := &plimsollv1.ListObjectsRequest{OrderBy: by}
		if filtered {
			request.Filter = `object.attempts > 1`
		}
		keys, err := lists.ParseOrder(by, (&plimsollv1.ObjectState{}).ProtoReflect().Descriptor())
		if err != nil {
			rt.Fatal(err)
		}
		place := func(o *plimsollv1.ObjectState) lists.Position {
			return append(lists.Position(keys.Rank(o)), nameOfObject(o)...)
		}
		slices.SortFunc(all, func(a, b *plimsollv1.ObjectState) int { return keys.Compare(place(a), place(b)) })
		var want, got []lists.Position
		for _, o := range all {
			if !filtered || o.GetAttempts() > 1 {
				want = append(want, place(o))
			}
		}
		for s := asked.services(everything{}); ; {
			request.PageSize = int32(rapid.IntRange(1, 7).Draw(rt, "size"))
			page, err := s.objects.ListObjects(context.Background(), request)
			if err != nil {
				rt.Fatal(err)
			}
			for _, o := range page.GetObjects() {
				got = append(got, place(o))
			}
			if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Errorf("objects (-want +got):\n%s", diff)
		}
	})
}

func TestWorkloadsAndClustersAreFilteredAndOrdered(t *testing.T) {
	r := newFleet().replica(t, "a")
	for i := range 5 {
		name := fmt.Sprintf("m%d", i)
		r.member(name)
		r.fleet.give(name, "a")
		r.workload(name, "shop", "cart")
		r.workloads[i].Replicas = i % 3
	}
	s := serve(t, r, nil)
	workloads, err := s.workloads().ListWorkloads(as(t, "admin"), &plimsollv1.ListWorkloadsRequest{Filter: `workload.cluster != "m3"`, OrderBy: "placement.replicas desc, cluster desc"})
	var got []string
	for _, w := range workloads.GetWorkloads() {
		got = append(got, w.GetCluster())
	}
	if want := []string{"m2", "m4", "m1", "m0"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	got = nil
	for token, more := "", true; more; more = token != "" {
		clusters, err := s.clusters().ListClusters(as(t, "admin"), &plimsollv1.ListClustersRequest{
			Filter: `cluster.state == "READY" && cluster.name > "m0"`, OrderBy: "name desc", PageSize: 3, PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range clusters.GetClusters() {
			got = append(got, c.GetName())
		}
		token = clusters.GetNextPageToken()
	}
	if want := []string{"m4", "m3", "m2", "m1"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestAPageTokenWorksOnlyForItsCallerFilterAndOrder(t *testing.T) {
	first, _ := ledgers(t)
	s := serve(t, first, nil)
	s.give("somebody", auth.Access{Verb: "list", Resource: "objects"})
	made, err := s.objects().ListObjects(as(t, "admin"), &plimsollv1.ListObjectsRequest{Filter: "true", OrderBy: "attempts", PageSize: 2})
	if err != nil || made.GetNextPageToken() == "" {
		t.Fatal(made, err)
	}
	for name, ask := range map[string]struct {
		who           string
		filter, order string
		want          codes.Code
	}{
		"the same":        {"admin", "true", "attempts", codes.OK},
		"another caller":  {"somebody", "true", "attempts", codes.InvalidArgument},
		"another filter":  {"admin", "1 == 1", "attempts", codes.InvalidArgument},
		"another order":   {"admin", "true", "attempts desc", codes.InvalidArgument},
		"neither of them": {"admin", "", "", codes.InvalidArgument},
	} {
		_, err := s.objects().ListObjects(as(t, ask.who), &plimsollv1.ListObjectsRequest{Filter: ask.filter, OrderBy: ask.order, PageToken: made.GetNextPageToken()})
		if status.Code(err) != ask.want {
			t.Errorf("%s: %v, want %s", name, err, ask.want)
		}
	}
}

// An account that was deleted and made again has the name of the one before it, and is somebody else.
func TestAPageTokenIsNotForWhoeverHasTheNameLater(t *testing.T) {
	r := shop(t)
	r.record("prod", "deployment-spot", "shop", "web")
	s := newServices(r.ledgerService(t).core)
	for name, page := range map[string]func(ctx context.Context, token string) (next string, err error){
		"a list": func(ctx context.Context, token string) (string, error) {
			answer, err := s.objects.ListObjects(ctx, &plimsollv1.ListObjectsRequest{Cluster: "prod", PageSize: 1, PageToken: token})
			return answer.GetNextPageToken(), err
		},
		"the pods of a workload": func(ctx context.Context, token string) (string, error) {
			answer, err := s.workloads.GetWorkload(ctx, &plimsollv1.GetWorkloadRequest{
				Cluster: "prod", Namespace: "shop", Kind: "Deployment", Name: "cart", PageSize: 1, PageToken: token,
			})
			return answer.GetNextPageToken(), err
		},
	} {
		who := func(uid string) context.Context {
			return context.WithValue(t.Context(), identityKey{}, auth.Identity{User: "alice", UID: uid})
		}
		token, err := page(who("1"), "")
		if err != nil || token == "" {
			t.Fatalf("%s: the token %q, %v", name, token, err)
		}
		if _, err := page(who("1"), token); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := page(who("2"), token); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: another of the same name: %v", name, err)
		}
	}
}

// A filter that fits nothing looks at a bounded number of items per call, and the pages that come of it still make the list.
func TestAFilterThatHasSpentItsBudgetCutsThePage(t *testing.T) {
	r := shop(t)
	for i := range 50 {
		r.record("prod", "webapp", "shop", fmt.Sprintf("o%02d", i))
	}
	list := r.services(everything{}).objects.objectList(&plimsollv1.ListObjectsRequest{Filter: `object.key.name == "o49"`}, "prod", "", "")
	if err := list.read(t.Context(), lists.ObjectFilters); err != nil {
		t.Fatal(err)
	}
	list.filter.Spend(lists.MaxCallCost - 40)
	found, err := list.here(t.Context(), r.statuses["prod"], 10)
	if err != nil || !found.more || len(found.items) != 0 || found.reached == nil || found.reached[3] == "" {
		t.Fatalf("%+v, %v", found, err)
	}
	list.filter.Refill()
	list.after = found.reached
	if found, err = list.here(t.Context(), r.statuses["prod"], 10); err != nil || found.more || len(found.items) != 1 {
		t.Errorf("%+v, %v", found, err)
	}
	list.order = lists.Order{{}}
	list.filter.Spend(lists.MaxCallCost)
	if _, err := list.here(t.Context(), r.statuses["prod"], 10); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "order_by") {
		t.Errorf("ordered: %v", err)
	}
}

// What fills a page is paid for, and not what comes behind it.
func TestAPageOfAFilteredListLooksAtNoMoreMembersThanItNeeds(t *testing.T) {
	r := newFleet().replica(t, "10.0.0.1:9444")
	for i := range window {
		member := fmt.Sprintf("m%02d", i)
		r.member(member)
		r.fleet.give(member, r.address)
		for n := range 10 {
			r.record(member, "deployment-spot", "shop", fmt.Sprintf("o%d", n))
		}
	}
	var scans atomic.Int64
	r.scanned = func() { scans.Add(1) }
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2)) // so many are looked at side by side
	list := func(token string) *plimsollv1.ListObjectsResponse {
		answer, err := r.ledgerService(t).ListObjects(t.Context(), &plimsollv1.ListObjectsRequest{PageSize: 15, PageToken: token, Filter: "object.attempts >= 0"})
		if err != nil || len(answer.GetObjects()) == 0 {
			t.Fatalf("%d objects, %v", len(answer.GetObjects()), err)
		}
		return answer
	}
	page := list("")
	if got := scans.Load(); got > 3 {
		t.Errorf("for a page that two members fill, %d were looked at", got)
	}
	listed := len(page.GetObjects())
	for page.GetNextPageToken() != "" {
		page = list(page.GetNextPageToken())
		listed += len(page.GetObjects())
	}
	if listed != 10*window {
		t.Errorf("all pages have %d objects, want %d", listed, 10*window)
	}
}
