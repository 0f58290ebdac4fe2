package spot

import "time"

// publish tells the API, the metrics and, when the state has changed, the member's Events what the plan said.
func (e *Engine) publish(dir *directory, s *subject, policy *Policy, plan *PlanResult, now time.Time) {
	before, known := dir.view(s.key)
	view := WorkloadView{
		Member: s.member, WorkloadKey: s.key, State: plan.State, Reason: plan.Reason, Policy: *policy, Replicas: s.replicas,
		SpotWanted: plan.SpotWanted, OnDemandWanted: plan.OnDemandWanted, SpotActual: plan.SpotActual,
		OnDemandActual: plan.OnDemandActual, Unassigned: plan.UnknownActual, Pending: plan.Pending,
		NextCheck: plan.Recheck, Planned: now,
	}
	dir.setView(view)
	e.metrics.planned(&view)
	if known && before.State == view.State && before.Reason == view.Reason {
		return
	}
	switch {
	case plan.State == StateInvalid:
		for _, problem := range policy.Problems {
			s.events.Warning("InvalidPolicy", "%s; nothing is moved and new pods go on-demand until it is mended", problem)
		}
	case known && plan.State == StateConverged && before.State != StateConverged:
		s.events.Normal("Converged", "%d replicas on spot, %d on on-demand capacity", plan.SpotActual, plan.OnDemandActual)
	}
}

// forget takes back what was published of a workload that is gone, or not enabled any more.
func (e *Engine) forget(member string, key WorkloadKey) {
	e.metrics.forgetWorkload(member, key)
	if dir := e.directory(member); dir != nil {
		dir.dropView(key)
	}
}
