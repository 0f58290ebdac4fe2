package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	webpage "github.com/plimsoll-dev/plimsoll/test/page"
)

const (
	// pageWorkloads are as many in each member as in the demo's, with pageReplicas each.
	pageWorkloads = 3
	pageReplicas  = 11
	// pageMembers are simulated, with ten workloads each.
	pageMembers = 1000
)

// page measures the web page in headless Chromium: of a hub with three members, and of a simulated fleet behind the API's ports. Without
// Chromium nothing is measured.
func (b *bench) page(ctx context.Context) error {
	if _, err := webpage.FindChromium(); err != nil {
		b.report.Note("page was not measured: %v", err)
		return nil
	}
	if err := b.realPage(ctx); err != nil {
		return err
	}
	large, err := webpage.MeasureWorld(ctx, webpage.NewFleet(pageMembers), pageMembers)
	if err != nil {
		return fmt.Errorf("%d members: %w", pageMembers, err)
	}
	b.report.Record("page-1000-members-ms", float64(large.Whole.Milliseconds()))
	b.report.Note("page: %d members and %d workloads, the first tile after %s, all of them after %s, %.0f KB",
		pageMembers, 10*pageMembers, large.First, large.Whole, large.Bytes/1000)
	return nil
}

// realPage opens the page of the hub that runs share, with a fleet like the demo's.
func (b *bench) realPage(ctx context.Context) (err error) {
	var workloads []*fleet.Workload
	defer func() {
		for _, w := range workloads {
			err = errors.Join(err, discard(ctx, w))
		}
	}()
	for _, m := range b.fleet.Members {
		namespace, err := m.NewNamespace(ctx, "page", fleet.Enabled())
		if err != nil {
			return err
		}
		for i := range pageWorkloads {
			w, err := m.Create(ctx, fleet.Deployment(namespace, fmt.Sprintf("web-%d", i), pageReplicas, fleet.Policy(burstPercent, burstFloor)))
			if err != nil {
				return err
			}
			workloads = append(workloads, w)
		}
	}
	for _, w := range workloads {
		if err := b.api.Settle(ctx, w, pageReplicas); err != nil {
			return err
		}
	}
	paint, err := webpage.MeasurePaint(ctx, "http://"+b.hub.REST+"/ui/", "", len(b.fleet.Members))
	if err != nil {
		return err
	}
	b.report.Record("page-first-paint-ms", float64(paint.First.Milliseconds()))
	b.report.Record("page-kb", paint.Bytes/1000)
	return nil
}
