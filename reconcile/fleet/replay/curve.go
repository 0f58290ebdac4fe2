package replay

import "math"

// curvePoints is how many points a curve has: more cannot be distinguished in a plot.
const curvePoints = 1500

// Curve is what a run looked like over time. Each point represents an equal part of it.
type Curve struct {
	Name string
	// Ready is the smallest number of replicas that were ready; above that are spells too short to be seen otherwise.
	Ready []float64
	// Cost is the average cost, as a share of what all replicas cost on-demand.
	Cost []float64

	// Part is how many seconds a point represents.
	Part float64

	all float64
}

func newCurve(name string, t Trace, s Setting) *Curve {
	n := min(curvePoints, t.Samples())
	c := &Curve{
		Name: name, Ready: make([]float64, n), Cost: make([]float64, n),
		Part: float64(int64(t.Samples())*t.Gap) / float64(n),
		all:  CheapestOnDemand(t, s) * float64(s.Replicas),
	}
	for i := range c.Ready {
		c.Ready[i] = math.Inf(1)
	}
	return c
}

// watch adds the time until the next step.
func (c *Curve) watch(w *World, until int64) {
	from, to := float64(w.Now), float64(until)
	ready, cost := float64(w.Serving()), w.Bill()/c.all
	for i := int(from / c.Part); i < len(c.Ready) && float64(i)*c.Part < to; i++ {
		begin, end := max(from, float64(i)*c.Part), min(to, float64(i+1)*c.Part)
		if end > begin {
			c.Ready[i] = min(c.Ready[i], ready)
			c.Cost[i] += cost * (end - begin) / c.Part
		}
	}
}
