package replay

import (
	"fmt"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet"
)

// ages are how long the capacity of each zone has held, used or not. The hub does not know that of zones that run nothing: a policy that does
// says how much of a goal is missed for lack of it.
type ages struct {
	capacity []int
	fell     []int64
}

// look takes in what zones can run now. It knows nothing of the future.
func (a *ages) look(w *World) {
	if a.capacity == nil {
		a.capacity, a.fell = make([]int, len(w.capacity)), make([]int64, len(w.capacity))
	}
	for z, now := range w.capacity {
		if now < a.capacity[z] {
			a.fell[z] = w.Now
		}
		a.capacity[z] = now
	}
}

// fill puts the ages in place of what was seen of the zones that run replicas.
func (a *ages) fill(w *World, f *fleet.Fleet) {
	regions := map[string]time.Duration{}
	for z := range f.Members {
		m := &f.Members[z]
		m.Spot.Life = fleet.FirstLife + seconds(w.Now-a.fell[z])
		if least, known := regions[m.Domain]; !known || m.Spot.Life < least {
			regions[m.Domain] = m.Spot.Life
		}
	}
	for i := range f.Domains {
		f.Domains[i].Life = regions[f.Domains[i].Name]
	}
}

// Aged runs our policy with the ages of all zones, at several availabilities: what it comes to with more knowledge than a hub can have.
func Aged(t Trace, s Setting) (rows []Row) {
	for _, availability := range []float64{fleet.DefaultAvailability, 0.998, 0.999} {
		for _, known := range []*ages{nil, {}} {
			name := fmt.Sprintf("%s, availability %g", Ours, availability)
			if known != nil {
				name += ", all ages known"
			}
			rows = append(rows, Row{Trace: t.Name, Setting: s, Policy: name, Figures: Run(t, s, &ours{extra: s.Replicas, availability: availability, ages: known})})
		}
	}
	return rows
}
