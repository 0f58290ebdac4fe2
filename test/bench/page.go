package main

import (
	"context"
	"fmt"

	webpage "github.com/plimsoll-dev/plimsoll/test/page"
)

const (
	// demoMembers are as many as the demo has.
	demoMembers = 3
	// pageMembers have ten workloads each.
	pageMembers = 1000
)

// page measures the web page in headless Chromium, in front of a simulated fleet behind the API's ports.
// Without Chromium nothing is measured.
func (b *bench) page(ctx context.Context) error {
	if _, err := webpage.FindChromium(); err != nil {
		b.report.note("page was not measured: %v", err)
		return nil
	}
	small, err := webpage.MeasurePaint(ctx, webpage.NewFleet(demoMembers), demoMembers)
	if err != nil {
		return fmt.Errorf("%d members: %w", demoMembers, err)
	}
	large, err := webpage.MeasurePaint(ctx, webpage.NewFleet(pageMembers), pageMembers)
	if err != nil {
		return fmt.Errorf("%d members: %w", pageMembers, err)
	}
	b.report.record("page-first-paint-ms", float64(small.First.Milliseconds()))
	b.report.record("page-kb", small.Bytes/1000)
	b.report.record("page-1000-members-ms", float64(large.Whole.Milliseconds()))
	b.report.note("page: %d members with all tiles painted after %s, %.0f KB; %d members and %d workloads after %s, the first tile after %s, %.0f KB",
		demoMembers, small.Whole, small.Bytes/1000, pageMembers, 10*pageMembers, large.Whole, large.First, large.Bytes/1000)
	return nil
}
