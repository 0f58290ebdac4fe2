package api

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile"
)

// services are those of a replica without a server, called by somebody with the given rights.
func (r *replica) services(authorizer auth.Authorizer) *services {
	log := slog.New(slog.DiscardHandler)
	return newServices(&core{
		members: r, workloads: r.lists(), objects: r, ownership: r, events: r.journal, peers: r.fleet,
		rights: access{authorizer: authorizer, log: log}, timeout: time.Minute, stopping: context.Background(), log: log,
	})
}

// anyFleet is a fleet with members on two replicas, some without an owner or with one that is dead. asked knows them all;
// each owner knows its workloads.
func anyFleet(rt *rapid.T, t *testing.T) (asked *replica, reachable []string) {
	f := newFleet()
	asked = f.replica(t, "a")
	other, dead := f.replica(t, "b"), f.replica(t, "dead")
	dead.peer = nil
	for i := range rapid.IntRange(0, 40).Draw(rt, "members") {
		name := fmt.Sprintf("m%d", i)
		asked.member(name)
		owner := rapid.SampledFrom([]*replica{asked, asked, other, other, dead, nil}).Draw(rt, "owner")
		if owner == nil {
			continue
		}
		owner.member(name)
		f.give(name, owner.address)
		if owner != dead {
			reachable = append(reachable, name)
		}
		for j := range rapid.IntRange(0, 6).Draw(rt, "workloads") {
			owner.workload(name, rapid.SampledFrom([]string{"shop", "a-b", "ab", "z"}).Draw(rt, "namespace"), fmt.Sprintf("w%d", j))
		}
	}
	return asked, reachable
}

// some is an Authorizer that allows these members.
type some map[string]bool

func (s some) Allowed(_ context.Context, _ auth.Identity, needs auth.Access) (bool, error) {
	return s[needs.Member], nil
}

func TestPagesOfWorkloadsPutTogetherAreTheWholeList(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		asked, reachable := anyFleet(rt, t)
		namespace := rapid.SampledFrom([]string{"", "shop"}).Draw(rt, "filter")
		authorizer, allowed := drawAuthorizer(rt, asked)
		var want []string
		for _, r := range asked.fleet.replicas {
			for _, view := range r.workloads {
				if slices.Contains(reachable, view.Member) && allowed(view.Member) && (namespace == "" || namespace == view.Namespace) {
					want = append(want, keyOfWorkload(workloadMessage(&view, then)))
				}
			}
		}
		slices.Sort(want)
		var missing []string
		for name := range asked.statuses {
			if !slices.Contains(reachable, name) && allowed(name) {
				missing = append(missing, name)
			}
		}
		slices.Sort(missing)

		got, unreachable, err := allWorkloads(rt, asked.services(authorizer), namespace)
		if err != nil {
			if status.Code(err) == codes.PermissionDenied && len(want)+len(missing) == 0 {
				return
			}
			rt.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Errorf("workloads (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(missing, unreachable); diff != "" {
			rt.Errorf("unreachable members, each once (-want +got):\n%s", diff)
		}
	})
}

// drawAuthorizer lets the caller see everything, or some members.
func drawAuthorizer(rt *rapid.T, asked *replica) (auth.Authorizer, func(string) bool) {
	if rapid.Bool().Draw(rt, "sees all") {
		return everything{}, func(string) bool { return true }
	}
	visible := some{}
	for _, name := range slices.Sorted(maps.Keys(asked.statuses)) {
		visible[name] = rapid.Bool().Draw(rt, "sees "+name)
	}
	return visible, func(name string) bool { return visible[name] }
}

// keyOfWorkload sorts as the list does.
func keyOfWorkload(w *plimsollv1.Workload) string {
	return w.GetCluster() + "\x00" + w.GetNamespace() + "\x00" + w.GetKind() + "\x00" + w.GetName()
}

func allWorkloads(rt *rapid.T, s *services, namespace string) (keys, unreachable []string, err error) {
	for token := ""; ; {
		size := rapid.IntRange(1, 7).Draw(rt, "size")
		page, err := s.workloads.ListWorkloads(context.Background(), &plimsollv1.ListWorkloadsRequest{
			Namespace: namespace, PageSize: int32(size), PageToken: token,
		})
		if err != nil {
			return nil, nil, err
		}
		if len(page.GetWorkloads()) > size {
			rt.Fatalf("a page of %d has %d items", size, len(page.GetWorkloads()))
		}
		for _, w := range page.GetWorkloads() {
			keys = append(keys, keyOfWorkload(w))
		}
		for _, u := range page.GetUnreachable() {
			unreachable = append(unreachable, u.GetMember())
		}
		if token = page.GetNextPageToken(); token == "" {
			return keys, unreachable, nil
		}
		if page.GetAsOf() == nil {
			rt.Fatal("as_of is missing")
		}
	}
}

func TestPagesOfClustersPutTogetherAreTheWholeList(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		asked, _ := anyFleet(rt, t)
		authorizer, allowed := drawAuthorizer(rt, asked)
		var want []string
		for name := range asked.statuses {
			if allowed(name) {
				want = append(want, name)
			}
		}
		slices.Sort(want)
		var got []string
		for token := ""; ; {
			page, err := asked.services(authorizer).clusters.ListClusters(context.Background(), &plimsollv1.ListClustersRequest{
				PageSize: int32(rapid.IntRange(1, 9).Draw(rt, "size")), PageToken: token,
			})
			if status.Code(err) == codes.PermissionDenied && len(want) == 0 {
				return
			}
			if err != nil {
				rt.Fatal(err)
			}
			for _, c := range page.GetClusters() {
				got = append(got, c.GetName())
			}
			if token = page.GetNextPageToken(); token == "" {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Errorf("clusters (-want +got):\n%s", diff)
		}
	})
}

func TestAListThatChangesWhileItIsReadRepeatsNothingAndLosesNothingThatStays(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := newFleet()
		r := f.replica(t, "a")
		stays := map[string]bool{}
		add := func(stay bool) {
			name := fmt.Sprintf("w%d", rapid.IntRange(0, 1_000_000).Draw(rt, "name"))
			member := rapid.SampledFrom([]string{"m1", "m2"}).Draw(rt, "member")
			key := member + "\x00shop\x00Deployment\x00" + name
			if _, known := stays[key]; !known {
				stays[key] = stay
				r.workload(member, "shop", name)
			}
		}
		for _, member := range []string{"m1", "m2"} {
			r.member(member)
			f.give(member, "a")
		}
		for range rapid.IntRange(0, 20).Draw(rt, "at first") {
			add(rapid.Bool().Draw(rt, "stays"))
		}
		seen, token := map[string]bool{}, ""
		for first := true; first || token != ""; first = false {
			page, err := r.services(everything{}).workloads.ListWorkloads(context.Background(), &plimsollv1.ListWorkloadsRequest{
				PageSize: int32(rapid.IntRange(1, 5).Draw(rt, "size")), PageToken: token,
			})
			if err != nil {
				rt.Fatal(err)
			}
			for _, w := range page.GetWorkloads() {
				if seen[keyOfWorkload(w)] {
					rt.Fatalf("%q came twice", keyOfWorkload(w))
				}
				seen[keyOfWorkload(w)] = true
			}
			token = page.GetNextPageToken()
			r.drop(rt, stays)
			if rapid.Bool().Draw(rt, "one more") {
				add(false)
			}
		}
		for key, stay := range stays {
			if stay && !seen[key] {
				rt.Errorf("%q was lost", key)
			}
		}
	})
}

// drop removes a workload that need not stay.
func (r *replica) drop(rt *rapid.T, stays map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.workloads {
		if key := keyOfWorkload(workloadMessage(&r.workloads[i], then)); !stays[key] && rapid.Bool().Draw(rt, "drop") {
			r.workloads = slices.Delete(r.workloads, i, i+1)
			return
		}
	}
}

func TestAPageTokenWorksOnlyForTheListItWasMadeFor(t *testing.T) {
	r := newFleet().replica(t, "a")
	for _, member := range []string{"m1", "m2"} {
		r.member(member)
		r.fleet.give(member, "a")
		r.workload(member, "shop", "w1")
		r.workload(member, "shop", "w2")
	}
	s := r.services(everything{})
	list := func(request *plimsollv1.ListWorkloadsRequest) (*plimsollv1.ListWorkloadsResponse, error) {
		return s.workloads.ListWorkloads(t.Context(), request)
	}
	first, err := list(&plimsollv1.ListWorkloadsRequest{Namespace: "shop", PageSize: 1})
	if err != nil || first.GetNextPageToken() == "" {
		t.Fatalf("%v, %v", first, err)
	}
	token := first.GetNextPageToken()
	if _, err := list(&plimsollv1.ListWorkloadsRequest{Namespace: "shop", PageToken: token, PageSize: 3}); err != nil {
		t.Errorf("with another size: %v", err)
	}
	for name, request := range map[string]*plimsollv1.ListWorkloadsRequest{
		"without the filter":  {PageToken: token},
		"another namespace":   {PageToken: token, Namespace: "shops"},
		"with a cluster":      {PageToken: token, Namespace: "shop", Cluster: "m1"},
		"filters that shift":  {PageToken: token, Cluster: "shop"},
		"cut short":           {PageToken: token[:len(token)-1], Namespace: "shop"},
		"of another encoding": {PageToken: token + "=", Namespace: "shop"},
		"nonsense":            {PageToken: "%", Namespace: "shop"},
		"JSON of another":     {PageToken: "e30", Namespace: "shop"},
	} {
		if _, err := list(request); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v, want INVALID_ARGUMENT", name, err)
		}
	}
	if _, err := s.clusters.ListClusters(t.Context(), &plimsollv1.ListClustersRequest{PageToken: token}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("for clusters: %v, want INVALID_ARGUMENT", err)
	}
}

// Whoever has a client as it comes reads lists whose items are large: a page is shorter then, and nothing is missing.
func TestAPageIsNoLargerThanClientsTake(t *testing.T) {
	first, second := ledgers(t)
	var all []string
	for member, owner := range map[string]*replica{"dev": first, "prod": first, "test": second} {
		for i := range 3 {
			key := reconcile.Key{Member: member, Controller: "large"}
			key.Namespace, key.Name = "shop", fmt.Sprintf("o%d", i)
			owner.records[key] = reconcile.Record{Key: key, State: reconcile.StateIdle, Attempts: i, LastError: strings.Repeat("x", 1<<20)}
			all = append(all, member+"/"+key.Name)
		}
	}
	slices.Sort(all)
	s := serve(t, first, func(o *Options) { o.OwnerTimeout = time.Minute })
	for _, order := range []string{"", "attempts desc"} {
		var listed []string
		request := &plimsollv1.ListObjectsRequest{Controller: "large", PageSize: 500, OrderBy: order}
		for {
			answer, err := s.objects().ListObjects(as(t, "admin"), request)
			if err != nil {
				t.Fatalf("ordered by %q: %v", order, err)
			}
			for _, o := range answer.GetObjects() {
				listed = append(listed, o.GetKey().GetCluster()+"/"+o.GetKey().GetName())
			}
			if request.PageToken = answer.GetNextPageToken(); request.PageToken == "" {
				break
			}
		}
		if slices.Sort(listed); !slices.Equal(listed, all) {
			t.Errorf("ordered by %q: %v, want %v", order, listed, all)
		}
	}
}

func TestAPageHas100ItemsUnlessAsked(t *testing.T) {
	r := newFleet().replica(t, "a")
	r.member("m")
	r.fleet.give("m", "a")
	for i := range 600 {
		r.workload("m", "shop", fmt.Sprintf("w%04d", i))
	}
	for asked, want := range map[int32]int{0: 100, 1: 1, 500: 500} {
		page, err := r.services(everything{}).workloads.ListWorkloads(t.Context(), &plimsollv1.ListWorkloadsRequest{PageSize: asked})
		if err != nil || len(page.GetWorkloads()) != want {
			t.Errorf("page_size %d: %d items, %v; want %d", asked, len(page.GetWorkloads()), err, want)
		}
	}
}

// TestWhoSeesFewOfManyMembersGetsShortPages: asking about each member is bounded per call, and the rest comes with the
// next page.
func TestWhoSeesFewOfManyMembersGetsShortPages(t *testing.T) {
	r := newFleet().replica(t, "a")
	for i := range 3 * maxChecks {
		name := fmt.Sprintf("m%05d", i)
		r.member(name)
		r.fleet.give(name, "a")
		r.workload(name, "shop", "w")
	}
	last := fmt.Sprintf("m%05d", 3*maxChecks-1)
	authorizer := &people{rights: map[string][]auth.Access{"": {{Verb: "list", Resource: "workloads", Member: last}}}}
	s := r.services(authorizer)
	var got []string
	for token := ""; ; {
		before := authorizer.reviews
		page, err := s.workloads.ListWorkloads(t.Context(), &plimsollv1.ListWorkloadsRequest{PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		if asked := authorizer.reviews - before; asked > maxChecks+window+1 {
			t.Fatalf("one call asked %d times", asked)
		}
		for _, w := range page.GetWorkloads() {
			got = append(got, w.GetCluster())
		}
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	if diff := cmp.Diff([]string{last}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
