package plan

import "time"

// shut reports whether the workload has a disruption window, and it is not open. One that cannot be read never is.
func (pl *planner) shut() bool {
	return pl.policy.WindowInvalid || (pl.policy.Window != nil && !pl.policy.Window.Contains(pl.now))
}

// closing reports whether the disruption window shuts so soon that the replacement of a pod that is released now might come too late.
func (pl *planner) closing() bool {
	w := pl.policy.Window
	return w != nil && !w.OpenFor(pl.now, min(w.Duration/4, StuckAfter))
}

func (pl *planner) waitWindow(replicas int) {
	if pl.policy.WindowInvalid {
		pl.wait(Wait{Kind: WaitWindow, Replicas: replicas}, "the disruption window is invalid and counts as closed")
		return
	}
	opens := pl.policy.Window.Next(pl.now)
	pl.wait(Wait{Kind: WaitWindow, Replicas: replicas, Until: opens}, "the disruption window opens at %s", opens.UTC().Format(time.RFC3339))
	pl.recheck(opens)
}
