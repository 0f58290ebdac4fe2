package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

func TestAReadMaskLeavesOutAllOtherFields(t *testing.T) {
	s := serve(t, shop(t), nil)
	only := func(paths ...string) *fieldmaskpb.FieldMask { return &fieldmaskpb.FieldMask{Paths: paths} }
	listed, err := s.workloads().ListWorkloads(as(t, "admin"), &plimsollv1.ListWorkloadsRequest{ReadMask: only("name", "placement.replicas", "placement.spotWanted")})
	want := &plimsollv1.Workload{Name: "cart", Placement: &plimsollv1.Placement{Replicas: 10, SpotWanted: 7}}
	if err != nil || len(listed.GetWorkloads()) != 1 || !proto.Equal(listed.GetWorkloads()[0], want) || listed.GetAsOf() == nil {
		t.Errorf("%v, %v, want %v", listed, err, want)
	}
	got, err := s.workloads().GetWorkload(as(t, "admin"), &plimsollv1.GetWorkloadRequest{
		Cluster: "prod", Namespace: "shop", Kind: "Deployment", Name: "cart", ReadMask: only("pods.name", "pods", "pods.slot"),
	})
	if err != nil || len(got.GetWorkload().GetPods()) != 2 || got.GetWorkload().GetName() != "" || !got.GetWorkload().GetPods()[0].GetReady() {
		t.Errorf("%v, %v", got, err)
	}
	got, err = s.workloads().GetWorkload(as(t, "admin"), &plimsollv1.GetWorkloadRequest{
		Cluster: "prod", Namespace: "shop", Kind: "Deployment", Name: "cart", ReadMask: only("pods.name"),
	})
	if err != nil || got.GetWorkload().GetPods()[0].GetName() != "cart-0" || got.GetWorkload().GetPods()[0].GetReady() {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"namee", "name.x", "placement.", "", ".", "placement.replicas.x"} {
		if _, err := s.workloads().ListWorkloads(as(t, "admin"), &plimsollv1.ListWorkloadsRequest{ReadMask: only(bad)}); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for n, want := range map[int]codes.Code{64: codes.OK, 65: codes.InvalidArgument} { // what a mask costs is bounded
		many := only(slices.Repeat([]string{"name"}, n)...)
		if _, err := s.workloads().ListWorkloads(as(t, "admin"), &plimsollv1.ListWorkloadsRequest{ReadMask: many}); status.Code(err) != want {
			t.Errorf("%d fields: %v, want %s", n, err, want)
		}
	}
	response, body := s.call(t, http.MethodGet, "/v1/clusters?readMask=name,state", "", bearing("admin"))
	if response.StatusCode != http.StatusOK || !strings.Contains(body, `"CLUSTER_STATE_READY"`) || strings.Contains(body, "v1.36.1") {
		t.Errorf("%s %s", response.Status, body)
	}
}

// A mask shows nothing that the caller may not see otherwise: a page goes on as without it.
func TestPagesGoOnWithoutTheFieldsThatAreLeftOut(t *testing.T) {
	r := shop(t)
	for _, name := range []string{"a", "b", "c"} {
		r.workload("prod", "shop", name)
	}
	s := serve(t, r, nil)
	request := &plimsollv1.ListWorkloadsRequest{PageSize: 1, ReadMask: &fieldmaskpb.FieldMask{Paths: []string{"state"}}}
	for pages := 1; ; pages++ {
		answer, err := s.workloads().ListWorkloads(as(t, "admin"), request)
		if err != nil || pages > 4 {
			t.Fatalf("page %d: %v", pages, err)
		}
		if request.PageToken = answer.GetNextPageToken(); request.PageToken == "" {
			if pages != 4 {
				t.Errorf("%d pages of 4", pages)
			}
			return
		}
	}
}
