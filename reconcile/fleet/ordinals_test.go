package fleet

import (
	"strings"
	"testing"
	"time"
)

// set is a member whose replicas are a StatefulSet's, one letter for each ordinal: s and o are ready on spot and on-demand, S and O start
// there, w waits for a spot node, and - is gone.
func set(member, ordinals string) Running {
	r := Running{Member: member}
	for _, letter := range ordinals {
		o := Ordinal{Stage: Ready}
		c := &r.Spot
		if letter == 'o' || letter == 'O' {
			o.Capacity, c = OnDemand, &r.OnDemand
		}
		switch letter {
		case 'w':
			o.Stage = Waiting
			c.Waiting++
		case '-':
			o.Stage = Gone
			c.Starting++
		case 'S', 'O':
			o.Stage = Starting
			c.Starting++
		default:
			c.Ready++
		}
		r.Ordinals = append(r.Ordinals, o)
	}
	return r
}

// A StatefulSet gives up its highest ordinals, whatever the plan would rather stop.
func TestAStatefulSetShrinksOnlyByOrdinalsThatMayGo(t *testing.T) {
	for name, test := range map[string]struct {
		ordinals         string
		replicas, floor  int
		spot, onDemand   int // to be set now
		exchanges        int
		onDemandNoLonger bool          // on-demand has no room
		spotDry          time.Duration // for how long spot has had no room; it may be tried after two minutes
	}{
		"the highest are of the type that is too many":  {ordinals: "oosss", replicas: 3, floor: 2, spot: 1, onDemand: 2},
		"the highest is the floor":                      {ordinals: "soo", replicas: 2, floor: 2, spot: 0, onDemand: 3, exchanges: 1},
		"the highest is on spot, on-demand is too many": {ordinals: "ooss", replicas: 3, floor: 1, spot: 3, onDemand: 1, exchanges: 1},
		"no room to move to":                            {ordinals: "soo", replicas: 2, floor: 2, spot: 1, onDemand: 2, onDemandNoLonger: true},
		"spot had no room a minute ago":                 {ordinals: "ooos", replicas: 3, floor: 2, spot: 1, onDemand: 3, spotDry: time.Minute},
		"spot had no room an hour ago":                  {ordinals: "ooos", replicas: 3, floor: 2, spot: 2, onDemand: 2, exchanges: 1, spotDry: time.Hour},
		"one tries that already":                        {ordinals: "woos", replicas: 3, floor: 2, spot: 2, onDemand: 2, spotDry: time.Hour},
		"one moves already":                             {ordinals: "-oo", replicas: 2, floor: 2, spot: 1, onDemand: 2},
		"the highest is gone":                           {ordinals: "oo-", replicas: 2, floor: 2, spot: 0, onDemand: 2},
		"both go, in any order":                         {ordinals: "ooosos", replicas: 2, floor: 2, spot: 0, onDemand: 2},
	} {
		t.Run(name, func(t *testing.T) {
			f := fleetOf("a")
			if test.onDemandNoLonger {
				f.Members[0].OnDemand.DrySince = epoch
			}
			if test.spotDry > 0 {
				spot := &f.Members[0].Spot
				spot.DrySince = epoch.Add(-test.spotDry)
				spot.TryAt = spot.DrySince.Add(2 * time.Minute)
			}
			p := &Placement{Policy: Policy{Replicas: test.replicas, MinOnDemand: test.floor, SpotPercentage: 100, Tiers: []Tier{tierOf("a")}}, Running: []Running{set("a", test.ordinals)}}
			r := Plan(f, p, epoch)
			w := r.Members[0]
			if w.SpotNow != test.spot || w.OnDemandNow != test.onDemand || w.Exchanges != test.exchanges {
				t.Errorf("%d on spot and %d on-demand now, %d exchanges; want %d, %d and %d: %+v", w.SpotNow, w.OnDemandNow, w.Exchanges, test.spot, test.onDemand, test.exchanges, r)
			}
			if says := strings.Contains(w.Reason, "moves there before it shrinks"); says != (test.exchanges > 0) {
				t.Errorf("the reason is %q", w.Reason)
			}
		})
	}
}
