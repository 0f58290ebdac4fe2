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

// placementRetry is when to look again for counts that do not add up yet: the placer counts pods after us.
const placementRetry = time.Second

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
		return placementRetry
	}
	status.SpotReplicas, status.OnDemandReplicas = new(int32(view.SpotActual)), new(int32(view.OnDemandActual))
	if view.State == plan.StateConverged {
		conditions.True(v1.ConditionPlaced, v1.ReasonPlaced, "%s", placementOf(view))
	} else {
		conditions.False(v1.ConditionPlaced, string(view.State), "%s: %s", placementOf(view), view.Reason)
	}
	if view.State != plan.StateConverged || view.SpotActual+view.OnDemandActual != int(status.Replicas) {
		return placementRetry
	}
	return 0
}

func placementOf(view report.Workload) string {
	return fmt.Sprintf("%d of %d replicas on spot capacity, %d of %d on on-demand capacity",
		view.SpotActual, view.SpotWanted, view.OnDemandActual, view.OnDemandWanted)
}
