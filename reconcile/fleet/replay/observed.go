package replay

import (
	"cmp"
	"slices"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet"
)

// epoch is the time at the start of a trace.
var epoch = time.Unix(1_700_000_000, 0)

func at(seconds int64) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// A dry zone is tried again after firstTry, then after twice as long, and so on up to mostBetween. A replica that is tried is a probe here.
const (
	firstTry    = 2 * time.Minute
	mostBetween = 4 * time.Minute
)

// seen is what was seen of the spot capacity of one zone.
type seen struct {
	history  fleet.History
	dry      time.Time
	tryAt    time.Time
	between  time.Duration
	lastLoss time.Time
}

// observer turns what happens to instances into what fleet.Plan observes.
type observer struct {
	zones   []seen
	regions map[string]*fleet.History
}

func newObserver(w *World) *observer {
	o := &observer{zones: make([]seen, len(w.Trace.Zones)), regions: map[string]*fleet.History{}}
	for _, z := range w.Trace.Zones {
		o.regions[z.Region] = &fleet.History{}
	}
	return o
}

// observe takes in what has happened.
func (o *observer) observe(w *World) {
	now := at(w.Now)
	for _, e := range w.Events {
		if !e.Spot {
			continue
		}
		z := &o.zones[e.Zone]
		switch e.Kind {
		case Refused:
			z.refused(now)
		case Granted:
			if !z.dry.IsZero() {
				z.history.Lost(now)
			}
			z.dry, z.tryAt, z.between = time.Time{}, time.Time{}, 0
		case Served:
			z.history.Started(seconds(e.Took))
		case Noticed:
			if !z.lastLoss.Equal(now) {
				o.lost(w, e.Zone, now)
			}
			z.refused(now)
		}
	}
	regions := map[string]bool{}
	for i := range o.zones {
		n := w.Count(i, true, Starting, Ready)
		o.zones[i].history.Ran(now, n > 0)
		if n > 0 {
			regions[w.Trace.Zones[i].Region] = true
		}
	}
	for name, h := range o.regions {
		h.Ran(now, regions[name])
	}
}

// refused notes that a zone has no room for more.
func (z *seen) refused(now time.Time) {
	if z.dry.IsZero() {
		z.dry = now
	}
	if z.tryAt.After(now) {
		return
	}
	z.between = min(max(2*z.between, firstTry), mostBetween)
	z.tryAt = now.Add(z.between)
}

// lost notes that a zone takes instances back.
func (o *observer) lost(w *World, zone int, now time.Time) {
	o.zones[zone].lastLoss = now
	o.zones[zone].history.Lost(now)
	o.regions[w.Trace.Zones[zone].Region].Lost(now)
}

// fleet returns what is known now.
func (o *observer) fleet(w *World) *fleet.Fleet {
	now := at(w.Now)
	f := &fleet.Fleet{Members: make([]fleet.Member, len(o.zones))}
	for i := range o.zones {
		z := &o.zones[i]
		f.Members[i] = fleet.Member{
			Name: w.Trace.Zones[i].Name, Domain: w.Trace.Zones[i].Region,
			Spot: fleet.Supply{
				Room: fleet.Unbounded, DrySince: z.dry, TryAt: z.tryAt, Price: w.SpotPrice(i),
				Start: z.history.Start(seconds(w.Start)), Life: z.history.Life(now), Notice: seconds(w.Notice),
			},
			OnDemand: fleet.Supply{Room: fleet.Unbounded, Price: w.OnDemandPrice(i), Start: seconds(w.Start)},
		}
	}
	for name, h := range o.regions {
		f.Domains = append(f.Domains, fleet.Domain{Name: name, Life: h.Life(now)})
	}
	slices.SortFunc(f.Domains, func(a, b fleet.Domain) int { return cmp.Compare(a.Name, b.Name) })
	return f
}
