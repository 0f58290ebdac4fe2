package webapp

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
	v1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
)

// was is the status of a WebApp that was last seen with this reason of Ready, and so many pods.
func was(reason string, replicas int32) *v1.WebAppStatus {
	status := &v1.WebAppStatus{Replicas: replicas}
	status.Conditions = []metav1.Condition{{Type: reconcile.ConditionReady, Reason: reason}}
	return status
}

func deployed(want, replicas, updated, available int32, conditions ...appsv1.DeploymentCondition) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	d.Spec.Replicas = &want
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: replicas, UpdatedReplicas: updated, AvailableReplicas: available, Conditions: conditions}
	return d
}

func TestProgressFollowsTheDeployment(t *testing.T) {
	quota := appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "exceeded quota: pods"}
	stuck := appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Message: "timed out"}
	unseen := deployed(3, 3, 3, 3, quota)
	unseen.Generation = 3
	for name, test := range map[string]struct {
		before     *v1.WebAppStatus
		deployment *appsv1.Deployment
		reason     string
		message    string
	}{
		"no pods yet":          {was("", 0), deployed(3, 0, 0, 0), v1.ReasonWaitingForPods, "0 of 3 pods are created"},
		"pods that start":      {was(v1.ReasonWaitingForPods, 3), deployed(3, 3, 3, 1), v1.ReasonWaitingForPods, "1 of 3 pods are available"},
		"all there":            {was(v1.ReasonWaitingForPods, 3), deployed(3, 3, 3, 3), v1.ReasonReady, "3 of 3 pods are available"},
		"none wanted":          {was(v1.ReasonScaling, 1), deployed(0, 0, 0, 0), v1.ReasonReady, "0 of 0 pods are available"},
		"scaled up":            {was(v1.ReasonReady, 3), deployed(5, 3, 3, 3), v1.ReasonScaling, "3 of 5 pods are created"},
		"still scaling up":     {was(v1.ReasonScaling, 5), deployed(5, 5, 5, 3), v1.ReasonScaling, "3 of 5 pods are available"},
		"scaled down":          {was(v1.ReasonReady, 3), deployed(1, 3, 3, 3), v1.ReasonScaling, "2 surplus pods, 1 wanted"},
		"a pod that broke":     {was(v1.ReasonReady, 3), deployed(3, 3, 3, 2), v1.ReasonWaitingForPods, "2 of 3 pods are available"},
		"a rollout":            {was(v1.ReasonReady, 3), deployed(3, 4, 1, 3), v1.ReasonWaitingForPods, "1 of 3 pods are of the new revision"},
		"the end of a rollout": {was(v1.ReasonWaitingForPods, 4), deployed(3, 4, 3, 3), v1.ReasonWaitingForPods, "1 surplus pods, 3 wanted"},
		"a quota":              {was(v1.ReasonReady, 3), deployed(5, 3, 3, 3, quota), v1.ReasonPodsRefused, "exceeded quota: pods"},
		"a rollout that hangs": {was(v1.ReasonReady, 3), deployed(3, 4, 1, 3, stuck), v1.ReasonStuck, "timed out"},
		"a spec not yet seen":  {was(v1.ReasonReady, 3), unseen, v1.ReasonWaitingForPods, "waiting for the Deployment's controller"},
		"replicas by default":  {was("", 0), func() *appsv1.Deployment { d := deployed(1, 1, 1, 1); d.Spec.Replicas = nil; return d }(), v1.ReasonReady, "1 of 1 pods are available"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(Assess(test.deployment, test.before)).To(Equal(Progress{test.reason, test.message}))
		})
	}
}

func TestPlacementIsToldWithItsReason(t *testing.T) {
	asks := func(app *v1.WebApp) { app.Spec.Spot = &v1.Spot{Percentage: new(int32(50))}; app.Status.Replicas = 4 }
	done := report.Workload{State: plan.StateConverged, SpotActual: 2, SpotWanted: 2, OnDemandActual: 2, OnDemandWanted: 2}
	moving := report.Workload{State: plan.StateMoving, Reason: "one is on its way", SpotActual: 1, SpotWanted: 2, OnDemandActual: 3, OnDemandWanted: 2}
	old := report.Workload{State: plan.StateConverged, SpotActual: 1, SpotWanted: 1}
	for name, test := range map[string]struct {
		app            *v1.WebApp
		enabled, known bool
		view           report.Workload
		status         metav1.ConditionStatus
		reason         string
		message        string
		again          bool
	}{
		"not asked for":           {app: shop()},
		"a namespace that is off": {app: shop(asks), status: "False", reason: "NamespaceNotEnabled", message: `namespace eu has no label plimsoll.dev/enabled: "true"`},
		"not looked at yet":       {app: shop(asks), enabled: true, status: "Unknown", reason: "Placing", again: true},
		"moving":                  {app: shop(asks), enabled: true, known: true, view: moving, status: "False", reason: "Moving", message: "1 of 2 replicas on spot capacity, 3 of 2 on on-demand capacity: one is on its way", again: true},
		"done":                    {app: shop(asks), enabled: true, known: true, view: done, status: "True", reason: "Placed"},
		"counted before us":       {app: shop(asks), enabled: true, known: true, view: old, status: "True", reason: "Placed", again: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			conditions := &reconcile.Conditions{}
			again := placed(test.app, conditions, keys, test.enabled, test.view, test.known)
			g.Expect(again > 0).To(Equal(test.again))
			is, ok := conditions.Get(v1.ConditionPlaced)
			g.Expect(ok).To(Equal(test.status != ""))
			g.Expect(is.Status).To(Equal(test.status))
			g.Expect(is.Reason).To(Equal(test.reason))
			g.Expect(is.Message).To(ContainSubstring(test.message))
			if test.known {
				g.Expect(test.app.Status.SpotReplicas).To(HaveValue(BeEquivalentTo(test.view.SpotActual)))
				g.Expect(test.app.Status.OnDemandReplicas).To(HaveValue(BeEquivalentTo(test.view.OnDemandActual)))
			} else {
				g.Expect(test.app.Status.SpotReplicas).To(BeNil())
			}
		})
	}
}
