package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile"
)

// watch follows objects until the test ends, and returns what comes as texts.
func (s *served) watch(ctx context.Context, t *testing.T, request *plimsollv1.WatchObjectsRequest) (<-chan string, <-chan string, <-chan error) {
	t.Helper()
	stream, err := s.objects().WatchObjects(ctx, request)
	if err != nil {
		t.Fatal(err)
	}
	events, tokens, ended := make(chan string, 1000), make(chan string, 1000), make(chan error, 1)
	go func() {
		for {
			message, err := stream.Recv()
			if err != nil {
				ended <- err
				return
			}
			if message.GetResumeToken() != "" {
				tokens <- message.GetResumeToken()
			}
			what := strings.TrimPrefix(message.GetType().String(), "WATCH_EVENT_TYPE_")
			if key := message.GetObject().GetKey(); key != nil {
				what += " " + key.GetCluster() + "/" + key.GetName()
			}
			for _, gap := range message.GetUnreachable() {
				what += " without " + gap.GetMember()
			}
			events <- what
		}
	}()
	return events, tokens, ended
}

// expect waits for events in this order; what else comes meanwhile must be without an object.
func expect(t *testing.T, events <-chan string, want ...string) {
	t.Helper()
	for _, w := range want {
		for got := ""; got != w; {
			select {
			case got = <-events:
				if got != w && got != "SYNCED" && !strings.HasPrefix(got, "BOOKMARK") {
					t.Fatalf("got %q, want %q", got, w)
				}
			case <-time.After(time.Minute):
				t.Fatalf("nothing came, want %q", w)
			}
		}
	}
}

// attempts changes a record.
func (r *replica) attempts(member, name string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := reconcile.Key{Controller: "webapp", Member: member}
	key.Namespace, key.Name = "shop", name
	record := r.records[key]
	record.Key, record.State, record.Attempts = key, reconcile.StateIdle, n
	r.records[key] = record
}

func (r *replica) forgetRecord(member, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := reconcile.Key{Controller: "webapp", Member: member}
	key.Namespace, key.Name = "shop", name
	delete(r.records, key)
}

// watched are two replicas with one object each; the first answers.
func watched(t *testing.T) (*replica, *replica) {
	t.Helper()
	first := newFleet().replica(t, "a")
	second := first.fleet.replica(t, "b")
	for member, owner := range map[string]*replica{"dev": first, "test": second} {
		first.member(member)
		second.member(member)
		first.fleet.give(member, owner.address)
		owner.attempts(member, "cart", 0)
	}
	return first, second
}

func TestAWatchTellsWhatThereIsAndThenWhatChangesWhoeverOwnsIt(t *testing.T) {
	first, second := watched(t)
	s := serve(t, first, nil)
	events, tokens, _ := s.watch(as(t, "admin"), t, &plimsollv1.WatchObjectsRequest{Cluster: "dev"})
	expect(t, events, "PUT dev/cart", "SYNCED")
	<-tokens
	ofTest, _, _ := s.watch(as(t, "admin"), t, &plimsollv1.WatchObjectsRequest{Cluster: "test", Filter: "object.attempts < 5"})
	expect(t, ofTest, "PUT test/cart", "SYNCED")
	second.attempts("test", "web", 1)
	expect(t, ofTest, "PUT test/web")
	second.attempts("test", "web", 5)
	expect(t, ofTest, "REMOVED test/web")
	second.attempts("test", "web", 6)
	second.forgetRecord("test", "cart")
	expect(t, ofTest, "REMOVED test/cart")
	first.attempts("dev", "cart", 3)
	expect(t, events, "PUT dev/cart")
	first.forgetRecord("dev", "cart")
	expect(t, events, "REMOVED dev/cart")
}

// What had gone before a watch began is none of its reader's business: they are told what there is.
func TestAWatchDoesNotTellOfWhatHadGoneBeforeItBegan(t *testing.T) {
	first, _ := watched(t)
	s := serve(t, first, nil)
	events, _, _ := s.watch(as(t, "admin"), t, &plimsollv1.WatchObjectsRequest{Cluster: "dev"}) // so that the feed goes on
	expect(t, events, "PUT dev/cart", "SYNCED")
	first.attempts("dev", "web", 1)
	expect(t, events, "PUT dev/web")
	first.forgetRecord("dev", "web")
	expect(t, events, "REMOVED dev/web")
	late, _, _ := s.watch(as(t, "admin"), t, &plimsollv1.WatchObjectsRequest{Cluster: "dev"})
	expect(t, late, "PUT dev/cart", "SYNCED") // and nothing of another object
}

func TestAMemberWhoseOwnerGoesStaysInAWatchAndIsNamed(t *testing.T) {
	first, second := watched(t)
	events, _, _ := serve(t, first, nil).watch(as(t, "admin"), t, &plimsollv1.WatchObjectsRequest{Cluster: "test"})
	expect(t, events, "PUT test/cart", "SYNCED")
	first.fleet.mu.Lock()
	peer := second.peer
	second.peer = nil
	first.fleet.mu.Unlock()
	expect(t, events, "BOOKMARK without test")
	first.fleet.mu.Lock()
	second.peer = peer
	first.fleet.mu.Unlock()
	second.attempts("test", "cart", 1)
	expect(t, events, "PUT test/cart")
}

func TestAWatchGoesOnBehindItsTokenAndSaysWhenThatHasExpired(t *testing.T) {
	first, _ := watched(t)
	s := serve(t, first, nil)
	for _, filter := range []string{"", "object.attempts < 5"} {
		ctx, leave := context.WithCancel(as(t, "admin"))
		request := &plimsollv1.WatchObjectsRequest{Cluster: "dev", Filter: filter}
		first.attempts("dev", "web", 0)
		events, tokens, ended := s.watch(ctx, t, request)
		for put, synced := false, false; !put || !synced; {
			e := <-events
			put, synced = put || e == "PUT dev/web", synced || e == "SYNCED"
		}
		leave()
		if err := <-ended; err == nil {
			t.Error("a watch that was left has ended by itself")
		}
		first.attempts("dev", "web", 7)
		request.ResumeToken = <-tokens
		events, tokens, _ = s.watch(as(t, "admin"), t, request)
		if filter == "" {
			expect(t, events, "PUT dev/web")
		} else {
			for e := ""; e != "REMOVED dev/web"; e = <-events { // the token may be older than the last PUT
			}
		}
		for name, c := range map[string]struct {
			who   string
			other *plimsollv1.WatchObjectsRequest
		}{
			"another caller": {"root", request},
			"another filter": {"admin", &plimsollv1.WatchObjectsRequest{Cluster: "dev", Filter: "true", ResumeToken: request.ResumeToken}},
			"nonsense":       {"admin", &plimsollv1.WatchObjectsRequest{Cluster: "dev", ResumeToken: "%"}},
		} {
			s.give("root", auth.Access{Verb: "list", Resource: "objects"})
			if _, _, ended := s.watch(as(t, c.who), t, c.other); !endsWith(ended, codes.InvalidArgument) {
				t.Errorf("%s was not refused", name)
			}
		}
		<-tokens
	}
	elsewhere := serve(t, first, nil) // which has seen more
	events, _, _ := elsewhere.watch(as(t, "admin"), t, &plimsollv1.WatchObjectsRequest{Cluster: "dev"})
	for n := range 9 {
		first.attempts("dev", "web", 100+n)
		for e := ""; e != "PUT dev/web"; e = <-events {
		}
	}
	_, tokens, _ := serve(t, first, nil).watch(as(t, "admin"), t, &plimsollv1.WatchObjectsRequest{Cluster: "dev"})
	events, _, _ = elsewhere.watch(as(t, "admin"), t, &plimsollv1.WatchObjectsRequest{Cluster: "dev", ResumeToken: <-tokens})
	if got := <-events; got != "RESYNC" {
		t.Errorf("a token of another replica: %s", got)
	}
}

// endsWith reports whether a watch ends with a code within a minute.
func endsWith(ended <-chan error, code codes.Code) bool {
	select {
	case err := <-ended:
		return status.Code(err) == code
	case <-time.After(time.Minute):
		return false
	}
}

// The errors of a filter quote what it reads.
func TestAResumedWatchEvaluatesItsFilterOnlyForWhatItIsAbout(t *testing.T) {
	first, _ := watched(t)
	s := serve(t, first, nil)
	others := reconcile.Key{Controller: "webapp", Member: "dev"}
	others.Namespace, others.Name = "neighbours", "of-others"
	first.mu.Lock()
	first.records[others] = reconcile.Record{Key: others, State: reconcile.StateIdle}
	first.mu.Unlock()
	request := &plimsollv1.WatchObjectsRequest{Cluster: "dev", Namespace: "shop", Filter: `object.key.namespace == "shop" || {"": true}[object.key.name]`}
	events, tokens, _ := s.watch(as(t, "admin"), t, request)
	for put, synced := false, false; !put || !synced; {
		e := <-events
		put, synced = put || e == "PUT dev/cart", synced || e == "SYNCED"
	}
	request.ResumeToken = <-tokens
	resumed, _, ended := s.watch(as(t, "admin"), t, request)
	first.attempts("dev", "cart", 1)
	for {
		select {
		case e := <-resumed:
			if e == "PUT dev/cart" {
				return
			}
		case err := <-ended:
			t.Fatal(err)
		}
	}
}

func TestWatchesEndWhenTheirRightsAreTakenAway(t *testing.T) {
	first, _ := watched(t)
	s := serve(t, first, func(o *Options) { o.RecheckEvery = 50 * time.Millisecond })
	s.give("one", auth.Access{Verb: "list", Resource: "objects", Member: "dev"})
	s.give("all", auth.Access{Verb: "list", Resource: "objects"})
	var ends []<-chan error
	for who, request := range map[string]*plimsollv1.WatchObjectsRequest{"one": {Cluster: "dev"}, "all": {}} {
		events, _, ended := s.watch(as(t, who), t, request)
		for e := ""; e != "SYNCED"; e = <-events {
		}
		ends = append(ends, ended)
	}
	events, _, ended := s.watch(as(t, "one"), t, &plimsollv1.WatchObjectsRequest{})
	expect(t, events, "PUT dev/cart", "SYNCED")
	s.give("one", auth.Access{Verb: "list", Resource: "objects", Member: "test"})
	expect(t, events, "RESYNC")
	ends = append(ends, ended)
	s.mu.Lock()
	clear(s.rights)
	s.mu.Unlock()
	for _, ended := range ends {
		select {
		case err := <-ended:
			if status.Code(err) != codes.PermissionDenied {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Error("a watch goes on without its right")
		}
	}
	_, _, ended = s.watch(as(t, "admin"), t, &plimsollv1.WatchObjectsRequest{})
	s.mu.Lock()
	s.broken = auth.ErrBadToken
	s.mu.Unlock()
	if err := <-ended; status.Code(err) != codes.Unauthenticated {
		t.Errorf("without a token: %v", err)
	}
}

func TestACallerHasALimitedNumberOfWatches(t *testing.T) {
	first, _ := watched(t)
	s := serve(t, first, nil)
	ctx, leave := context.WithCancel(as(t, "admin"))
	defer leave()
	for range maxWatchesOfUser {
		events, _, _ := s.watch(ctx, t, &plimsollv1.WatchObjectsRequest{Cluster: "dev"})
		<-events
	}
	_, _, ended := s.watch(as(t, "admin"), t, &plimsollv1.WatchObjectsRequest{})
	if err := <-ended; status.Code(err) != codes.ResourceExhausted {
		t.Errorf("one more: %v", err)
	}
	s.give("other", auth.Access{Verb: "list", Resource: "clusters"})
	stream, err := s.clusters().WatchClusters(as(t, "other"), &plimsollv1.WatchClustersRequest{Filter: `cluster.name == "dev"`})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := stream.Recv(); err != nil || got.GetCluster().GetName() != "dev" {
		t.Errorf("another caller: %v, %v", got, err)
	}
}

// A reader that takes nothing for a while gets the newest states, and nobody waits for it.
func TestASlowReaderIsToldTheNewestStateAndHoldsUpNobody(t *testing.T) {
	first, _ := watched(t)
	s := serve(t, first, nil)
	slow, err := s.objects().WatchObjects(as(t, "admin"), &plimsollv1.WatchObjectsRequest{Cluster: "dev"})
	if err != nil {
		t.Fatal(err)
	}
	quick, _, _ := s.watch(as(t, "admin"), t, &plimsollv1.WatchObjectsRequest{Cluster: "dev"})
	expect(t, quick, "PUT dev/cart", "SYNCED")
	for n := range 20 {
		first.attempts("dev", "cart", n+1)
		expect(t, quick, "PUT dev/cart")
	}
	for {
		message, err := slow.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if message.GetObject().GetAttempts() == 20 {
			return
		}
	}
}

// What a reader who stops reading has missed is not kept for it: more is gone than a replica remembers. When it reads on, it learns
// so and begins again; who reads gets everything meanwhile.
func TestAReaderWhoMissedTooMuchIsResynced(t *testing.T) {
	first, _ := watched(t)
	s := serve(t, first, nil)
	const many = maxGone + 2000
	first.manyObjects(many)
	slow, err := s.objects().WatchObjects(as(t, "admin"), &plimsollv1.WatchObjectsRequest{Cluster: "dev"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := slow.Recv(); err != nil { // of what there is, no more than the stream's window is sent
		t.Fatal(err)
	}
	quick, err := s.objects().WatchObjects(as(t, "admin"), &plimsollv1.WatchObjectsRequest{Cluster: "dev"})
	if err != nil {
		t.Fatal(err)
	}
	there, synced := map[string]bool{}, false
	readUntil(t, quick, func(m *plimsollv1.WatchObjectsResponse) bool {
		keep(there, m)
		synced = synced || m.GetType() == plimsollv1.WatchEventType_WATCH_EVENT_TYPE_SYNCED
		return synced && len(there) == many+1
	})
	first.manyObjects(0)
	readUntil(t, quick, func(m *plimsollv1.WatchObjectsResponse) bool {
		keep(there, m)
		return len(there) == 1
	})

	var reason string
	there = map[string]bool{}
	readUntil(t, slow, func(m *plimsollv1.WatchObjectsResponse) bool {
		if m.GetType() == plimsollv1.WatchEventType_WATCH_EVENT_TYPE_RESYNC {
			reason = m.GetReason()
		}
		keep(there, m)
		return m.GetType() == plimsollv1.WatchEventType_WATCH_EVENT_TYPE_SYNCED
	})
	if !strings.Contains(reason, "too slow") || len(there) != 1 || !there["cart"] {
		t.Errorf("the reason is %q, and %d objects are there", reason, len(there))
	}
}

// manyObjects are so many in member dev, beside cart.
func (r *replica) manyObjects(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.records, func(key reconcile.Key, _ reconcile.Record) bool { return key.Member == "dev" && key.Name != "cart" })
	for i := range n {
		key := reconcile.Key{Controller: "webapp", Member: "dev"}
		key.Namespace, key.Name = "shop", fmt.Sprintf("an-object-whose-name-is-not-short-%06d", i)
		r.records[key] = reconcile.Record{Key: key, State: reconcile.StateIdle}
	}
}

// keep notes in there which objects a watch has sent.
func keep(there map[string]bool, m *plimsollv1.WatchObjectsResponse) {
	switch name := m.GetObject().GetKey().GetName(); m.GetType() {
	case plimsollv1.WatchEventType_WATCH_EVENT_TYPE_PUT:
		there[name] = true
	case plimsollv1.WatchEventType_WATCH_EVENT_TYPE_REMOVED:
		delete(there, name)
	case plimsollv1.WatchEventType_WATCH_EVENT_TYPE_RESYNC:
		clear(there)
	}
}

// readUntil reads a watch until enough has come.
func readUntil(t *testing.T, from grpc.ServerStreamingClient[plimsollv1.WatchObjectsResponse], enough func(*plimsollv1.WatchObjectsResponse) bool) {
	t.Helper()
	for {
		message, err := from.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if enough(message) {
			return
		}
	}
}

func TestAFeedForgetsWhatIsGoneAndWhoMissedThatBeginsAnew(t *testing.T) {
	items := map[int]bool{}
	f := newFeed(&core{members: newFleet().replica(t, "a"), log: testLog(t)}, nameOfObject, nil)
	put := func() {
		var all []*plimsollv1.ObjectState
		for n := range items {
			all = append(all, &plimsollv1.ObjectState{Key: &plimsollv1.ObjectKey{Cluster: "m", Name: fmt.Sprint(n)}})
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.merge("m", all, false)
	}
	for n := range maxGone + 10 {
		items[n] = true
	}
	put()
	_, before, _ := f.after(f.begin(), 0, 1)
	_, all, _ := f.after(f.begin(), 0, 2*maxGone)
	clear(items)
	items[0] = true
	put()
	if _, _, ok := f.after(f.begin(), before.upTo, 1); ok {
		t.Error("who has not heard of what is forgotten gets the rest")
	}
	if _, _, ok := f.after(f.begin(), all.upTo, 1); ok {
		t.Error("who knew everything before gets the rest")
	}
	if f.known > maxGone || len(f.entries) > 2*f.known+1024 {
		t.Errorf("%d nodes, %d entries", f.known, len(f.entries))
	}
	if found, now, ok := f.after(f.begin(), 0, 1<<20); !ok || len(found) < 1 || !now.end {
		t.Error("who begins again gets nothing")
	}
}

func TestWatchesOverRESTAreLinesOrEvents(t *testing.T) {
	first, _ := watched(t)
	s := serve(t, first, nil)
	for accept, want := range map[string][2]string{"": {"application/x-ndjson", ""}, "text/event-stream": {"text/event-stream", "data: "}} {
		ctx, leave := context.WithCancel(t.Context())
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+s.rest+"/v1/objects:watch?cluster=dev", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header = bearing("admin")
		if accept != "" {
			request.Header.Set("Accept", accept)
		}
		response, err := s.http.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if got := response.Header.Get("Content-Type"); got != want[0] {
			t.Errorf("%q: %s", accept, got)
		}
		lines := bufio.NewScanner(response.Body)
		for _, what := range []string{"WATCH_EVENT_TYPE_PUT", "WATCH_EVENT_TYPE_SYNCED"} {
			lines.Scan()
			var message struct{ Result struct{ Type string } }
			text, ok := strings.CutPrefix(lines.Text(), want[1])
			if err := json.Unmarshal([]byte(text), &message); err != nil || !ok || message.Result.Type != what {
				t.Errorf("%q: %s: %v", accept, lines.Text(), err)
			}
			// Until an empty line comes, a browser takes what follows for more of the event, and tells nobody.
			if accept != "" && (!lines.Scan() || lines.Text() != "") {
				t.Errorf("behind the event %s comes %q", what, lines.Text())
			}
		}
		leave()
		_ = response.Body.Close()
	}
	for path, want := range map[string]int{"/v1/objects:watch?cluster=none": 404, "/v1/objects:watch?filter=1": 400, "/v1/workloads:watch?colour=red": 400} {
		if answer, body := s.call(t, http.MethodGet, path, "", bearing("admin")); answer.StatusCode != want || !strings.Contains(body, `"code"`) {
			t.Errorf("%s: %s %s", path, answer.Status, body)
		}
	}
	if answer, body := s.call(t, http.MethodGet, "/v1/clusters:watch", "", bearing("nobody")); answer.StatusCode != http.StatusForbidden {
		t.Errorf("%s %s", answer.Status, body)
	}
}
