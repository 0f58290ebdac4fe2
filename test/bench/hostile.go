package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

const (
	hostileSeed = 12
	// hostileWindow is how long a member is hostile while the others are measured, and calmEvery after how many hostilities it
	// behaves well for as long, to compare with.
	hostileWindow = 4 * time.Second
	calmEvery     = 5
	// hostileRepeats is how often a hostility is tried again whose ratio is above ratioAllowed: a window is short, and what
	// else the machine does may fall into one. The median counts.
	hostileRepeats  = 2
	hostileSuspects = 4 // of them the worst are tried again
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

// hostileMembers has the member do everything that it can, one thing after the other, and compares the good members and the
// hub's memory with how they are while it behaves well. The member registers anew in the middle of each window: hostile or
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
	if s.hub.Ended() {
		return errors.New("the hub has ended")
	}
	b.report.record("hostile-floor-breaks", float64(breaks))
	s.judge()
	return nil
}

// A window is what was measured while the member did one thing.
type window struct {
	hostility         fleet.Hostility
	admission, events time.Duration // p99
	rss               int64         // the most
	processor         time.Duration // that the hub took
}

// tryAll measures each hostility, and good behaviour in between.
func (s *hostileSite) tryAll(ctx context.Context, chosen []fleet.Hostility) error {
	for i, hostility := range chosen {
		if i%calmEvery == 0 {
			if err := s.try(ctx, fleet.WellBehaved); err != nil {
				return err
			}
		}
		if err := s.try(ctx, hostility); err != nil {
			return err
		}
	}
	for _, hostility := range s.suspicious() {
		for range hostileRepeats {
			if err := errors.Join(s.try(ctx, fleet.WellBehaved), s.try(ctx, hostility)); err != nil {
				return err
			}
		}
	}
	return nil
}

// try measures one window, with the member new and healthy before it.
func (s *hostileSite) try(ctx context.Context, hostility fleet.Hostility) error {
	if err := s.rejoin(ctx); err != nil {
		return err
	}
	if err := s.api.AwaitMembers(ctx, s.member.Member); err != nil {
		return err
	}
	if err := s.member.Behave(ctx, hostility); err != nil {
		return err
	}
	w := window{hostility: hostility}
	before, err := s.hub.Processor()
	if err != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() (err error) { w.admission, err = s.admissions(groupCtx); return err })
	group.Go(func() (err error) { w.events, err = s.reconciles(groupCtx); return err })
	group.Go(func() (err error) { w.rss, err = s.memory(groupCtx); return err })
	group.Go(func() error {
		if err := pause(groupCtx, warmup+hostileWindow/2); err != nil {
			return err
		}
		return s.rejoin(groupCtx)
	})
	if err := errors.Join(group.Wait(), s.member.Behave(ctx, fleet.WellBehaved)); err != nil {
		return fmt.Errorf("%s: %w", hostility, err)
	}
	after, err := s.hub.Processor()
	if err != nil {
		return err
	}
	w.processor = after - before
	s.windows = append(s.windows, w)
	s.bench.logf("%-20s admission p99 %6.2f ms, event to reconcile p99 %6.2f ms, memory %4.0f MB, processor %4.2f s", nameOf(hostility),
		milliseconds(w.admission), milliseconds(w.events), float64(w.rss)/1e6, w.processor.Seconds())
	return nil
}

func nameOf(hostility fleet.Hostility) string {
	if hostility == fleet.WellBehaved {
		return "well-behaved"
	}
	return string(hostility)
}

// rejoin takes the member out and registers it again.
func (s *hostileSite) rejoin(ctx context.Context) error {
	return errors.Join(s.bench.fleet.Unregister(ctx, s.member.Member), s.bench.fleet.Register(ctx, s.member.Member))
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
			s.bench.report.note("hostile: the floor was %d, the fewest on-demand replicas that were ready %d; %d evictions by the hub", hostileFloor, toll.Lowest, toll.ByHub)
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

// reconciles writes to the good member's StatefulSets, and returns how long the hub took until it reconciled, p99.
func (s *hostileSite) reconciles(ctx context.Context) (time.Duration, error) {
	mark, err := s.quiet.Cluster.Audit().Mark()
	if err != nil {
		return 0, err
	}
	for _, t := range s.targets {
		t.starts = nil
	}
	group, groupCtx := errgroup.WithContext(ctx)
	ticker := time.NewTicker(time.Second / hostileWrites)
	defer ticker.Stop()
	for i := range hostileWrites * int((warmup+hostileWindow)/time.Second) {
		select {
		case <-ticker.C:
		case <-groupCtx.Done():
			return 0, group.Wait()
		}
		t := s.targets[i%len(s.targets)]
		group.Go(func() error { return t.write(groupCtx, s.api, i >= hostileWrites*int(warmup/time.Second)) })
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	delays, err := eventDelays(s.targets, map[*fleet.Member]kube.Mark{s.quiet: mark})
	if err != nil {
		return 0, err
	}
	return quantile(delays, 0.99), nil
}

// admissions asks the webhook about pods of the good member at a steady rate; p99, from when each call was due.
func (s *hostileSite) admissions(ctx context.Context) (time.Duration, error) {
	s.sent += 1 << 16
	result, err := loadApart(ctx, s.target, s.bundle, s.recorded, s.owners, load{duration: hostileWindow, rate: hostileCalls, first: s.sent})
	if errors.Is(err, errNothingAnswered) {
		return hostileWindow, nil
	}
	if err != nil {
		return 0, err
	}
	return quantile(result.latencies, 0.99), nil
}

// memory is the most that the hub has resident during a window.
func (s *hostileSite) memory(ctx context.Context) (most int64, err error) {
	for until := time.Now().Add(warmup + hostileWindow); time.Now().Before(until); {
		rss, err := s.hub.RSS()
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
