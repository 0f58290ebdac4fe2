package webapp

import (
	"fmt"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
	v1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
)

const (
	// placementRecheck is when to look again for what is under way at the latest. The placer's news come earlier.
	placementRecheck = time.Minute
	// planRetry is when to look again at first for a plan that there is none of, which the placer may have made before it saw the
	// Deployment; each pause is as long as all before it.
	planRetry = time.Second
)

// placed writes into the WebApp where its replicas are, and returns when to look again; 0: when something changes. enabled
// reports whether its namespace has the label that placement needs.
func placed(app *v1.WebApp, conditions *reconcile.Conditions, keys policy.Keys, enabled bool, view report.Workload, known bool) time.Duration {
	status := &app.Status
	status.SpotReplicas, status.OnDemandReplicas = nil, nil
	switch {
	case app.Spec.Spot == nil:
		conditions.Remove(v1.ConditionPlaced)
		return 0
	case !enabled:
		conditions.False(v1.ConditionPlaced, v1.ReasonNamespaceNotEnabled,
			"namespace %s has no label %s: \"true\", so the hub places nothing in it", app.Namespace, keys.Enabled())
		return 0
	case !known:
		conditions.Unknown(v1.ConditionPlaced, v1.ReasonPlacing, "placement has not planned the Deployment yet")
		return untilPlanned(conditions)
	}
	status.SpotReplicas, status.OnDemandReplicas = new(int32(view.SpotActual)), new(int32(view.OnDemandActual))
	if view.State == plan.StateConverged {
		conditions.True(v1.ConditionPlaced, v1.ReasonPlaced, "%s", placementOf(view))
	} else {
		conditions.False(v1.ConditionPlaced, string(view.State), "%s: %s", placementOf(view), view.Reason)
	}
	if view.State != plan.StateConverged || view.SpotActual+view.OnDemandActual != int(status.Replicas) {
		return placementRecheck // also for counts that do not add up yet: the placer counts pods after us
	}
	return 0
}

// untilPlanned is when to look for a plan again. There may never be one, for a namespace where the hub is not to place anything.
func untilPlanned(conditions *reconcile.Conditions) time.Duration {
	waiting, _ := conditions.Get(v1.ConditionPlaced)
	waited := time.Since(waiting.LastTransitionTime.Time)
	if waited < 0 { // written by somebody with another clock
		return placementRecheck
	}
	return min(max(waited, planRetry), placementRecheck)
}

func placementOf(view report.Workload) string {
	return fmt.Sprintf("%d of %d replicas on spot capacity, %d of %d on on-demand capacity",
		view.SpotActual, view.SpotWanted, view.OnDemandActual, view.OnDemandWanted)
}
