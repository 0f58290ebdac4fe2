package fleet

import (
	"math"
	"testing"
	"time"
)

// shortLived are members whose spot is lost every ten hours, and replaced in four minutes.
func shortLived(domains ...string) *Fleet {
	f := &Fleet{}
	for i, domain := range domains {
		m := memberOf(string(rune('a'+i)), domain)
		m.Spot.Life, m.Spot.Start = 10*time.Hour, 4*time.Minute
		f.Members = append(f.Members, m)
	}
	return f
}

// What is risked counts that one loss in four takes the members of a domain together, as often as the domain loses any.
func TestARiskCountsThatADomainFailsTogether(t *testing.T) {
	const each = 4. / 600 // of the time
	for name, test := range map[string]struct {
		domains [2]string
		life    time.Duration
		want    float64
	}{
		"no domains":                  {[2]string{"", ""}, 0, 2 * each},
		"a domain for each":           {[2]string{"eu", "us"}, 0, 2 * each},
		"one domain":                  {[2]string{"eu", "eu"}, 0, (2 + Together) * each},
		"one that is seen more often": {[2]string{"eu", "eu"}, 5 * time.Hour, (2 + 2*Together) * each},
	} {
		f := shortLived(test.domains[:]...)
		f.Domains = []Domain{{Name: "eu", Life: test.life}}
		p := Placement{Name: "n/w", Policy: Policy{Replicas: 2, SpotPercentage: 100, Tiers: []Tier{tierOf("a", "b")}}}
		if r := Plan(f, &p, epoch); math.Abs(r.Risk-test.want) > 1e-9 {
			t.Errorf("%s: %f is risked, want %f", name, r.Risk, test.want)
		}
	}
}

func TestInsuranceOnBothTypesIsBoundedTogether(t *testing.T) {
	f := shortLived("", "")
	for i := range f.Members {
		f.Members[i].OnDemand.Price = 1.01
	}
	for _, extra := range []int{0, 1, 2, 4} { // three avert no more than two
		p := Placement{Name: "n/w", Policy: Policy{Replicas: 4, SpotPercentage: 100, ExtraSpot: extra, Availability: 0.99999, Tiers: []Tier{tierOf("a", "b")}}}
		if r := Plan(f, &p, epoch); r.Insurance != extra {
			t.Errorf("%d extra, and %d are allowed and worth it", r.Insurance, extra)
		}
	}
}

// Where spot has no room for more, insurance is on-demand. It is started for more than it must avert, and kept for less.
func TestInsuranceOnDemandThatRunsIsKeptForLess(t *testing.T) {
	f := shortLived("")
	f.Members[0].Spot.Room = 0
	p := Placement{Name: "n/w", Policy: Policy{Replicas: 2, SpotPercentage: 100, ExtraSpot: 2, Tiers: []Tier{tierOf("a")}}}
	// Each averts half of the losses, and must avert as much as it costs: three times a spot replica.
	p.Policy.Availability = 1 - 2./600/3
	for runs, extra := range []int{0, 1, 2} {
		p.Running = []Running{ready("a", 2, runs)}
		if r := Plan(f, &p, epoch); r.Insurance != extra || len(r.Moves) > 0 {
			t.Errorf("%d run: %d are insurance, %v", runs, r.Insurance, movesOf(&r))
		}
	}
}

func TestMinimaThatAddUpToReplicasAreMet(t *testing.T) {
	p := Placement{Name: "n/w", Policy: Policy{Replicas: 3, Tiers: []Tier{{{Member: "a", Min: 2}, {Member: "b", Min: 1}}}}}
	r := Plan(fleetOf("a", "b"), &p, epoch)
	want(t, "the minima", splitOf(&r), "a 0+2", "b 0+1")
	if len(r.Conditions) > 0 {
		t.Errorf("%+v", r.Conditions)
	}
}
