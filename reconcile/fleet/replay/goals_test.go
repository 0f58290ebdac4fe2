package replay

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The goals of the table in docs/fleet.md, by start and notice.
var (
	noticed   = Setting{Replicas: 4, Ratio: 3, Start: 120, Notice: 120, Refusal: 10}
	hurried   = Setting{Replicas: 4, Ratio: 3, Start: 240, Notice: 30, Refusal: 10}
	unnoticed = Setting{Replicas: 4, Ratio: 3, Start: 240, Refusal: 10}
)

func TestTheGoalsHoldOnTracesThatNothingWasFittedTo(t *testing.T) {
	for seed := range uint64(2) {
		made := Generate(Made{Seed: 100 + seed, Regions: 3, Zones: 3, Most: 4, Days: 3}).WithoutPrices()
		t.Run(fmt.Sprint("seed ", 100+seed), func(t *testing.T) { checkGoals(t, made, 1) })
	}
}

// On the recorded traces, where the clone has them: four days of each, for the whole takes minutes with the race detector.
func TestTheGoalsHoldOnRecordedTraces(t *testing.T) {
	recorded := filepath.Join("..", "..", "..", "..", "shared", "traces")
	if _, err := os.Stat(recorded); err != nil {
		t.Skip("there are no recorded traces beside the clone")
	}
	traces, err := FindTraces([]string{recorded})
	if err != nil {
		t.Fatal(err)
	}
	for _, trace := range traces {
		t.Run(trace.Name, func(t *testing.T) { checkGoals(t, trace.Part(0, min(trace.Samples(), 345600/int(trace.Gap))), 0.85) })
	}
}

// checkGoals runs the policies for the whole fleet, and compares ours with the others. In a hurry it may cost so much of what SpotHedge
// with two extra does.
func checkGoals(t *testing.T, trace Trace, ofHedge float64) {
	run := func(s Setting) (is [3]Figures) {
		for i, c := range fleetWide(s) {
			is[i] = Run(trace, s, c.make())
			t.Logf("start %d, notice %d: %s: %.3f %%, %.3f of the bound", s.Start, s.Notice, c.name, 100*is[i].Available, is[i].OfBound)
		}
		return is
	}
	if f := run(noticed)[0]; f.Available < 0.9995 || f.OfBound > 1.12 {
		t.Errorf("with notice as long as a start: %.3f %% at %.3f times the bound", 100*f.Available, f.OfBound)
	}
	for _, s := range []Setting{hurried, unnoticed} {
		all := run(s)
		for _, other := range all[1:] {
			if other.Available >= all[0].Available && other.Cost <= all[0].Cost {
				t.Errorf("start %d, notice %d: %.3f %% at %.3f, and another policy %.3f %% at %.3f", s.Start, s.Notice, 100*all[0].Available, all[0].Cost, 100*other.Available, other.Cost)
			}
		}
		if all[0].Cost > ofHedge*all[2].Cost {
			t.Errorf("start %d, notice %d: %.3f of what SpotHedge+2 costs", s.Start, s.Notice, all[0].Cost/all[2].Cost)
		}
	}
}

// What is left out is left out of everything, and the trace is as it was.
func TestWhatIsLeftOutOfAReplayIsNotInIt(t *testing.T) {
	trace, same := synthetic(300), synthetic(300)
	rows := LeaveOut(trace, testSetting)
	if diff := cmp.Diff(same, trace); diff != "" {
		t.Errorf("the trace is changed:\n%s", diff)
	}
	want := map[string]Trace{}
	for z := range same.Zones {
		left := Trace{Name: same.Name, Gap: same.Gap}
		for other, zone := range same.Zones {
			if other != z {
				left.Zones = append(left.Zones, zone)
			}
		}
		want[same.Zones[z].Name] = left
	}
	for third := range 3 {
		left := Trace{Name: same.Name, Gap: same.Gap}
		for _, zone := range same.Zones {
			zone.Capacity = zone.Capacity[100*third : 100*third+100]
			left.Zones = append(left.Zones, zone)
		}
		want[fmt.Sprintf("days outside third %d", third+1)] = left
	}
	if len(rows) != 2*len(want) {
		t.Errorf("%d rows, want %d", len(rows), 2*len(want))
	}
	for _, row := range rows {
		for _, c := range fleetWide(testSetting) {
			if c.name != row.Policy {
				continue
			}
			if diff := cmp.Diff(Run(want[row.Without], testSetting, c.make()), row.Figures); diff != "" {
				t.Errorf("%s without %s:\n%s", row.Policy, row.Without, diff)
			}
		}
	}
}
