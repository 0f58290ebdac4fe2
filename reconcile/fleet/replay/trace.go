package replay

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Trace is the recorded spot capacity of several zones that start at one moment.
type Trace struct {
	Name  string
	Gap   int64 // seconds between two samples
	Zones []Zone
}

// Zone is the capacity of one zone by sample.
type Zone struct {
	Name, Region string
	Capacity     []int
	// Prices of a spot replica by sample, and OnDemand, the price of one that is on-demand, in one unit for all zones. Without
	// recorded prices there are none: spot costs 1, and on-demand what the setting says.
	Prices   []float64
	OnDemand float64
}

// FindTraces reads every folder below the given ones that holds zones, and files that are ConfigMaps with a history.
func FindTraces(roots []string) ([]Trace, error) {
	var traces []Trace
	var young error // of a shape that a hub has not seen for long
	for _, root := range roots {
		if known, err := os.Stat(root); err == nil && !known.IsDir() {
			found, err := readConfigMap(root)
			if err != nil {
				return nil, err
			}
			traces = append(traces, found...)
			continue
		}
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				return err
			}
			files, err := filepath.Glob(filepath.Join(path, "*.json"))
			if err != nil || len(files) == 0 {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil || name == "." {
				name = filepath.Base(path)
			}
			trace, err := readTrace(name, files)
			if errors.Is(err, errYoung) {
				young = err
				return nil
			}
			traces = append(traces, trace)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if len(traces) == 0 && young != nil {
		return nil, young
	}
	if len(traces) == 0 {
		return nil, fmt.Errorf("no folder with traces below %s", strings.Join(roots, ", "))
	}
	return traces, nil
}

// readTrace reads the zones of one folder.
func readTrace(name string, files []string) (Trace, error) {
	slices.Sort(files)
	zones := make([]zoneFile, len(files))
	for i, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return Trace{}, err
		}
		if err := json.Unmarshal(text, &zones[i]); err != nil {
			return Trace{}, fmt.Errorf("%s: %w", file, err)
		}
	}
	return traceOf(name, files, zones)
}

// traceOf makes a trace of zones, each cut to the shortest. files name them.
func traceOf(name string, files []string, zones []zoneFile) (Trace, error) {
	if err := sampleAll(zones); err != nil {
		return Trace{}, fmt.Errorf("%s: %w", name, err)
	}
	t, shortest := Trace{Name: placedIn(zones, name)}, -1
	for i, file := range files {
		zone := zones[i]
		gap := int64(zone.Metadata.Gap)
		if err := zone.check(); err != nil {
			return t, fmt.Errorf("%s: %w", file, err)
		}
		switch {
		case t.Gap != 0 && t.Gap != gap:
			return t, fmt.Errorf("%s: gap_seconds is %d, and %d in other zones of the folder", file, gap, t.Gap)
		case len(t.Zones) > 0 && (t.Zones[0].Prices == nil) != (zone.Prices == nil):
			return t, fmt.Errorf("%s: some zones of the folder have prices and some have none", file)
		}
		t.Gap = gap
		if shortest < 0 || len(zone.Data) < shortest {
			shortest = len(zone.Data)
		}
		zoneName := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Zones = append(t.Zones, Zone{
			Name: zoneName, Region: cmp.Or(zone.Metadata.Region, regionOf(zoneName)), Capacity: zone.Data, Prices: zone.Prices, OnDemand: zone.Metadata.OnDemand,
		})
	}
	return t.Part(0, shortest), nil
}

// zoneFile is a file of a zone. Prices may be left out.
type zoneFile struct {
	Metadata struct {
		Gap      float64 `json:"gap_seconds"`
		OnDemand float64 `json:"on_demand_price,omitempty"`
		// Region that the zone fails with; without it, the zone's name without the letters at its end.
		Region string `json:"region,omitempty"`
		// Requirements is the scheduling requirements of the pods that the capacity is for, and Placements those that had such pods, in
		// what a hub recorded.
		Requirements string   `json:"shape,omitempty"`
		Placements   []string `json:"placements,omitempty"`
		// Forgotten says that there were older changes, which had to make room.
		Forgotten bool `json:"forgotten,omitempty"`
	} `json:"metadata"`
	Data   []int     `json:"data,omitempty"`
	Prices []float64 `json:"prices,omitempty"`
	// Changes represent Data in what a hub recorded.
	Changes []Change `json:"changes,omitempty"`
}

func (z *zoneFile) check() error {
	if z.Metadata.Gap < 1 || len(z.Data) == 0 {
		return errors.New("no gap_seconds, or no data")
	}
	if z.Prices == nil {
		z.Metadata.OnDemand = 0 // it means nothing alone
		return nil
	}
	if len(z.Prices) != len(z.Data) {
		return fmt.Errorf("%d prices for %d samples: want one for each", len(z.Prices), len(z.Data))
	}
	if z.Metadata.OnDemand <= 0 {
		return fmt.Errorf("on_demand_price is %g: where there are prices, it must be above zero and in their unit", z.Metadata.OnDemand)
	}
	for i, price := range z.Prices {
		if price <= 0 {
			return fmt.Errorf("price %d is %g: it must be above zero", i, price)
		}
	}
	return nil
}

// regionOf returns the region of a zone: its name without the letter at its end.
func regionOf(zone string) string {
	return strings.TrimRight(zone, "abcdefghijklmnopqrstuvwxyz")
}

// Part returns the samples from one, up to and without another.
func (t Trace) Part(from, to int) Trace {
	zones := slices.Clone(t.Zones)
	for i := range zones {
		zones[i].Capacity = zones[i].Capacity[from:to]
		if zones[i].Prices != nil {
			zones[i].Prices = zones[i].Prices[from:to]
		}
	}
	t.Zones = zones
	return t
}

// Without returns the trace without a zone.
func (t Trace) Without(zone int) Trace {
	t.Zones = slices.Delete(slices.Clone(t.Zones), zone, zone+1)
	return t
}

// WithoutPrices returns the trace as if no prices were recorded.
func (t Trace) WithoutPrices() Trace {
	t.Zones = slices.Clone(t.Zones)
	for i := range t.Zones {
		t.Zones[i].Prices, t.Zones[i].OnDemand = nil, 0
	}
	return t
}

// Samples is how long the trace is.
func (t Trace) Samples() int { return len(t.Zones[0].Capacity) }
