package replay

import (
	"strings"
	"testing"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet"
)

// An age counts from the last time that capacity fell, whether anything ran there or not, and nothing of the future changes it.
func TestTheAgesOfZonesComeFromThePast(t *testing.T) {
	trace := Trace{Name: "t", Gap: 300, Zones: []Zone{
		{Name: "a", Region: "r", Capacity: []int{1, 0, 1, 1, 1}}, {Name: "b", Region: "r", Capacity: []int{1, 1, 1, 1, 0}},
	}}
	w, known := NewWorld(trace, Setting{Replicas: 1}), &ages{}
	for _, now := range []int64{0, 300, 900} {
		w.Advance(now)
		known.look(w)
	}
	f := &fleet.Fleet{Members: []fleet.Member{{Domain: "r"}, {Domain: "r"}}, Domains: []fleet.Domain{{Name: "r"}}}
	known.fill(w, f)
	if a, b, r := f.Members[0].Spot.Life, f.Members[1].Spot.Life, f.Domains[0].Life; a != fleet.FirstLife+seconds(600) || b != fleet.FirstLife+seconds(900) || r != a {
		t.Errorf("a has held for %s, b for %s, and their region for %s", a, b, r)
	}
}

func TestKnownAgesAreReplayedBesideWhatAHubSees(t *testing.T) {
	trace := Generate(Made{Seed: 3, Regions: 2, Zones: 2, Most: 3, Days: 3})
	rows := Aged(trace.WithoutPrices(), Setting{Replicas: 4, Ratio: 3, Start: 240, Notice: 30, Refusal: 10})
	plain := Run(trace.WithoutPrices(), rows[0].Setting, &ours{extra: 4})
	if len(rows) != 6 || rows[0].Figures != plain || rows[1].Figures == plain || !strings.HasSuffix(rows[1].Policy, "all ages known") || rows[4].Available < rows[0].Available {
		t.Errorf("%+v", rows)
	}
}
