package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// Run does faults under load for the duration, and judges what came of it. An error says that the run itself did not work, or
// that the hub did not come to rest when everything was healed; the outcome may be there as well.
func Run(ctx context.Context, options Options) (*Outcome, error) {
	s, err := startSite(ctx, options)
	if s != nil {
		defer func() {
			if err := s.stop(); err != nil {
				options.logf("stop: %v", err)
			}
		}()
	}
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	r := &run{site: s, options: options, campaign: newCampaign(s, options.Seed), slow: &slowness{}}
	defer r.measure(ctx)()
	if r.load, err = newLoad(ctx, s, options.Seed); err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	defer r.load.close()
	if err := r.rest(ctx); err != nil {
		return nil, fmt.Errorf("before any fault: %w", err)
	}
	broke := r.rounds(ctx)
	r.load.pause()
	outcome, err := r.judge(broke == nil)
	for _, replica := range s.replicas {
		err = errors.Join(err, replica.ended())
	}
	return outcome, errors.Join(broke, err)
}

// A run is one in progress.
type run struct {
	site     *site
	options  Options
	campaign *campaign
	load     *load
	slow     *slowness
}

// measure looks how slow everything is, until what it returns is called.
func (r *run) measure(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var measuring sync.WaitGroup
	for _, m := range r.site.fleet.Members {
		config := m.Cluster.Config()
		config.Host, config.CAData = m.Proxy.URL(), m.Proxy.CAData()
		measuring.Go(func() {
			if err := r.slow.measure(ctx, config); err != nil {
				r.options.logf("measure %s: %v", m.Name, err)
			}
		})
	}
	return func() {
		cancel()
		measuring.Wait()
	}
}

// rounds does faults, and has everything come to rest from time to time. Every other round is done with one replica less.
func (r *run) rounds(ctx context.Context) error {
	if n := r.options.Faults; n > 0 {
		return r.round(ctx, 0, func(tried int) bool { return tried >= n })
	}
	end := time.Now().Add(r.options.Duration)
	for round := 0; time.Now().Before(end) && ctx.Err() == nil; round++ {
		until := time.Now().Add(roundTime)
		if until.After(end) {
			until = end
		}
		if err := r.round(ctx, round, func(int) bool { return !time.Now().Before(until) }); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (r *run) round(ctx context.Context, number int, enough func(tried int) bool) error {
	if err := r.staff(ctx, number%2 == 0); err != nil {
		return err
	}
	r.load.start(ctx, number)
	r.campaign.run(ctx, enough)
	r.load.pause()
	if err := r.rest(ctx); err != nil {
		return fmt.Errorf("after round %d: %w", number+1, err)
	}
	r.options.logf("round %d is over, and all has come to rest", number+1)
	return nil
}

// staff has all replicas run, or all but the last.
func (r *run) staff(ctx context.Context, all bool) error {
	last := r.site.replicas[replicas-1]
	switch runs := last.current() != nil; {
	case all && !runs:
		return last.start(ctx, 0)
	case !all && runs:
		stopping, cancel := context.WithTimeout(ctx, stopTime)
		defer cancel()
		return last.stop(stopping)
	}
	return nil
}

// rest heals everything and waits until one replica acts, all workloads are as they were wished, and every order has come to
// its end.
func (r *run) rest(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, restTime)
	defer cancel()
	r.site.heal()
	if err := r.site.awaitActing(ctx); err != nil {
		return err
	}
	if err := r.load.settle(ctx); err != nil {
		return err
	}
	owner := r.site.holder(ctx)
	if owner == nil || owner.current() == nil {
		return errors.New("the Lease names no replica that runs")
	}
	workloads := make([]*fleet.Workload, 0, len(r.load.subjects))
	for _, s := range r.load.subjects {
		workloads = append(workloads, s.workload)
	}
	return r.load.orders.settle(ctx, owner.current(), workloads)
}

// judge reads all logs and judges. Without rest at the end nobody knows what would have become of the orders that are open.
func (r *run) judge(rested bool) (*Outcome, error) {
	faults, problems := r.campaign.injections()
	grants, evictions := r.site.tape.read()
	v := &Outcome{Faults: faults}
	since := sightOf(faults, r.slow)
	var writes []Write
	for _, m := range r.site.fleet.Members {
		events, err := m.Cluster.Audit().Events()
		if err != nil {
			return v, errors.Join(problems, err)
		}
		writes = append(writes, writesIn(m.Name, events)...)
		v.BudgetBreaks = append(v.BudgetBreaks, budgetBreaks(m.Name, events, evictions)...)
		for _, s := range r.load.subjects {
			if s.workload.Member != m {
				continue
			}
			career, err := s.career(events)
			problems = errors.Join(problems, err)
			v.Evictions += len(career.EvictedBy)
			v.FloorBreaks = append(v.FloorBreaks, floorBreaks(career, since)...)
		}
		v.Skipped += len(filter(events, kube.WebhookSkipped))
	}
	v.DoubleWrites, v.Undecided = doubleWrites(grants, writes, r.slow)
	orders, runs := r.load.orders.read()
	v.LostOrders = lostOrders(orders, runs, rested, ownerChanged(grants, faults))
	v.Writes, v.Orders, v.Grants = len(writes), len(orders), len(grants)
	for _, of := range tenures(grants) {
		v.Tenures += len(of)
	}
	v.Slowest = r.slow.longest(time.Time{}, time.Now())
	return v, errors.Join(problems, r.keep(v, grants, writes, evictions, orders, runs))
}

// career puts together what became of a workload.
func (s *subject) career(events []kube.AuditEvent) (*Career, error) {
	moments, err := s.history.Moments()
	return &Career{
		Workload: s.workload.String(), Moments: moments, Wishes: s.list(), Steady: s.steady,
		EvictedBy: evictedBy(filter(events, kube.All(kube.Evictions, kube.InNamespace(s.workload.Namespace)))),
	}, err
}

func filter(events []kube.AuditEvent, passes kube.Filter) (passed []kube.AuditEvent) {
	for _, e := range events {
		if passes(e) {
			passed = append(passed, e)
		}
	}
	return passed
}
