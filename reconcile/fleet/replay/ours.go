package replay

import "github.com/plimsoll-dev/plimsoll/reconcile/fleet"

// ours is fleet.Plan: every zone is a member, and every region a failure domain.
type ours struct {
	extra        int
	availability float64 // zero: the default
	ages         *ages   // nil: what a hub can see
	observer     *observer
	tier         fleet.Tier
	index        map[string]int
}

// Act implements Policy.
func (o *ours) Act(w *World) int64 {
	if o.observer == nil {
		o.observer = newObserver(w)
		o.index = map[string]int{}
		for i, z := range w.Trace.Zones {
			o.tier = append(o.tier, fleet.Choice{Member: z.Name})
			o.index[z.Name] = i
		}
	}
	o.observer.observe(w)
	f := o.observer.fleet(w)
	if o.ages != nil {
		o.ages.look(w)
		o.ages.fill(w, f)
	}
	result := fleet.Plan(f, o.placement(w), at(w.Now))
	for _, m := range result.Moves {
		zone, spot := o.index[m.Member], m.Capacity == fleet.Spot
		for range m.By {
			w.Launch(zone, spot)
		}
		if m.By < 0 {
			w.Stop(zone, spot, -m.By)
		}
	}
	if result.Recheck.IsZero() {
		return 0
	}
	return int64(result.Recheck.Sub(epoch).Seconds())
}

func (o *ours) placement(w *World) *fleet.Placement {
	p := &fleet.Placement{Name: "replay/service", Policy: fleet.Policy{
		Replicas: w.Replicas, SpotPercentage: 100, ExtraSpot: o.extra, Availability: o.availability, Tiers: []fleet.Tier{o.tier}, Pace: fleet.Pace{Moves: w.Replicas},
	}}
	for i, z := range w.Trace.Zones {
		p.Running = append(p.Running, fleet.Running{Member: z.Name, Spot: countOf(w, i, true), OnDemand: countOf(w, i, false)})
	}
	return p
}

func countOf(w *World, zone int, spot bool) fleet.Count {
	return fleet.Count{
		Ready:    w.Count(zone, spot, Ready),
		Starting: w.Count(zone, spot, Starting),
		Waiting:  w.Count(zone, spot, Waiting),
		Leaving:  w.Count(zone, spot, Leaving),
	}
}
