package main

import (
	"context"
	"slices"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/bench/internal/bare"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// bareCalls is how many calls a second the bare handler gets. As many as the hub gets would load the machine as much again.
const bareCalls = 100

// startBare starts what waits for the machine as the hub does, and does nothing that a hostile member could make more of: a watch of the
// targets and a handler of admission calls, each a process of its own.
func (s *hostileSite) startBare(ctx context.Context) error {
	kubeconfig, err := s.quiet.DirectKubeconfig(ctx)
	if err != nil {
		return err
	}
	if s.watch, err = bare.StartWatch(ctx, kubeconfig, s.targets[0].Namespace); err != nil {
		return err
	}
	s.handler, err = bare.StartHandler(ctx)
	return err
}

func (s *hostileSite) endBare() {
	if s.watch != nil {
		s.watch.End()
	}
	if s.handler != nil {
		s.handler.End()
	}
}

// bareDelays returns how long after the API server had answered the bare watch had the events of the same writes, sorted.
func (s *hostileSite) bareDelays(ctx context.Context, counted []written) ([]time.Duration, error) {
	delays := make([]time.Duration, 0, len(counted))
	for _, w := range counted {
		err := fleet.Await(ctx, "the bare watch to have version "+w.version, func(context.Context) (bool, error) {
			at, ok, err := s.watch.Received(w.version)
			if ok {
				delays = append(delays, w.until(at))
			}
			return ok, err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(delays)
	return delays, nil
}
