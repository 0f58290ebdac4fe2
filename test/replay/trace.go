package main

import (
	"encoding/json"
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
}

// FindTraces reads every folder below the given ones that holds zones.
func FindTraces(roots []string) ([]Trace, error) {
	var traces []Trace
	for _, root := range roots {
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
			traces = append(traces, trace)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if len(traces) == 0 {
		return nil, fmt.Errorf("no folder with traces below %s", strings.Join(roots, ", "))
	}
	return traces, nil
}

// readTrace reads the zones of one folder, each cut to the shortest.
func readTrace(name string, files []string) (Trace, error) {
	t := Trace{Name: name}
	shortest := -1
	slices.Sort(files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return t, err
		}
		var zone struct {
			Metadata struct {
				Gap float64 `json:"gap_seconds"`
			} `json:"metadata"`
			Data []int `json:"data"`
		}
		if err := json.Unmarshal(text, &zone); err != nil {
			return t, fmt.Errorf("%s: %w", file, err)
		}
		gap := int64(zone.Metadata.Gap)
		switch {
		case gap <= 0 || len(zone.Data) == 0:
			return t, fmt.Errorf("%s: no gap_seconds, or no data", file)
		case t.Gap != 0 && t.Gap != gap:
			return t, fmt.Errorf("%s: gap_seconds is %d, and %d in other zones of the folder", file, gap, t.Gap)
		}
		t.Gap = gap
		if shortest < 0 || len(zone.Data) < shortest {
			shortest = len(zone.Data)
		}
		zoneName := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Zones = append(t.Zones, Zone{Name: zoneName, Region: regionOf(zoneName), Capacity: zone.Data})
	}
	return t.Part(0, shortest), nil
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
	}
	t.Zones = zones
	return t
}

// Without returns the trace without a zone.
func (t Trace) Without(zone int) Trace {
	t.Zones = slices.Delete(slices.Clone(t.Zones), zone, zone+1)
	return t
}

// Samples is how long the trace is.
func (t Trace) Samples() int { return len(t.Zones[0].Capacity) }
