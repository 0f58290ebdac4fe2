package plan

// movable returns the owner whose replicas may be moved: the only one or, where a rollout is stalled, the one with the most
// replicas, of which only the floor is restored. Nil: a rollout is under way, or there are no replicas.
func (pl *planner) movable() (o *ownerPods, stalled bool) {
	o = pl.sole()
	atRest := o != nil && !pl.Rolling && o.Replicas == pl.Replicas
	if atRest || !pl.stalledRollout() {
		return o, false
	}
	for i := range pl.owners {
		if candidate := &pl.owners[i]; o == nil || candidate.Replicas > o.Replicas {
			o = candidate
		}
	}
	return o, o != nil
}

// stalledRollout reports whether nothing comes of a rollout: its controller says so, or its ReplicaSets share the replicas and none
// of them has made a pod by itself for a while. A rollout that somebody paused half-way is stalled. Of a StatefulSet
// none is: what it makes again there could be of the revision that does not work.
func (pl *planner) stalledRollout() bool {
	if pl.Ordinals || pl.Stalled {
		return pl.Stalled && !pl.Ordinals
	}
	working := 0
	for i := range pl.owners {
		o := &pl.owners[i]
		if o.Replicas == 0 {
			continue
		}
		working++
		if len(o.alive)+len(o.interrupted) == 0 {
			return false
		}
		for _, pod := range o.alive {
			if until := pod.Created.Add(stalledAfter); !pod.Moved && pl.now.Before(until) {
				pl.recheck(until)
				return false
			}
		}
	}
	return working > 1
}

// withoutOwner is for workloads of several ReplicaSets, or of none.
func (pl *planner) withoutOwner() {
	switch {
	case pl.Replicas == 0:
		pl.state(StateConverged, "the workload is scaled to zero")
	case pl.result.SpotActual > pl.result.SpotWanted:
		pl.state(StateWaiting, "replicas are moved after the rollout; new replicas are placed at admission")
		pl.wait(Wait{Kind: WaitRollout, Replicas: pl.result.SpotActual - pl.result.SpotWanted}, "the rollout is in progress")
	default:
		pl.state(StateMoving, "a rollout is in progress; new replicas are placed at admission")
	}
}
