package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-dev/plimsoll/test/bench/internal/figures"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

const (
	hostileSeed = 12
	// hostileWindow is how long a member is hostile while the others are measured, and calmEvery after how many hostilities it
	// behaves well for as long, to compare with.
	hostileWindow = 8 * time.Second
	calmEvery     = 5
	// hostileRepeats is how often a hostility is tried again that is suspicious: a window is short, and what else the machine does may
	// fall into one. The median counts.
	hostileRepeats  = 8
	hostileSuspects = 6 // as many are tried again at most
	ratioAllowed    = 1.5

	hostileCalls  = 300 // admission calls a second
	hostileWrites = 50  // writes a second that are to be reconciled
	hostileWide   = 24  // replicas that the workloads with a floor are scaled to and back from
	hostileNarrow = 18
	hostileShare  = 50
	hostileFloor  = 6
)

// partLogins names the flood of bad tokens among the parts of the run.
const partLogins = "logins"

// hostile puts a hostile member beside three good ones, and then a flood of bad tokens before the API.
func (b *bench) hostile(ctx context.Context) error {
	var chosen []fleet.Hostility
	for _, hostility := range append(slices.Clone(fleet.Hostilities), fleet.AllHostilities) {
		if len(b.hostilities) == 0 || slices.Contains(b.hostilities, string(hostility)) {
			chosen = append(chosen, hostility)
		}
	}
	var err error
	if len(chosen) > 0 {
		err = b.hostileMembers(ctx, chosen)
	}
	if len(b.hostilities) == 0 || slices.Contains(b.hostilities, partLogins) {
		err = errors.Join(err, b.hostileLogins(ctx))
	}
	return err
}

// hostileMembers has the member do everything that it can, one thing after the other, to the hub of the good members and to one that
// has none, and compares how the good members fare. The member registers again in the middle of each window: hostile or
// not, the hub meets it as a member that changes and as one that joins.
func (b *bench) hostileMembers(ctx context.Context, chosen []fleet.Hostility) (err error) {
	s, err := b.newHostileSite(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close(context.WithoutCancel(ctx))) }()
	breaks := 0
	stop := s.keepScaling(ctx, &breaks)
	err = s.tryAll(ctx, chosen)
	if err := errors.Join(err, stop()); err != nil {
		return err
	}
	if s.here.hub.Ended() {
		return errors.New("the hub has ended")
	}
	b.report.Record("hostile-floor-breaks", float64(breaks))
	s.judge()
	return nil
}

// tryAll measures each hostility at both hubs, and good behaviour in between.
func (s *hostileSite) tryAll(ctx context.Context, chosen []fleet.Hostility) error {
	// The first window does not count. The hub has just taken over, and for some seconds the first spot answer for each owner waits for a
	// live list of its pods: that would pass for what admissions take beside good behaviour.
	if err := s.try(ctx, s.here, fleet.WellBehaved); err != nil {
		return err
	}
	s.windows = nil
	for i, hostility := range chosen {
		if i%calmEvery == 0 {
			if err := s.tryBoth(ctx, fleet.WellBehaved, s.here, s.apart); err != nil {
				return err
			}
		}
		if err := s.tryBoth(ctx, hostility, s.here, s.apart); err != nil {
			return err
		}
	}
	for range hostileSuspects {
		hostility, found := suspicious(s.windows)
		if !found {
			break
		}
		// Either hub is first in every other round: a member that has just become hostile may cost the machine more than one that was
		// hostile in the window before.
		first, second := s.apart, s.here
		for range hostileRepeats {
			if err := errors.Join(s.try(ctx, s.here, fleet.WellBehaved), s.tryBoth(ctx, hostility, first, second)); err != nil {
				return err
			}
			first, second = second, first
		}
	}
	return nil
}

// tryBoth measures a hostility at one hub right after the other: so the rest of the machine does about the same.
func (s *hostileSite) tryBoth(ctx context.Context, hostility fleet.Hostility, first, second *seat) error {
	return errors.Join(s.try(ctx, first, hostility), s.try(ctx, second, hostility))
}

// try measures one window at a hub, with the member new and healthy before it.
func (s *hostileSite) try(ctx context.Context, at *seat, hostility fleet.Hostility) error {
	if err := s.sit(ctx, at); err != nil {
		return err
	}
	if err := s.member.Behave(ctx, hostility); err != nil {
		return err
	}
	w := window{hostility: hostility, apart: at == s.apart}
	s.sent += 1 << 16
	before, err := s.processors()
	if err != nil {
		return err
	}
	calls, bytes := s.member.Called()
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		w.admission, err = s.admissions(groupCtx, s.target, s.bundle, hostileCalls)
		return err
	})
	group.Go(func() (err error) {
		w.bare.admission, err = s.admissions(groupCtx, s.handler.URL, s.handler.Bundle, bareCalls)
		return err
	})
	group.Go(func() (err error) { w.events, w.bare.events, err = s.reconciles(groupCtx); return err })
	group.Go(func() (err error) { w.rss, err = s.memory(groupCtx); return err })
	group.Go(func() error {
		if err := pause(groupCtx, warmup+hostileWindow/2); err != nil {
			return err
		}
		return errors.Join(at.unregister(groupCtx, s.member.Member), at.register(groupCtx, s.member.Member))
	})
	if err := errors.Join(group.Wait(), s.member.Behave(ctx, fleet.WellBehaved)); err != nil {
		return fmt.Errorf("%s: %w", hostility, err)
	}
	after, err := s.processors()
	if err != nil {
		return err
	}
	w.processor, w.load = after.hub-before.hub, after.load-before.load
	w.calls, w.bytes = s.member.Called()
	w.calls, w.bytes = w.calls-calls, w.bytes-bytes
	s.windows = append(s.windows, w)
	s.bench.logf("%-20s admission p99 %6.2f ms (bare %6.2f), event to reconcile p99 %6.2f ms (bare %6.2f), memory %4.0f MB, processor %5.2f s, hostile %5.2f s, %d calls, %.0f MB", nameOf(w),
		figures.Milliseconds(w.admission), figures.Milliseconds(w.bare.admission), figures.Milliseconds(w.events), figures.Milliseconds(w.bare.events), float64(w.rss)/1e6, w.processor.Seconds(), w.load.Seconds(), w.calls, float64(w.bytes)/1e6)
	return nil
}

// processorTimes is the time that two processes have had a processor: the hub with the good members, and this one, in which the hostile member
// runs.
type processorTimes struct{ hub, load time.Duration }

func (s *hostileSite) processors() (u processorTimes, err error) {
	if u.hub, err = s.here.hub.Processor(); err != nil {
		return u, err
	}
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return u, fmt.Errorf("processor time: %w", err)
	}
	u.load = time.Duration(own.Utime.Nano() + own.Stime.Nano())
	return u, nil
}

func nameOf(w window) string {
	switch {
	case w.hostility == fleet.WellBehaved:
		return "well-behaved"
	case w.apart:
		return string(w.hostility) + " (apart)"
	}
	return string(w.hostility)
}

// keepScaling scales the workloads up and down until it is stopped, and then counts how often the hub broke their floors.
func (s *hostileSite) keepScaling(ctx context.Context, breaks *int) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, len(s.workloads))
	tolls := make([]*fleet.Toll, len(s.workloads))
	for i, w := range s.workloads {
		go func() {
			var err error
			tolls[i], err = w.Endure(context.WithoutCancel(ctx), hostileFloor, func(context.Context) error { return scale(ctx, w) })
			done <- err
		}()
	}
	return func() (err error) {
		cancel()
		for range s.workloads {
			err = errors.Join(err, <-done)
		}
		for _, toll := range tolls {
			if toll == nil {
				continue
			}
			*breaks += len(toll.Breaks)
			s.bench.report.Note("hostile: the floor was %d, the fewest on-demand replicas that were ready %d; %d evictions by the hub", hostileFloor, toll.Lowest, toll.ByHub)
		}
		return err
	}
}

// scale goes up and down until ctx ends.
func scale(ctx context.Context, w *fleet.Workload) error {
	for round := 0; ; round++ {
		replicas := []int{hostileWide, hostileNarrow}[round%2]
		err := w.Scale(ctx, replicas)
		if err == nil {
			spot, onDemand := fleet.Want(replicas, hostileShare, hostileFloor)
			err = w.AwaitMix(ctx, spot, onDemand)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if pause(ctx, time.Second) != nil {
			return nil
		}
	}
}

// reconciles writes to the good member's StatefulSets, and returns the p99 of how long the hub took until it reconciled, and the bare watch
// until it had the event.
func (s *hostileSite) reconciles(ctx context.Context) (hub, bare time.Duration, err error) {
	mark, err := s.quiet.Cluster.Audit().Mark()
	if err != nil {
		return 0, 0, err
	}
	s.watch.Forget()
	for _, t := range s.targets {
		t.taken = nil
	}
	group, groupCtx := errgroup.WithContext(ctx)
	ticker := time.NewTicker(time.Second / hostileWrites)
	defer ticker.Stop()
	for i := range hostileWrites * int((warmup+hostileWindow)/time.Second) {
		select {
		case <-ticker.C:
		case <-groupCtx.Done():
			return 0, 0, group.Wait()
		}
		t := s.targets[i%len(s.targets)]
		group.Go(func() error { return t.write(groupCtx, s.here.api, i >= hostileWrites*int(warmup/time.Second)) })
	}
	if err := group.Wait(); err != nil {
		return 0, 0, err
	}
	counted, err := answered(s.targets, map[*fleet.Member]kube.Mark{s.quiet: mark})
	if err != nil {
		return 0, 0, err
	}
	received, err := s.bareDelays(ctx, counted)
	return figures.Quantile(delaysOf(counted), 0.99), figures.Quantile(received, 0.99), err
}

// admissions asks the webhook, or the bare handler, about pods of the good member at a steady rate; p99, from when each call was due.
func (s *hostileSite) admissions(ctx context.Context, target *url.URL, bundle []byte, rate int) (time.Duration, error) {
	result, err := loadApart(ctx, target, bundle, s.recorded, s.owners, load{duration: hostileWindow, rate: rate, first: s.sent})
	if errors.Is(err, errNothingAnswered) {
		return hostileWindow, nil
	}
	if err != nil {
		return 0, err
	}
	return figures.Quantile(result.latencies, 0.99), nil
}

// memory is the most that the hub has resident during a window.
func (s *hostileSite) memory(ctx context.Context) (most int64, err error) {
	for until := time.Now().Add(warmup + hostileWindow); time.Now().Before(until); {
		rss, err := s.here.hub.RSS()
		if err != nil || ctx.Err() != nil {
			return 0, errors.Join(err, ctx.Err())
		}
		most = max(most, rss)
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return 0, err
		}
	}
	return most, nil
}
