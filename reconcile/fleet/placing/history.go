package placing

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/replay"
)

const (
	// historyWrites is how long there is between two writes of the history at least, and historyRetry between two attempts to read it.
	historyWrites = time.Minute
	historyRetry  = 5 * time.Minute
)

// past is the fleet's own history: what became of the supply of members, in a ConfigMap that somebody has made for it.
type past struct {
	into    *corev1.ConfigMap // as it was read or written last; nil: it was not read yet
	known   *replay.History
	changed bool
	asked   time.Time // the last attempt to read or write
	busy    chan error
}

// capacityOf is how many spot replicas a member runs of a placement, as far as that is known.
func (it *item) capacityOf(s *sight) (capacity int, known bool) {
	switch {
	case !s.known && it.since[s.member.Name].IsZero():
		return 0, false
	case !s.known || !it.since[s.member.Name].IsZero():
		return 0, true
	case !s.dry.since.IsZero():
		return s.view.Spot.Ready + s.view.Spot.Starting, true
	}
	return replay.Open, true
}

// remember notes what became of the supply since the last round, and brings it into the ConfigMap when that is due. The hub cluster
// is asked in the background, one thing at a time; only a replica that acts comes here.
func (c *Controller) remember(ctx context.Context, items []*item, now time.Time) {
	p := &c.past
	if c.History.Name == "" || !p.ready(now, c) {
		return
	}
	if p.into == nil {
		c.begin(now, func() error { return c.readHistory(ctx) })
		return
	}
	for _, it := range items {
		if it.stop != nil || it.waits {
			continue
		}
		for _, s := range it.sights {
			if capacity, known := it.capacityOf(s); known && s.out() == "" {
				p.changed = p.known.Note(replay.HistoryKey(it.name(), s.member.Name), it.asked.domains[s.member.Name], capacity, now.Unix()) || p.changed
			}
		}
	}
	if p.changed && now.Sub(p.asked) >= historyWrites {
		files, err := p.known.Files(replay.MaxHistory)
		if err != nil {
			c.Log.Warn("the fleet's history cannot be written", "error", err)
			return
		}
		p.changed = false
		c.begin(now, func() error { return c.writeHistory(ctx, files) })
	}
}

// ready tells whether nothing is under way, and something may be. After an error the history is read anew.
func (p *past) ready(now time.Time, c *Controller) bool {
	if p.busy != nil {
		select {
		case err := <-p.busy:
			p.busy = nil
			if err != nil {
				p.into, p.known, p.changed = nil, nil, false
				c.Log.Warn("the fleet's history is not recorded", "configMap", c.History.String(), "error", err)
			}
		default:
			return false
		}
	}
	return p.into != nil || p.asked.IsZero() || now.Sub(p.asked) >= historyRetry
}

// begin has something done in the background.
func (c *Controller) begin(now time.Time, do func() error) {
	done := make(chan error, 1)
	c.past.asked, c.past.busy = now, done
	c.agents.running.Go(func() { done <- do() })
}

// readHistory reads the ConfigMap. Nobody looks at what it sets until it has returned.
func (c *Controller) readHistory(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, hubWrite)
	defer cancel()
	into := &corev1.ConfigMap{}
	if err := c.Hub.Get(ctx, c.History, into); err != nil {
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("make the ConfigMap first, the hub may not: %w", err)
		}
		return err
	}
	known, err := replay.ReadHistory(into.Data)
	if err != nil {
		return err
	}
	c.past.into, c.past.known = into, known
	return nil
}

// writeHistory writes the ConfigMap, if it is as it was read or written last.
func (c *Controller) writeHistory(ctx context.Context, files map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, hubWrite)
	defer cancel()
	into := c.past.into.DeepCopy()
	into.Data = files
	if err := c.Hub.Update(ctx, into); err != nil {
		return err
	}
	c.past.into = into
	return nil
}
