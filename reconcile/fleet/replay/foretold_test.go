package replay

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// late has replicas that are late by more than a sample of the traces that are made here.
var late = Setting{Replicas: 2, Ratio: 3, Start: 360, Notice: 30, Refusal: 10}

// singles is a synthetic trace whose zones run one replica at most.
func singles(seed uint64) Trace {
	return Generate(Made{Seed: seed, Regions: 2, Zones: 3, Most: 1, Days: 2}).WithoutPrices()
}

// No policy that is replayed comes to more for less than what is foretold: it knows more, and nothing takes it time.
func TestNothingIsCheaperThanLossesThatAreForetold(t *testing.T) {
	for seed := range uint64(2) {
		trace := singles(seed)
		for _, c := range fleetWide(late) {
			f := Run(trace, late, c.make())
			rows := Foretold(trace, late, []Row{{Policy: Hedge2, Figures: f}})
			found := false
			for _, row := range rows {
				if row.Policy == foretoldCheap {
					found = row.Cost <= f.Cost
				} else if row.Cost > 0.8*f.Cost {
					t.Errorf("seed %d, %s: %+v is not at 0.8 times the cost of %+v", seed, c.name, row, f)
				}
			}
			if !found {
				t.Errorf("seed %d: %s comes to %+v, and foretold losses to %+v", seed, c.name, f, rows)
			}
		}
	}
}

func TestAFleetWithoutLossesIsForetoldToCostTheBound(t *testing.T) {
	trace := singles(1)
	for z := range trace.Zones {
		for k := range trace.Zones[z].Capacity {
			trace.Zones[z].Capacity[k] = 1
		}
	}
	rows := Foretold(trace, late, []Row{{Policy: Hedge2, Figures: Figures{Available: 1, Cost: 1}}})
	if len(rows) != 2 {
		t.Fatalf("%+v", rows)
	}
	for _, row := range rows {
		if row.Available != 1 || math.Abs(row.OfBound-1) > 1e-9 {
			t.Errorf("%+v", row)
		}
	}
}

func TestWhatCannotBeForetoldIsNotInTheTable(t *testing.T) {
	hedge := []Row{{Policy: Hedge2, Figures: Figures{Available: 1, Cost: 1}}}
	early := late
	early.Start = 120
	priced := Generate(Made{Seed: 1, Regions: 1, Zones: 2, Most: 1, Days: 1})
	for name, rows := range map[string][]Row{
		"zones of several replicas": Foretold(synthetic(100), late, hedge), "late by less than a sample": Foretold(singles(1), early, hedge),
		"prices": Foretold(priced, late, hedge), "nothing to compare with": Foretold(singles(1), late, nil),
	} {
		if len(rows) > 0 {
			t.Errorf("%s: %+v", name, rows)
		}
	}
}

func TestTheLeastRiskIsChosenAndOnDemandIfThatIsWorthIt(t *testing.T) {
	for name, test := range map[string]struct {
		regions  [][]risk
		together float64
		weight   float64
		zones    [][]int
		onDemand int
	}{
		"the steadiest zones":             {[][]risk{{{0, 0.2}, {1, 0.01}}, {{2, 0.02}, {3, 0.3}}}, 0, 1, [][]int{{1}, {2}}, 0},
		"one more where that is worth it": {[][]risk{{{0, 0.2}, {1, 0.01}}, {{2, 0.02}, {3, 0.3}}}, 0, 50, [][]int{{1, 0}, {2}}, 0},
		"spot that is bound to go":        {[][]risk{{{0, 0.9}, {1, 0.9}}}, 0, 50, [][]int{{}}, 2},
		"no spot":                         {[][]risk{{}, {}}, 0, 50, [][]int{{}, {}}, 2},
		"zones of one region together":    {[][]risk{{{0, 0.01}, {1, 0.01}, {2, 0.01}}, {{3, 0.02}}}, 1, 200, [][]int{{0}, {3}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := chooser{replicas: 2, ratio: 3, weight: test.weight, together: test.together, regions: test.regions}
			onDemand := c.choose()
			chosen := make([][]int, len(test.regions))
			for r, n := range c.best {
				chosen[r] = []int{}
				for _, z := range c.regions[r][:n] {
					chosen[r] = append(chosen[r], z.zone)
				}
			}
			if diff := cmp.Diff(test.zones, chosen); diff != "" || onDemand != test.onDemand {
				t.Errorf("%d on-demand, want %d; %s", onDemand, test.onDemand, diff)
			}
		})
	}
}

// A zone that goes whenever it has held for four samples is foretold to.
func TestASignSaysHowOftenALossFollowsIt(t *testing.T) {
	trace := Trace{Gap: 300, Zones: []Zone{{Name: "a-1a", Region: "a-1"}, {Name: "b-1a", Region: "b-1"}}}
	for k := range 1000 {
		up := 1
		if k%5 == 4 {
			up = 0
		}
		trace.Zones[0].Capacity, trace.Zones[1].Capacity = append(trace.Zones[0].Capacity, up), append(trace.Zones[1].Capacity, 1)
	}
	seen := foretell(trace)
	for k := 500; k < 1000; k++ {
		switch p := seen[k][0]; {
		case k%5 == 0: // it has nothing to lose
		case k%5 == 4 && p < 0.9, k%5 == 1 && p > 0.1:
			t.Errorf("sample %d: a loss is %.2f likely", k, p)
		}
		if seen[k][1] > 0.01 {
			t.Errorf("sample %d: a loss of what never goes is %.2f likely", k, seen[k][1])
		}
	}
}
