package main

import (
	"context"

	"github.com/plimsoll-dev/plimsoll/test/bench/internal/inprocess"
)

// inProcess is a run that needs no cluster.
func inProcess(run func(context.Context, inprocess.Bench) error) func(*bench, context.Context) error {
	return func(b *bench, ctx context.Context) error {
		return run(ctx, inprocess.Bench{Report: b.report, Logf: b.logf})
	}
}
