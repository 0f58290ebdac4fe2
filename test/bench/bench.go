package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-dev/plimsoll/test/bench/internal/figures"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// bench is what all runs share.
type bench struct {
	fleet  *fleet.Fleet // nil until a run needs it
	report *figures.Report
	begun  time.Time
	// members are how many are simulated.
	members int

	// The hub of the runs that take it as it is by default; nil while no such run is on.
	hub *fleet.Process
	api *fleet.API
	// replicas counts those that were ever made, for their names.
	replicas int
	logs     []string
	// hostilities are the parts of the run hostile that are wanted; none: all.
	hostilities []string
}

func newBench() *bench { return &bench{report: figures.New(), begun: time.Now(), members: manyMembers} }

// startFleet starts the clusters and registers the members.
func (b *bench) startFleet(ctx context.Context) error {
	if _, err := fleet.HubBinary(); err != nil {
		return err
	}
	b.logf("start a hub cluster and three members")
	started, err := fleet.Start(ctx, fleet.Options{Members: []string{"alpha", "beta", "gamma"}})
	if err != nil {
		return err
	}
	if err := started.Register(ctx, started.Members...); err != nil {
		return errors.Join(err, started.Stop())
	}
	b.fleet = started
	return nil
}

// logf says on standard error how far we are.
func (b *bench) logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%7.1fs  %s\n", time.Since(b.begun).Seconds(), fmt.Sprintf(format, args...))
}

// perform does one run, with the hub that it needs.
func (b *bench) perform(ctx context.Context, r run) error {
	if !r.alone && b.fleet == nil {
		if err := b.startFleet(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	if r.alone {
		return r.do(b, ctx)
	}
	if r.needs == nil {
		if err := b.stopHub(ctx); err != nil {
			return err
		}
	} else if b.hub == nil {
		if err := b.startHub(ctx, r.needs); err != nil {
			return err
		}
	}
	return r.do(b, ctx)
}

// startHub starts the hub that runs share.
func (b *bench) startHub(ctx context.Context, settings fleet.Settings) (err error) {
	b.hub, b.api, err = b.startReplica(ctx, settings)
	if err != nil {
		return err
	}
	return b.api.AwaitMembers(ctx, b.fleet.Members...)
}

// startReplica starts one hub process, in the balancer's rotation.
func (b *bench) startReplica(ctx context.Context, settings fleet.Settings) (*fleet.Process, *fleet.API, error) {
	b.replicas++
	replica, err := b.fleet.NewReplica(fmt.Sprintf("hub-%d", b.replicas), settings)
	if err != nil {
		return nil, nil, err
	}
	b.logs = append(b.logs, replica.LogFile)
	process, err := replica.StartProcess(ctx)
	if err != nil {
		return nil, nil, err
	}
	api, err := replica.Connect()
	if err != nil {
		return nil, nil, errors.Join(err, process.Kill())
	}
	b.fleet.Balancer.Add(replica.Webhook)
	return process, api, nil
}

// stopReplica ends one hub process in order.
func (b *bench) stopReplica(ctx context.Context, process *fleet.Process, api *fleet.API) error {
	b.fleet.Balancer.Remove(process.Webhook)
	api.Close()
	return process.Stop(ctx)
}

// stopHub ends the hub that runs share.
func (b *bench) stopHub(ctx context.Context) error {
	if b.hub == nil {
		return nil
	}
	hub, api := b.hub, b.api
	b.hub, b.api = nil, nil
	return b.stopReplica(ctx, hub, api)
}

// close ends everything, and keeps logs if it is asked to.
func (b *bench) close(keep bool) error {
	if b.fleet == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	problems := []error{b.stopHub(ctx)}
	if keep {
		problems = append(problems, b.keepLogs())
	}
	return errors.Join(append(problems, b.fleet.Stop())...)
}

// keepLogs copies what the hubs and the clusters said to build/logs/bench.
func (b *bench) keepLogs() error {
	var problems []error
	for _, m := range b.fleet.Members {
		where, err := m.Cluster.KeepLogs("bench")
		problems = append(problems, err)
		b.logf("logs: %s", where)
	}
	dir := filepath.Join("build", "logs", "bench")
	for _, log := range b.logs {
		content, err := os.ReadFile(log)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(log)), content, 0o600)
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// eachMember does something in all members at once.
func (b *bench) eachMember(ctx context.Context, do func(ctx context.Context, m *fleet.Member) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, m := range b.fleet.Members {
		group.Go(func() error { return do(ctx, m) })
	}
	return group.Wait()
}

// pause waits for d. It returns ctx's error if that ends first.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
