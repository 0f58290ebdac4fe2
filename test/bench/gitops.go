package main

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/gitops"
)

// gitops measures from the commit of a workload to its replicas being ready where its policy wants them, in three members, by
// way of the real Flux with intervals of 5 s.
func (b *bench) gitops(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "plimsoll-gitops-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	site, err := gitops.Start(ctx, ".", dir, fleet.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, site.Stop()) }()
	hub, err := site.StartHub(ctx, io.Discard)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hub.Stop()) }()
	if err := site.Register(ctx); err != nil {
		return err
	}
	if err := hub.AwaitMembers(ctx, site); err != nil {
		return err
	}
	begun := time.Now()
	if err := site.CommitApps(ctx, "."); err != nil {
		return err
	}
	if err := site.AwaitPlaced(ctx, map[string]int{"staging": 70, "production": 70}); err != nil {
		return err
	}
	b.report.Record("gitops-commit-to-placed-s", time.Since(begun).Seconds())
	return nil
}
