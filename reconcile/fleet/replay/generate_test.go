package replay

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func smallMade(seed uint64) Trace {
	return Generate(Made{Seed: seed, Regions: 2, Zones: 2, Most: 3, Days: 4})
}

func TestASyntheticTraceIsReadAsItWasMade(t *testing.T) {
	folder := t.TempDir()
	made := smallMade(7)
	if err := made.Save(filepath.Join(folder, made.Name)); err != nil {
		t.Fatal(err)
	}
	read, err := FindTraces([]string{folder})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Trace{made}, read); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(made, smallMade(7)); diff != "" {
		t.Errorf("the same seed makes another trace: %s", diff)
	}
	if cmp.Equal(made.Zones, smallMade(8).Zones) {
		t.Error("another seed makes the same trace")
	}
	for _, z := range made.Zones {
		up := 0
		for _, n := range z.Capacity {
			if n > 0 {
				up++
			}
		}
		if up == 0 || up == len(z.Capacity) {
			t.Errorf("%s has capacity in %d of %d samples", z.Name, up, len(z.Capacity))
		}
	}
}

func TestPricesThatCannotBeCountedAreRefused(t *testing.T) {
	for text, problem := range map[string]string{
		`{"metadata": {"gap_seconds": 60, "on_demand_price": 3}, "data": [1, 1], "prices": [1]}`:    "1 prices for 2 samples",
		`{"metadata": {"gap_seconds": 60}, "data": [1], "prices": [1]}`:                             "on_demand_price is 0",
		`{"metadata": {"gap_seconds": 60, "on_demand_price": 3}, "data": [1, 1], "prices": [1, 0]}`: "price 1 is 0",
	} {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, "us-east-1a.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := FindTraces([]string{folder}); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestThePriceOfAMomentIsPaidAndTheCheapestIsTheBound(t *testing.T) {
	trace := Trace{Gap: 900, Zones: []Zone{
		{Name: "a", Capacity: []int{9, 9, 9}, Prices: []float64{1, 1, 4}, OnDemand: 5},
		{Name: "b", Capacity: []int{9, 9, 9}, Prices: []float64{2, 2, 2}, OnDemand: 5},
	}}
	s := testSetting
	if bound := Bound(trace, s); math.Abs(bound-(1+2)/10.) > 1e-9 {
		t.Errorf("the bound is %v", bound)
	}
	w := NewWorld(trace, s)
	w.Launch(0, true)
	w.Launch(1, false)
	var paid []float64
	for range 4 {
		paid = append(paid, w.Bill())
		w.Advance(w.Next(2700))
	}
	// The steps are: known to have a node, ready, the dearer sample.
	if diff := cmp.Diff([]float64{6, 6, 6, 9}, paid); diff != "" {
		t.Error(diff)
	}
}

func TestOursMovesToWhereSpotHasBecomeCheaper(t *testing.T) {
	trace := Trace{Gap: 3600, Zones: []Zone{{Name: "a", Region: "x"}, {Name: "b", Region: "y"}}}
	for i := range 48 {
		a, b := 1.0, 2.0
		if i >= 24 {
			a, b = 9.0, 2.0 // dearer than on-demand: it may not stay
		}
		trace.Zones[0].Prices, trace.Zones[1].Prices = append(trace.Zones[0].Prices, a), append(trace.Zones[1].Prices, b)
		for z := range trace.Zones {
			trace.Zones[z].Capacity, trace.Zones[z].OnDemand = append(trace.Zones[z].Capacity, 9), 5
		}
	}
	var there int
	Run(trace, testSetting, &ours{extra: 4}, func(w *World, _ int64) { there = w.Count(0, true, Ready) })
	if there != 0 {
		t.Errorf("%d replicas are left on spot that costs more than on-demand", there)
	}
}

func TestWithTheFutureOfPricesCutOffTheDecisionsAreTheSame(t *testing.T) {
	whole := smallMade(3)
	before := int64(500) * whole.Gap
	if diff := cmp.Diff(decisions(whole, before), decisions(whole.Part(0, 500), before)); diff != "" {
		t.Error(diff)
	}
}

func TestCurvesCostWhatTheRunsDo(t *testing.T) {
	trace := synthetic(200)
	rows, curves := Compare(trace, testSetting)
	for i, c := range curves {
		mean := 0.0
		for _, cost := range c.Cost {
			mean += cost / float64(len(c.Cost))
		}
		if math.Abs(mean-rows[i].Cost) > 0.05 {
			t.Errorf("%s costs %.3f by its curve and %.3f in all", c.Name, mean, rows[i].Cost)
		}
	}
}
