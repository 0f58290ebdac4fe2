package replay

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// Made says what a synthetic trace is to be like.
type Made struct {
	Seed    uint64
	Regions int
	Zones   int // of each region
	Most    int // what a zone runs at most
	Days    int
}

// What synthetic traces are made with. Spells of capacity and of drought have a heavy tail, as recorded ones do.
const (
	madeGap       = 300    // seconds
	madeOnDemand  = 3.0    // price of on-demand
	shortestSpell = 1200.0 // seconds
	longestSpell  = 30 * 86400.0
	spellTail     = 0.7  // exponent of the Pareto law of a spell with capacity
	droughtTail   = 0.9  // of one without
	regionShare   = 0.15 // share of losses that take the other zones of the region as well
	priceStep     = 0.02 // of the logarithm of a price, a sample
)

// Generate makes a trace from a seed: the same one from the same seed. Zones of a region fail together in some cases, and
// prices wander about 1.
func Generate(m Made) Trace {
	random := rand.New(rand.NewPCG(m.Seed, m.Seed^0x9e3779b97f4a7c15)) //nolint:gosec // the same seed must make the same trace
	t := Trace{Name: fmt.Sprintf("synthetic-%d", m.Seed), Gap: madeGap}
	samples := m.Days * 86400 / madeGap
	for r := range m.Regions {
		region := make([]*madeZone, m.Zones)
		for z := range region {
			name := fmt.Sprintf("made-%d%c", r+1, 'a'+z)
			region[z] = &madeZone{Zone: Zone{Name: name, Region: regionOf(name), OnDemand: madeOnDemand}, random: random, most: m.Most, price: 0.7 + 0.6*random.Float64()}
			region[z].begin(random.IntN(4) > 0)
		}
		for range samples {
			for _, z := range region {
				z.step(region)
			}
		}
		for _, z := range region {
			t.Zones = append(t.Zones, z.Zone)
		}
	}
	return t
}

// madeZone is a zone in the making.
type madeZone struct {
	Zone
	random *rand.Rand
	most   int
	now    int // what it runs
	left   int // samples until that changes
	price  float64
}

// begin begins a spell, with capacity or without.
func (z *madeZone) begin(up bool) {
	tail := droughtTail
	z.now = 0
	if up {
		tail = spellTail
		z.now = 1 + z.random.IntN(z.most)
		if z.random.IntN(2) == 0 {
			z.now = z.most
		}
	}
	long := shortestSpell * math.Pow(1-z.random.Float64(), -1/tail)
	z.left = max(int(min(long, longestSpell)/madeGap), 1)
}

// step notes a sample. What it loses others of the region may lose too.
func (z *madeZone) step(region []*madeZone) {
	if z.left == 0 {
		lost := z.now
		z.begin(z.now == 0 || (z.now == z.most && z.random.IntN(3) == 0))
		if z.now < lost && z.random.Float64() < regionShare {
			for _, other := range region {
				if other.now > 0 {
					other.left = 0
				}
			}
			z.left = max(z.left, 1)
		}
	}
	z.left = max(z.left-1, 0)
	z.price = min(max(z.price*math.Exp(priceStep*z.random.NormFloat64()), 0.4), 2.8)
	z.Capacity = append(z.Capacity, z.now)
	z.Prices = append(z.Prices, math.Round(z.price*1000)/1000)
}

// Save writes a trace into a folder, one file a zone, in the form that is read.
func (t Trace) Save(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for i := range t.Zones {
		z := &t.Zones[i]
		file := zoneFile{Data: z.Capacity, Prices: z.Prices}
		file.Metadata.Gap, file.Metadata.OnDemand = float64(t.Gap), z.OnDemand
		text, err := json.Marshal(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, z.Name+".json"), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
