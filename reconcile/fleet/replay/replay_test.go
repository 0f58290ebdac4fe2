package replay

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// synthetic is a made-up trace: zones that go up and down, each with a period of its own.
func synthetic(samples int) Trace {
	t := Trace{Name: "synthetic", Gap: 300}
	for z, name := range []string{"eu-1a", "eu-1b", "us-1a"} {
		zone := Zone{Name: name, Region: regionOf(name)}
		for i := range samples {
			up := 4
			if period := 40 + 23*z; i%period > period*2/3 {
				up = i % 3
			}
			zone.Capacity = append(zone.Capacity, up)
		}
		t.Zones = append(t.Zones, zone)
	}
	return t
}

var testSetting = Setting{Replicas: 4, Ratio: 3, Start: 240, Notice: 30, Refusal: 10}

// decisions writes down what runs after each step that begins before a time.
func decisions(t Trace, before int64) []string {
	var all []string
	Run(t, testSetting, &ours{extra: 4}, func(w *World, _ int64) {
		if w.Now >= before {
			return
		}
		line := fmt.Sprint(w.Now)
		for _, i := range w.Instances {
			line += fmt.Sprintf(" %d/%v/%d", i.Zone, i.Spot, i.State)
		}
		all = append(all, line)
	})
	return all
}

func TestWithTheFutureCutOffTheDecisionsAreTheSame(t *testing.T) {
	whole := synthetic(600)
	for _, cut := range []int{50, 199, 400} {
		before := int64(cut) * whole.Gap
		if diff := cmp.Diff(decisions(whole, before), decisions(whole.Part(0, cut), before)); diff != "" {
			t.Errorf("cut after %d samples: %s", cut, diff)
		}
	}
}

func TestFiguresOfAFleetThatNeverLosesAnythingAreThoseOfTheBound(t *testing.T) {
	trace := synthetic(100)
	for z := range trace.Zones {
		for i := range trace.Zones[z].Capacity {
			trace.Zones[z].Capacity[i] = 9
		}
	}
	s := testSetting
	s.Notice = s.Start
	f := Run(trace, s, &ours{extra: 4})
	if f.Available != 1 || math.Abs(f.OfBound-1) > 1e-9 || math.Abs(f.Cost-1./3) > 1e-9 || f.Evictions != 0 {
		t.Errorf("%+v", f)
	}
}

func TestSpotIsLostWhenCapacityFallsAndServesUntilTheNoticeIsOver(t *testing.T) {
	trace := Trace{Gap: 300, Zones: []Zone{{Name: "a", Capacity: []int{2, 2, 1, 1}}}}
	w := NewWorld(trace, testSetting)
	w.Launch(0, true)
	w.Launch(0, true)
	w.Launch(0, true)
	for _, c := range []struct {
		at      int64
		serving int
		events  []Kind
	}{
		{10, 0, []Kind{Granted, Granted, Refused}},
		{240, 2, []Kind{Served, Served}},
		{600, 2, []Kind{Noticed}},
		{629, 2, nil},
		{630, 1, nil},
	} {
		w.Events = nil
		w.Advance(c.at)
		var kinds []Kind
		for _, e := range w.Events {
			kinds = append(kinds, e.Kind)
		}
		if diff := cmp.Diff(c.events, kinds); diff != "" || w.Serving() != c.serving {
			t.Errorf("at %d: %d serve; %s", c.at, w.Serving(), diff)
		}
	}
}

func TestFoldersAreReadAndCutToTheShortestZone(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("x/day/us-east-1a.json", `{"metadata": {"gap_seconds": 60}, "data": [1, 0, 1]}`)
	write("x/day/us-east-1b.json", `{"metadata": {"gap_seconds": 60}, "data": [1, 0]}`)
	traces, err := FindTraces([]string{folder})
	if err != nil {
		t.Fatal(err)
	}
	wanted := []Trace{{Name: "x/day", Gap: 60, Zones: []Zone{
		{Name: "us-east-1a", Region: "us-east-1", Capacity: []int{1, 0}}, {Name: "us-east-1b", Region: "us-east-1", Capacity: []int{1, 0}},
	}}}
	if diff := cmp.Diff(wanted, traces); diff != "" {
		t.Error(diff)
	}
	write("x/day/us-east-1c.json", `{"metadata": {}, "data": [1]}`)
	if _, err := FindTraces([]string{folder}); err == nil {
		t.Error("a zone without gap_seconds is read")
	}
	if _, err := FindTraces([]string{t.TempDir()}); err == nil {
		t.Error("a folder without traces is read")
	}
}

func TestEveryPolicyRunsToTheEnd(t *testing.T) {
	compared, _ := Compare(synthetic(300), testSetting)
	for _, row := range append(compared, LeaveOut(synthetic(300), testSetting)...) {
		if row.Available <= 0 || row.Available > 1 || row.Cost <= 0 || row.OfBound <= 0 {
			if row.Policy != "static split, half on-demand, one zone" {
				t.Errorf("%+v", row)
			}
		}
	}
}
