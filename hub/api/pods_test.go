package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/lists"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
)

// crowd gives the only workload of a replica so many pods, by name, and returns their names.
func (r *replica) crowd(n int) (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.workloads[0].Pods = nil
	for i := range n {
		names = append(names, fmt.Sprintf("cart-%05d", i))
		r.workloads[0].Pods = append(r.workloads[0].Pods, report.Pod{Name: names[i], Slot: i})
	}
	return names
}

// The pods of a workload come page by page, each once, from this replica and from another one that owns the member.
func TestThePodsOfAWorkloadArePaged(t *testing.T) {
	f := newFleet()
	owner, other := f.replica(t, "owner"), f.replica(t, "other")
	for _, r := range []*replica{owner, other} {
		r.member("prod")
	}
	f.give("prod", "owner")
	owner.workload("prod", "shop", "cart")
	names := owner.crowd(1203)
	for asked, r := range map[string]*replica{"the owner": owner, "another replica": other} {
		s := serve(t, r, nil)
		for _, size := range []int{0, 7, 400, 500} {
			request := &plimsollv1.GetWorkloadRequest{Cluster: "prod", Namespace: "shop", Kind: "Deployment", Name: "cart", PageSize: int32(size)}
			var shown []string
			for {
				answer, err := s.workloads().GetWorkload(as(t, "admin"), request)
				if err != nil {
					t.Fatalf("%s, pages of %d: %v", asked, size, err)
				}
				pods := answer.GetWorkload().GetPods()
				if most := lists.PageSize(int32(max(size, 0))); size > 0 && len(pods) > most || len(pods) > lists.MaxPage {
					t.Fatalf("%s, pages of %d: a page of %d", asked, size, len(pods))
				}
				for _, pod := range pods {
					shown = append(shown, pod.GetName())
				}
				if request.PageToken = answer.GetNextPageToken(); request.PageToken == "" {
					break
				}
			}
			if !slices.Equal(shown, names) {
				t.Errorf("%s, pages of %d: %d pods are shown of %d", asked, size, len(shown), len(names))
			}
		}
	}
}

func TestAPageOfPodsIsForItsWorkloadAndItsCallerOnly(t *testing.T) {
	r := shop(t)
	r.crowd(3)
	s := serve(t, r, nil)
	s.give("alice", auth.Access{Verb: verbGet, Resource: resourceWorkloads})
	s.give("bob", auth.Access{Verb: verbGet, Resource: resourceWorkloads})
	request := &plimsollv1.GetWorkloadRequest{Cluster: "prod", Namespace: "shop", Kind: "Deployment", Name: "cart", PageSize: 2}
	first, err := s.workloads().GetWorkload(as(t, "alice"), request)
	if err != nil || first.GetNextPageToken() == "" {
		t.Fatalf("%v, %v", first, err)
	}
	request.PageToken = first.GetNextPageToken()
	if second, err := s.workloads().GetWorkload(as(t, "alice"), request); err != nil || len(second.GetWorkload().GetPods()) != 1 || second.GetNextPageToken() != "" {
		t.Errorf("the second page: %v, %v", second, err)
	}
	of := func(namespace, kind, name, token string) *plimsollv1.GetWorkloadRequest {
		return &plimsollv1.GetWorkloadRequest{Cluster: "prod", Namespace: namespace, Kind: kind, Name: name, PageToken: token}
	}
	for name, c := range map[string]struct {
		who     string
		request *plimsollv1.GetWorkloadRequest
	}{
		"another caller":    {"bob", request},
		"another namespace": {"alice", of("bank", "Deployment", "cart", request.GetPageToken())},
		"another kind":      {"alice", of("shop", "StatefulSet", "cart", request.GetPageToken())},
		"another name":      {"alice", of("shop", "Deployment", "web", request.GetPageToken())},
		"nonsense":          {"alice", of("shop", "Deployment", "cart", "%%%")},
	} {
		if _, err := s.workloads().GetWorkload(as(t, c.who), c.request); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "page_token") {
			t.Errorf("%s: %v", name, err)
		}
	}
	path := "/v1/clusters/prod/namespaces/shop/workloads/Deployment/cart?page_size=2&page_token=" + request.GetPageToken()
	if response, body := s.call(t, http.MethodGet, path, "", bearing("alice")); response.StatusCode != http.StatusOK || strings.Count(body, `"capacityTypeWanted"`) != 1 {
		t.Errorf("over REST: HTTP %d: %s", response.StatusCode, body)
	}
}
