package replay

import (
	"cmp"
	"math"
	"slices"
)

// What Foretold tries, to take the best in hindsight: the weight of a moment with replicas missing, in replicas on spot for as long;
// how often a loss takes all of a region; and how far predictions differ from each other.
var (
	foretoldWeights  = []float64{400, 600, 900, 1300, 1900, 2800, 4000, 5600, 8000}
	foretoldTogether = []float64{0.01, 0.03, 0.1}
	foretoldContrast = []float64{0.7, 1}
)

// Names of rows.
const (
	foretoldAvailable = "losses foretold, at 0.8 times the cost"
	foretoldCheap     = "losses foretold, as available"
)

// Foretold is what more knowledge than a policy can have comes to beside SpotHedge with two extra, whose row is in the table: the most
// available at 0.8 times its cost, and the cheapest that is as available. At every sample all capacity is known, replicas move at once and for nothing, and each zone's
// next loss is as likely as losses in this very trace were under the same signs. What no sign foretells is not known.
//
// It is for zones that run one replica at most, and for replicas that are late by a sample at least: then each must have been asked for
// before what happens is known. Of other traces it says nothing.
func Foretold(t Trace, s Setting, table []Row) []Row {
	at := slices.IndexFunc(table, func(r Row) bool { return r.Policy == Hedge2 })
	if at < 0 || !foretellable(t, s) {
		return nil
	}
	other := table[at].Figures
	seen := foretell(t)
	var available, cheap *Figures
	for _, weight := range foretoldWeights {
		for _, together := range foretoldTogether {
			for _, contrast := range foretoldContrast {
				c := chooser{replicas: s.Replicas, ratio: s.Ratio, weight: weight, together: together}
				f := c.run(t, seen, contrast)
				if f.Cost <= 0.8*other.Cost && (available == nil || f.Available > available.Available) {
					available = &f
				}
				if f.Available >= other.Available && (cheap == nil || f.Cost < cheap.Cost) {
					cheap = &f
				}
			}
		}
	}
	var rows []Row
	add := func(name string, f *Figures) {
		if f != nil {
			f.OfBound = f.Cost / Bound(t, s)
			rows = append(rows, Row{Trace: t.Name, Setting: s, Policy: name, Figures: *f})
		}
	}
	add(foretoldAvailable, available)
	add(foretoldCheap, cheap)
	return rows
}

func foretellable(t Trace, s Setting) bool {
	for z := range t.Zones {
		if t.Zones[z].Prices != nil || slices.Max(t.Zones[z].Capacity) > 1 {
			return false
		}
	}
	return s.Start-s.Notice >= t.Gap
}

// chooser selects what runs while a sample lasts, so that the cost and the weighted risk that replicas are missing in the next one are
// the least.
type chooser struct {
	replicas                int
	ratio, weight, together float64

	regions [][]risk // of zones with capacity, the lowest risk first
	least   float64
	best    []int // zones taken in each region
	spare   int   // on-demand
	taken   []int
}

// risk is how likely a zone has lost its capacity at the next sample.
type risk struct {
	zone int
	lost float64
}

// run chooses for each sample and counts what came of it.
func (c *chooser) run(t Trace, seen [][]float64, contrast float64) (f Figures) {
	regions := map[string]int{}
	for _, z := range t.Zones {
		if _, known := regions[z.Region]; !known {
			regions[z.Region] = len(regions)
		}
	}
	mean := meanOf(seen)
	samples := t.Samples()
	for k := 1; k < samples; k++ {
		c.regions = make([][]risk, len(regions))
		for z := range t.Zones {
			if zone := &t.Zones[z]; zone.Capacity[k-1] > 0 {
				at := regions[zone.Region]
				c.regions[at] = append(c.regions[at], risk{z, min(mean*math.Pow(seen[k][z]/mean, contrast), mostLikely)})
			}
		}
		serving, spot := c.choose(), 0
		for r, n := range c.best {
			spot += n
			for _, chosen := range c.regions[r][:n] {
				serving += t.Zones[chosen.zone].Capacity[k]
			}
		}
		f.Cost += float64(spot) + c.ratio*float64(c.spare)
		f.Missing += float64(max(c.replicas-serving, 0))
		if serving >= c.replicas {
			f.Available++
		}
	}
	counted := float64(samples - 1)
	f.Available, f.Missing, f.Cost = f.Available/counted, f.Missing/counted, f.Cost/(counted*c.ratio*float64(c.replicas))
	return f
}

// choose returns how many run on-demand, and leaves the numbers of zones in best. Of a region those of the lowest risk are the best,
// however many.
func (c *chooser) choose() (onDemand int) {
	for _, zones := range c.regions {
		slices.SortFunc(zones, func(a, b risk) int { return cmp.Compare(a.lost, b.lost) })
	}
	c.least, c.best, c.spare = math.Inf(1), make([]int, len(c.regions)), 0
	c.taken = make([]int, len(c.regions))
	c.extend(0, 0, []float64{1})
	return c.spare
}

// extend tries all numbers of zones in a region and those after it. lost is how likely each number of losses is in those before it.
func (c *chooser) extend(region, spot int, lost []float64) {
	if region == len(c.regions) {
		c.complete(spot, lost)
		return
	}
	alone, most := []float64{1}, 0.0
	for n := 0; ; n++ {
		c.taken[region] = n
		all := slices.Clone(alone)
		if n > 1 {
			for i := range all {
				all[i] *= 1 - c.together*most
			}
			all[n] += c.together * most
		}
		c.extend(region+1, spot+n, convolved(lost, all))
		if n == len(c.regions[region]) {
			return
		}
		p := c.regions[region][n].lost
		alone, most = convolved(alone, []float64{1 - p, p}), max(most, p)
	}
}

// complete adds on-demand replicas, as many as are worth it.
func (c *chooser) complete(spot int, lost []float64) {
	for onDemand := max(c.replicas-spot, 0); onDemand <= c.replicas; onDemand++ {
		cost := float64(spot) + c.ratio*float64(onDemand)
		if cost >= c.least {
			return
		}
		missing := 0.0
		for n := spot + onDemand - c.replicas + 1; n < len(lost); n++ {
			missing += lost[n]
		}
		if all := cost + c.weight*missing; all < c.least {
			c.least, c.spare = all, onDemand
			copy(c.best, c.taken)
		}
	}
}

// convolved is how likely sums are of two independent numbers.
func convolved(a, b []float64) []float64 {
	sum := make([]float64, len(a)+len(b)-1)
	for i, x := range a {
		for j, y := range b {
			sum[i+j] += x * y
		}
	}
	return sum
}

func meanOf(seen [][]float64) float64 {
	sum, n := 0.0, 0
	for _, zones := range seen {
		for _, p := range zones {
			if p > 0 {
				sum, n = sum+p, n+1
			}
		}
	}
	return sum / float64(max(n, 1))
}
