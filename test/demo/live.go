package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

const (
	// refresh is how often the table is drawn again.
	refresh = 250 * time.Millisecond
	// tourAfter is how long the table stands still before the demo itself changes a policy.
	tourAfter = 5 * time.Second
	// tourPercent is what web in prod-us is changed to, from 70.
	tourPercent = 20
)

// tourLine is what the demo runs itself, so that replicas move without anybody having typed anything.
var tourLine = kubectlLine("prod-us", fmt.Sprintf("annotate deployment/web plimsoll.dev/spot-percentage=%d --overwrite", tourPercent))

// tourNote says so. It has to fit into a line of a terminal.
var tourNote = fmt.Sprintf("The demo has changed web in prod-us from 70 %% to %d %% on spot.", tourPercent)

// A stop of the tour is something that the demo does by itself, some time after the one before.
type stop struct {
	after time.Duration
	note  string
	do    func(context.Context) error
}

// tour is all that happens without anybody having typed anything.
func (d *demo) tour() []stop {
	return append([]stop{
		{tourAfter, tourNote, func(ctx context.Context) error {
			_, _, err := run(ctx, tourLine)
			return err
		}},
		{droughtAfter, "The demo has taken the spot nodes of " + droughtMember + " away.", d.takeSpotNodes},
		{droughtLasts, "The demo has given " + droughtMember + " spot nodes again: watch replicas return.", d.giveSpotNodes},
	}, d.overFleetTour()...)
}

// show prints the lines to paste and then shows the table until ctx ends.
func (d *demo) show(ctx context.Context) error {
	d.printLines()
	d.printPage()
	d.screen.title("The fleet as the hub reports it (Ctrl-C stops everything)")
	defer d.screen.endLive()
	ticks := time.NewTicker(refresh)
	defer ticks.Stop()
	var shown view
	note := fmt.Sprintf("The demo changes a policy after %.0f seconds.", tourAfter.Seconds())
	stops := d.tour()
	tour := time.NewTimer(stops[0].after)
	defer tour.Stop()
	for {
		now, err := d.look(ctx)
		switch {
		case ctx.Err() != nil:
			return d.whyEnded(ctx)
		case err != nil:
			now, note = shown, "The hub does not answer: "+err.Error()
		}
		d.draw(shown, now, note)
		shown = now
		select {
		case <-ctx.Done():
			return d.whyEnded(ctx)
		case <-tour.C:
			if note = stops[0].note; !d.screen.terminal {
				d.screen.printf("  %s", note)
			}
			if err := stops[0].do(ctx); err != nil && ctx.Err() == nil {
				return err
			}
			if stops = stops[1:]; len(stops) > 0 {
				tour.Reset(stops[0].after)
			}
		case <-ticks.C:
		}
	}
}

// whyEnded is nil when somebody has ended the demo, and else why it ended by itself.
func (d *demo) whyEnded(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// look asks the hub for what the table shows.
func (d *demo) look(ctx context.Context) (now view, err error) {
	if now.clusters, err = d.api.clusters(ctx); err != nil {
		return view{}, err
	}
	if now.placements, err = d.api.placements(ctx); err != nil {
		return view{}, err
	}
	now.workloads, now.unreachable, err = d.api.workloads(ctx)
	return now, err
}

// draw shows the table: in place on a terminal, elsewhere whole at first and then what has changed.
func (d *demo) draw(before, now view, note string) {
	switch {
	case d.screen.terminal:
		d.screen.live(append(now.lines(d.screen), "", "  "+note, ""))
	case before.clusters == nil:
		for _, line := range now.lines(d.screen) {
			d.screen.printf("%s", line)
		}
		d.screen.printf("")
	default:
		for _, change := range changes(before, now) {
			d.screen.printf("  %6.1f s  %s", time.Since(d.begun).Seconds(), change)
		}
	}
}

// changes are the rows that say something else than before.
func changes(before, now view) []string {
	known := slices.Concat(told(before.clusters, tellCluster), told(before.placements, tellPlacement), told(before.workloads, tellWorkload))
	rows := slices.Concat(told(now.clusters, tellCluster), told(now.placements, tellPlacement), told(now.workloads, tellWorkload))
	return slices.DeleteFunc(rows, func(row string) bool { return slices.Contains(known, row) })
}

func told[T any](items []T, tell func(T) string) []string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = tell(item)
	}
	return texts
}

// tellCluster leaves the counts out: its workloads show them.
func tellCluster(c *plimsollv1.Cluster) string {
	return fmt.Sprintf("%s  %s  %s", c.GetName(), word(c.GetState().String(), "CLUSTER_STATE_"), c.GetMessage())
}

func tellPlacement(p *plimsollv1.FleetPlacement) string {
	return fmt.Sprintf("the fleet %s/%s  spot %d/%d  on-demand %d/%d  %s", p.GetNamespace(), p.GetName(),
		p.GetSpot().GetReady(), p.GetSpot().GetWanted(), p.GetOnDemand().GetReady(), p.GetOnDemand().GetWanted(), p.GetReason())
}

func tellWorkload(w *plimsollv1.Workload) string {
	p := w.GetPlacement()
	return fmt.Sprintf("%s %s/%s  spot %d/%d  on-demand %d/%d  %s  %s", w.GetCluster(), w.GetNamespace(), w.GetName(),
		p.GetSpotActual(), p.GetSpotWanted(), p.GetOnDemandActual(), p.GetOnDemandWanted(),
		word(w.GetState().String(), "WORKLOAD_STATE_"), p.GetReason())
}
