package hub

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/webhook"
	"github.com/plimsoll-dev/plimsoll/webhook/kinds"
)

type oneMember clusters.Status

func (m oneMember) Synced() bool                          { return true }
func (m oneMember) Statuses() []clusters.Status           { return []clusters.Status{clusters.Status(m)} }
func (m oneMember) Status(string) (clusters.Status, bool) { return clusters.Status(m), true }

func TestAMembersWebhookIsShownByItsOwnerWhileItCanBeKnown(t *testing.T) {
	known := make([]metav1.Condition, 1, 4) // with room, which another snapshot may use
	for name, test := range map[string]struct {
		state  clusters.State
		mine   bool
		reason string
		want   metav1.ConditionStatus // empty: not shown
	}{
		"current":           {clusters.StateReady, true, webhook.ReasonCurrent, metav1.ConditionTrue},
		"missing":           {clusters.StateDegraded, true, webhook.ReasonMissing, metav1.ConditionFalse},
		"failed":            {clusters.StateReady, true, webhook.ReasonFailed, metav1.ConditionFalse},
		"not the owner":     {clusters.StateReady, false, webhook.ReasonMissing, ""},
		"cannot be reached": {clusters.StateUnreachable, true, webhook.ReasonCurrent, ""},
	} {
		members := shownMembers{
			provider:     oneMember{Name: "prod-eu", State: test.state, Conditions: known},
			installation: func(string) webhook.Installation { return webhook.Installation{Reason: test.reason} },
			kinds: func(string) []kindState {
				return []kindState{{"WebApps", webhook.Installation{Reason: kinds.ReasonRefused}}}
			},
			mine: func(string) bool { return test.mine },
		}
		one, _ := members.Status("prod-eu")
		for _, status := range append(members.Statuses(), one) {
			shown := status.Conditions[1:]
			if test.want == "" {
				if len(shown) != 0 {
					t.Errorf("%s: shows %+v", name, shown)
				}
				continue
			}
			if len(shown) != 2 || shown[0].Type != conditionWebhook || shown[0].Status != test.want || shown[0].Reason != test.reason {
				t.Errorf("%s: shows %+v, want %s", name, shown, test.want)
			}
			if shown[1].Type != "WebApps" || shown[1].Status != metav1.ConditionFalse || shown[1].Reason != kinds.ReasonRefused {
				t.Errorf("%s: shows %+v of WebApps", name, shown[1])
			}
		}
		if extra := known[:2][1]; extra.Type != "" {
			t.Errorf("%s: wrote into the snapshot of others", name)
		}
	}
}

func TestARegistrationThatNamesWhatPodsAreSteeredByIsShownAndChecked(t *testing.T) {
	labels, err := capacity.NewLabels()
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]metav1.ConditionStatus{"gke": metav1.ConditionTrue, "openstack": metav1.ConditionFalse} {
		members := shownMembers{checkSteerBy: labels.CheckSteerBy, mine: func(string) bool { return false }, provider: oneMember{
			Registration: clusters.Registration{Annotations: map[string]string{steerByAnnotation: value}}}}
		status, _ := members.Status("prod-eu")
		if len(status.Conditions) != 1 || status.Conditions[0].Type != conditionSteering || status.Conditions[0].Status != want {
			t.Fatalf("%s: shows %+v", value, status.Conditions)
		}
		for _, part := range []string{steerByAnnotation, value} {
			if !strings.Contains(status.Conditions[0].Message, part) {
				t.Errorf("%s is not named in %q", part, status.Conditions[0].Message)
			}
		}
	}
}

func TestMembersShowWhatAPersonMarkedThemAs(t *testing.T) {
	on := map[string]string{clusters.CordonedAnnotation: "maintenance", readOnlyAnnotation: "true"}
	for name, c := range map[string]struct {
		own, shared map[string]string
		want        []string
	}{
		"nothing":      {nil, nil, nil},
		"cordoned":     {map[string]string{clusters.CordonedAnnotation: "true"}, nil, []string{"Cordoned/Registration"}},
		"not any more": {map[string]string{clusters.CordonedAnnotation: "false", readOnlyAnnotation: "false"}, nil, nil},
		"both":         {on, nil, []string{"Cordoned/Registration", "Paused/Registration"}},
		"all clusters": {nil, on, []string{"Cordoned/AllClusters", "Paused/AllClusters"}},
		"it cannot be taken back for one cluster": {map[string]string{readOnlyAnnotation: "false"}, map[string]string{readOnlyAnnotation: "true"},
			[]string{"Paused/AllClusters"}},
	} {
		members := shownMembers{mine: func(string) bool { return false }, namespace: "members", provider: oneMember{
			Registration: clusters.Registration{Namespace: "hub", Annotations: c.own, Shared: c.shared}}} // left behind in the old layout
		status, _ := members.Status("prod-eu")
		var shown []string
		for _, is := range status.Conditions {
			if is.Status != metav1.ConditionTrue || !strings.Contains(is.Message, "annotation plimsoll.dev/") ||
				is.Reason == "AllClusters" && !strings.Contains(is.Message, "in namespace members.") {
				t.Errorf("%s: shows %+v", name, is)
			}
			shown = append(shown, is.Type+"/"+is.Reason)
		}
		if !slices.Equal(shown, c.want) {
			t.Errorf("%s: shows %v, want %v", name, shown, c.want)
		}
	}
}
