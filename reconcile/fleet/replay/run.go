package replay

import (
	"cmp"
	"slices"
)

// Policy starts and stops instances.
type Policy interface {
	// Act looks at the world, and at what happened since it was asked last. It returns when it wants to be asked again
	// although nothing has happened; zero: only then.
	Act(w *World) (again int64)
}

// Figures are what a run came to.
type Figures struct {
	// Available is the share of time with as many replicas ready as are wanted.
	Available float64 `json:"available"`
	// Missing is the average number of replicas that are missing.
	Missing float64 `json:"missingReplicas"`
	// Cost is a share of what all replicas cost on-demand.
	Cost float64 `json:"costOfAllOnDemand"`
	// OfBound is the cost as a multiple of the clairvoyant bound.
	OfBound   float64 `json:"costOfClairvoyant"`
	Moves     int     `json:"moves"`
	Starts    int     `json:"starts"`
	Evictions int     `json:"evictions"`
	Refusals  int     `json:"refusals"`
}

// warmUp is how long every policy has before it is counted.
const warmUp = 900

// Run runs a policy to the end of a trace. Each watcher is called after each step.
func Run(t Trace, s Setting, p Policy, watch ...func(w *World, until int64)) Figures {
	w := NewWorld(t, s)
	end := int64(t.Samples()) * t.Gap
	var cost, ready, missing, counted float64
	for w.Now < end {
		next := end
		for range 8 {
			stood := len(w.Instances)
			events := len(w.Events)
			again := p.Act(w)
			w.Events = w.Events[:0]
			if s.Refusal == 0 {
				w.Settle()
			}
			if again > w.Now {
				next = min(next, again)
			}
			if stood == len(w.Instances) && events == 0 && len(w.Events) == 0 {
				break
			}
		}
		until := w.Next(next)
		for _, f := range watch {
			f(w, until)
		}
		if long := float64(until - max(w.Now, warmUp)); long > 0 {
			counted += long
			cost += long * w.Bill()
			if lack := s.Replicas - w.Serving(); lack > 0 {
				missing += long * float64(lack)
			} else {
				ready += long
			}
		}
		if until >= end {
			break
		}
		w.Advance(until)
	}
	all := counted * CheapestOnDemand(t, s) * float64(s.Replicas)
	f := Figures{Available: ready / counted, Missing: missing / counted, Cost: cost / all}
	f.OfBound = f.Cost / Bound(t, s)
	f.Moves, f.Starts, f.Evictions, f.Refusals = w.counted.Moves, w.counted.Starts, w.counted.Evictions, w.counted.Refusals
	return f
}

// Bound is what nobody can run all replicas for less than, as a share of all on-demand: at each moment as many on the cheapest
// spot as zones can run for less than on-demand costs, the rest on-demand, and nothing takes time to start.
func Bound(t Trace, s Setting) float64 {
	sum, from := 0.0, int((warmUp+t.Gap-1)/t.Gap)
	onDemand := CheapestOnDemand(t, s)
	w := &World{Setting: s, Trace: t}
	order := make([]int, len(t.Zones))
	for z := range order {
		order[z] = z
	}
	for i := from; i < t.Samples(); i++ {
		w.Now = int64(i) * t.Gap
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(w.SpotPrice(a), w.SpotPrice(b)) })
		left := s.Replicas
		for _, z := range order {
			if price := w.SpotPrice(z); price < onDemand {
				n := min(left, t.Zones[z].Capacity[i])
				left -= n
				sum += price * float64(n)
			}
		}
		sum += onDemand * float64(left)
	}
	return sum / (float64(t.Samples()-from) * onDemand * float64(s.Replicas))
}
