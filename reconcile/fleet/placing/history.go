package placing

import (
	"cmp"
	"context"
	"time"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/replay"
)

const (
	// historyWrites is how long there is between two writes of the history at least, and historyRetry between two attempts to read it.
	historyWrites = time.Minute
	historyRetry  = 5 * time.Minute
)

// past is the fleet's own history: the result of the supply of members, kept where somebody has made room for it.
type past struct {
	known   *replay.History // nil: it was not read yet
	shapes  map[place]string
	dropped int // of known, as they were counted
	changed bool
	asked   time.Time // the last attempt to read or write
	busy    chan error
	stale   bool // what was read is another replica's to write by now; see rest
}

// place is a FleetPlacement in a member. The shape of its pods is remembered, for a member that is out of reach shows none.
type place struct{ placement, member string }

// supplyOf is the supply of a member for pods of one shape, as all FleetPlacements show it that have such pods.
type supplyOf struct {
	replay.Observation
	reached, dry bool
	runs         int // on spot
}

// capacity of it. A supply that takes replicas has no limit that is known, and a dry one still has what it runs.
func (s *supplyOf) capacity() int {
	switch {
	case !s.reached:
		return 0
	case s.dry:
		return s.runs
	}
	return replay.Open
}

// observe returns what is seen of all supplies now.
func (p *past) observe(items []*item, now time.Time) []*supplyOf {
	type key struct{ shape, member string }
	found, shapes := map[key]*supplyOf{}, map[place]string{}
	var all []*supplyOf
	for _, it := range items {
		if it.stop != nil || it.waits {
			continue
		}
		same := it.shape()
		for _, s := range it.sights {
			where := place{it.name(), s.member.Name}
			shape := cmp.Or(s.view.Requirements, p.shapes[where], same)
			if shape == "" || s.out() != "" {
				continue
			}
			shapes[where] = shape
			away := !it.since[s.member.Name].IsZero()
			if !s.known && !away {
				continue
			}
			supply := found[key{shape, s.member.Name}]
			if supply == nil {
				supply = &supplyOf{Observation: replay.Observation{Requirements: shape, Member: s.member.Name, At: now.Unix()}}
				found[key{shape, s.member.Name}] = supply
				all = append(all, supply)
			}
			supply.Region = cmp.Or(supply.Region, it.asked.domains[s.member.Name])
			supply.Placements = append(supply.Placements, it.name())
			if s.known && !away {
				supply.reached, supply.dry = true, supply.dry || !s.dry.since.IsZero()
				supply.runs += s.view.Spot.Ready + s.view.Spot.Starting
			}
		}
	}
	p.shapes = shapes
	for _, supply := range all {
		supply.Capacity = supply.capacity()
	}
	return all
}

// shape is that of its pods in the first member that shows one.
func (it *item) shape() string {
	for _, s := range it.sights {
		if s.view.Requirements != "" {
			return s.view.Requirements
		}
	}
	return ""
}

// remember notes the result of the supply since the last round, and has it written when that is due. It is read and written in the
// background, one thing at a time; only a replica that acts comes here.
func (c *Controller) remember(ctx context.Context, items []*item, members []Member, now time.Time) {
	c.keeping.Lock()
	defer c.keeping.Unlock()
	p := &c.past
	if c.archive == nil || !p.ready(now, c) {
		return
	}
	if p.known == nil {
		c.begin(now, func() error { return c.readPast(ctx) })
		return
	}
	for _, supply := range p.observe(items, now) {
		p.changed = p.known.Note(&supply.Observation) || p.changed
	}
	if now.Sub(c.acts) >= warmTime { // before, the registrations may not all be known
		p.changed = p.known.End(namesOf(members), now.Unix()) || p.changed
	}
	c.metrics.kept(p.known.Entries(), p.known.Bytes(), p.known.Dropped()-p.dropped)
	p.dropped = p.known.Dropped()
	if p.changed && now.Sub(p.asked) >= historyWrites {
		p.changed = false
		c.begin(now, func() error { return c.archive.write(ctx, p.known) })
	}
}

func namesOf(members []Member) []string {
	names := make([]string, len(members))
	for i := range members {
		names[i] = members[i].Name
	}
	return names
}

// Flush writes what the history has noted since it was written last, which may be a minute's, and waits until that is done or ctx ends. It
// is called before this replica gives up its right to act: another one writes after that.
func (c *Controller) Flush(ctx context.Context) {
	c.keeping.Lock()
	defer c.keeping.Unlock()
	p := &c.past
	p.wait(ctx)
	if c.archive == nil || !p.ready(c.clock(), c) || p.known == nil || !p.changed || !c.options.ActsAny() {
		return
	}
	p.changed = false
	c.begin(c.clock(), func() error { return c.archive.write(ctx, p.known) })
	p.wait(ctx)
	p.ready(c.clock(), c) // says what went wrong
}

// wait returns when nothing is under way, or ctx has ended.
func (p *past) wait(ctx context.Context) {
	if p.busy == nil {
		return
	}
	select {
	case err := <-p.busy:
		p.busy <- err // it is looked at by ready
	case <-ctx.Done():
	}
}

// restPast is [past.rest], for rounds.
func (c *Controller) restPast() {
	c.keeping.Lock()
	defer c.keeping.Unlock()
	c.past.rest()
}

// readPast reads the history. Nobody looks at what it sets until it has returned.
func (c *Controller) readPast(ctx context.Context) (err error) {
	c.past.known, err = c.archive.read(ctx)
	return err
}

// ready reports whether nothing is under way, and something may be. After an error the history is read again.
func (p *past) ready(now time.Time, c *Controller) bool {
	if p.busy != nil {
		select {
		case err := <-p.busy:
			p.busy = nil
			if p.stale {
				*p = past{}
			} else if err != nil {
				p.known, p.dropped, p.changed = nil, 0, false
				c.options.Log.Warn("the fleet's history is not recorded", "into", c.archive.String(), "error", err)
			}
		default:
			return false
		}
	}
	return p.known != nil || p.asked.IsZero() || now.Sub(p.asked) >= historyRetry
}

// rest forgets what was read: until this replica acts again, another one writes. What is under way ends first.
func (p *past) rest() {
	if p.busy != nil {
		p.stale = true
		return
	}
	*p = past{}
}

// begin has something done in the background.
func (c *Controller) begin(now time.Time, do func() error) {
	done := make(chan error, 1)
	c.past.asked, c.past.busy = now, done
	c.agents.running.Go(func() { done <- do() })
}
