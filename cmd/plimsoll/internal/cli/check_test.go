package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

func (h *hub) GetCluster(_ context.Context, request *plimsollv1.GetClusterRequest) (*plimsollv1.GetClusterResponse, error) {
	since := timestamppb.New(now.Add(-2 * time.Hour))
	is := func(kind, value, reason, message string) *plimsollv1.Condition {
		return &plimsollv1.Condition{Type: kind, Status: value, Reason: reason, Message: message, LastTransitionTime: since}
	}
	member := &plimsollv1.Cluster{
		Name: request.GetCluster(), State: plimsollv1.ClusterState_CLUSTER_STATE_READY, Reason: "Ready", Message: "Nothing is missing.",
		Server: "api.prod-eu.example:6443", KubernetesVersion: "v1.36.1", Owner: "10.0.0.1:9444", RegisteredAt: since, LastProbeAt: timestamppb.New(now.Add(-3 * time.Second)),
		StateChangedAt: since, Kinds: []*plimsollv1.ClusterKind{{Name: "apps/v1 Deployment", Engaged: true}, {Name: "plimsoll.dev/v1 WebApp", Reason: "NotFound"}},
		Workloads:  &plimsollv1.WorkloadCounts{Managed: 3, SpotActual: 68, SpotWanted: 70, OnDemandActual: 32, OnDemandWanted: 30},
		Conditions: []*plimsollv1.Condition{is("Reachable", "True", "Ready", ""), is("TokenExpiring", "False", "Valid", ""), is("WebApps", "False", "Missing", "")},
	}
	switch request.GetCluster() {
	case "prod-eu":
	case "prod-us":
		member.Owner = ""
		member.Conditions = append(member.Conditions, is("Webhook", "Unknown", "Unproven", "No dry run\x1b came back."), is("TokenExpiring", "True", "Expiring", "It ends in 2 h."), is("New", "False", "Odd", ""))
	default:
		return nil, status.Errorf(codes.NotFound, "no such member: %q", request.GetCluster())
	}
	return &plimsollv1.GetClusterResponse{Cluster: member, AsOf: timestamppb.New(now)}, nil
}

func TestClusterShowsOneMember(t *testing.T) {
	got := startHub(t).run(t, "cluster", "prod-eu")
	if got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	golden(t, "cluster.golden", got.out)
}

func TestCheckSaysWhatIsWrongAndWhatToDo(t *testing.T) {
	got := startHub(t).run(t, "check", "prod-eu", "prod-us")
	if got.code != exitFailed {
		t.Errorf("exit code %d: %s", got.code, got.err)
	}
	golden(t, "check.golden", got.out)
}

func TestCheckEndsWell(t *testing.T) {
	if got := startHub(t).run(t, "check", "prod-eu"); got.code != exitOK || got.out != "hub: ok\nprod-eu: ok\n" {
		t.Errorf("%+v", got)
	}
}

func TestCheckOfAllMembersFindsThoseThatNobodyActsOn(t *testing.T) {
	got := startHub(t).run(t, "check")
	if got.code != exitFailed || !strings.Contains(got.out, "us: no replica of the hub owns it\n") || !strings.HasPrefix(got.out, "hub: ok\nprod-eu: ok\n") {
		t.Errorf("%+v", got)
	}
}

func TestCheckOfAMemberThatIsNotThereIsAnError(t *testing.T) {
	if got := startHub(t).run(t, "check", "none"); got.code != exitNotFound {
		t.Errorf("%+v", got)
	}
}

func TestCheckFindsAClusterThatIsTooOld(t *testing.T) {
	for kubernetes, want := range map[string]string{
		"v1.29.14": "Kubernetes v1.29.14 is older than 1.30, and has no policies that restrict the hub's account", "v1.30.0": "", "v1.36.1": "", "": "",
	} {
		problems := problemsOf(&plimsollv1.Cluster{Owner: "10.0.0.1:9444", KubernetesVersion: kubernetes})
		if len(problems) == 0 != (want == "") || len(problems) > 0 && (problems[0].what != want || problems[0].remedy == "") {
			t.Errorf("%s: %+v", kubernetes, problems)
		}
	}
}

// Every condition that a member can have has a remedy of its own.
func TestEveryConditionHasARemedy(t *testing.T) {
	for _, kind := range []string{"Accepted", "Reachable", "Warm", "Permitted", "Current", "Separate", "Webhook", "WebApps", "Steering", "TokenExpiring", "Detached"} {
		if expectationOf(kind).remedy == expectationOf("unknown").remedy {
			t.Errorf("condition %s has none", kind)
		}
	}
}
