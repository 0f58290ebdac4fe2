package api

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

func TestAWorkloadThatIsNotEnabledIsAnsweredWithTheLabelThatIsMissing(t *testing.T) {
	const label, reason = "plimsoll.dev/enabled", "Deployment shop/web does not have the label plimsoll.dev/enabled=true"
	for name, c := range map[string]struct {
		why     spot.NotEnabled
		missing string
	}{
		"on the workload":  {spot.NotEnabled{Label: label, Workload: true, Reason: reason}, "workload"},
		"on the namespace": {spot.NotEnabled{Label: label, Namespace: true, Reason: reason}, "namespace"},
		"on both":          {spot.NotEnabled{Label: label, Workload: true, Namespace: true, Reason: reason}, "workload,namespace"},
	} {
		r := shop(t)
		key := workloadKey("shop", "Deployment", "web")
		r.notEnabled = map[policy.WorkloadKey]spot.NotEnabled{key: c.why}
		s := serve(t, r, nil)
		_, get := s.workloads().GetWorkload(as(t, "admin"), &plimsollv1.GetWorkloadRequest{Cluster: "prod", Namespace: "shop", Kind: "Deployment", Name: "web"})
		_, whatIf := s.workloads().WhatIf(as(t, "admin"), &plimsollv1.WhatIfRequest{Cluster: "prod", Namespace: "shop", Kind: "Deployment", Name: "web"})
		for _, err := range []error{get, whatIf} {
			is := status.Convert(err)
			if is.Code() != codes.NotFound || is.Message() != `member "prod": Deployment shop/web is not enabled for spot placement: `+reason {
				t.Errorf("%s: %v", name, err)
			}
			var info *errdetails.ErrorInfo
			for _, detail := range is.Details() {
				info, _ = detail.(*errdetails.ErrorInfo)
			}
			if diff := cmp.Diff(map[string]string{"label": label, "missing_on": c.missing}, info.GetMetadata()); diff != "" || info.GetReason() != reasonNotEnabled {
				t.Errorf("%s: reason %q, %s", name, info.GetReason(), diff)
			}
		}
	}
}

func TestWhatAMemberAnswersToTheQuestionWhyIsNotForCallers(t *testing.T) {
	r := shop(t)
	key := workloadKey("shop", "Deployment", "web")
	r.notEnabled, r.unreadable = map[policy.WorkloadKey]spot.NotEnabled{key: {}}, errors.New("secret of the member")
	_, err := serve(t, r, nil).workloads().GetWorkload(as(t, "admin"), &plimsollv1.GetWorkloadRequest{Cluster: "prod", Namespace: "shop", Kind: "Deployment", Name: "web"})
	if want := `member "prod": no Deployment shop/web is enabled for spot placement`; status.Code(err) != codes.NotFound || status.Convert(err).Message() != want {
		t.Errorf("%v", err)
	}
}
