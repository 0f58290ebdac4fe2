package replay

import (
	"cmp"
	"math"
	"slices"
)

// Setting are the parameters of a run: what is asked for, and how the world is.
type Setting struct {
	Replicas int     `json:"replicas"`
	Ratio    float64 `json:"onDemandPriceInSpotPrices"`
	// Start, Notice and Refusal in seconds: from asking for a replica to its being ready; from the notice to the end of a spot
	// instance; from asking for a spot instance to knowing that there is none.
	Start   int64 `json:"startSeconds"`
	Notice  int64 `json:"noticeSeconds"`
	Refusal int64 `json:"refusalSeconds"`
}

// State is how far an instance is.
type State int

// The states of an instance.
const (
	Waiting  State = iota // nobody knows whether there is a node
	Starting              // it has a node
	Ready
	Leaving // it got its notice
)

// Instance is one replica.
type Instance struct {
	Zone    int
	Spot    bool
	State   State
	Asked   int64
	refused bool
	serves  bool
	ends    int64 // when a leaving one is gone
}

// Event is what a policy sees.
type Event struct {
	Kind Kind
	Zone int
	Spot bool
	Took int64 // of a start, in seconds
}

// Kind says what happened to an instance.
type Kind int

// What happens to instances.
const (
	Refused Kind = iota // there was no capacity
	Granted             // it has a node
	Served              // it is ready
	Noticed             // it will be taken back, or was
)

// World is the simulated fleet. On-demand capacity is always there.
type World struct {
	Setting
	Trace     Trace
	Now       int64
	Instances []*Instance
	Events    []Event // since the policy was asked last
	capacity  []int
	counted   Counted
}

// Counted is what a run counts.
type Counted struct {
	Starts, Moves, Evictions, Refusals int
}

// NewWorld returns the world at the start of a trace, with nothing running.
func NewWorld(t Trace, s Setting) *World {
	w := &World{Setting: s, Trace: t, capacity: make([]int, len(t.Zones))}
	for i := range t.Zones {
		w.capacity[i] = t.Zones[i].Capacity[0]
	}
	return w
}

// Launch asks for an instance.
func (w *World) Launch(zone int, spot bool) {
	i := &Instance{Zone: zone, Spot: spot, Asked: w.Now}
	if spot {
		i.refused = w.Count(zone, true, Waiting, Starting, Ready) >= w.capacity[zone]
	} else {
		i.State = Starting
		w.counted.Starts++
	}
	w.Instances = append(w.Instances, i)
}

// Stop takes n instances away: those first that are the least far, and of those the youngest.
func (w *World) Stop(zone int, spot bool, n int) {
	var found []*Instance
	for _, i := range w.Instances {
		if i.Zone == zone && i.Spot == spot && i.State != Leaving {
			found = append(found, i)
		}
	}
	slices.SortStableFunc(found, func(a, b *Instance) int { return cmp.Or(cmp.Compare(a.State, b.State), cmp.Compare(b.Asked, a.Asked)) })
	for _, i := range found[:min(n, len(found))] {
		if i.State == Ready {
			w.counted.Moves++
		}
		w.remove(i)
	}
}

// Count counts the instances of a zone, of one type and any of the states; a zone below zero is all of them.
func (w *World) Count(zone int, spot bool, states ...State) int {
	n := 0
	for _, i := range w.Instances {
		if (zone < 0 || i.Zone == zone) && i.Spot == spot && slices.Contains(states, i.State) {
			n++
		}
	}
	return n
}

// Serving counts the replicas that are ready, those that are about to go included.
func (w *World) Serving() int {
	n := 0
	for _, i := range w.Instances {
		if i.serves {
			n++
		}
	}
	return n
}

// SpotPrice is what a spot replica of a zone costs now, 1 where no prices were recorded.
func (w *World) SpotPrice(zone int) float64 {
	prices := w.Trace.Zones[zone].Prices
	if prices == nil {
		return 1
	}
	return prices[min(int(w.Now/w.Trace.Gap), len(prices)-1)]
}

// OnDemandPrice is what an on-demand replica of a zone costs.
func (w *World) OnDemandPrice(zone int) float64 { return onDemandPrice(&w.Trace.Zones[zone], w.Ratio) }

func onDemandPrice(z *Zone, ratio float64) float64 {
	if z.OnDemand > 0 {
		return z.OnDemand
	}
	return ratio
}

// CheapestOnDemand is what a replica costs where on-demand costs the least.
func CheapestOnDemand(t Trace, s Setting) float64 {
	least := math.Inf(1)
	for i := range t.Zones {
		least = min(least, onDemandPrice(&t.Zones[i], s.Ratio))
	}
	return least
}

// Bill is what the fleet costs a second, in the unit of the prices. What was refused costs nothing.
func (w *World) Bill() float64 {
	sum := 0.0
	for _, i := range w.Instances {
		switch {
		case !i.Spot:
			sum += w.OnDemandPrice(i.Zone)
		case !i.refused:
			sum += w.SpotPrice(i.Zone)
		}
	}
	return sum
}

func (w *World) remove(gone *Instance) {
	w.Instances = slices.DeleteFunc(w.Instances, func(i *Instance) bool { return i == gone })
}

func (w *World) announce(k Kind, i *Instance) {
	w.Events = append(w.Events, Event{Kind: k, Zone: i.Zone, Spot: i.Spot, Took: w.Now - i.Asked})
}
