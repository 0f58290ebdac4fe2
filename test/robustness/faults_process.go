package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// processFaults are what happens to a replica's process.
var processFaults = []fault{
	{"killed", killed}, {"frozen", frozen}, {"terminated while frozen", terminatedFrozen}, {"terminated", terminated},
	{"clock 30 s ahead", clockWrong(30 * time.Second)}, {"clock 30 s behind", clockWrong(-30 * time.Second)},
}

// stopTime is how long a replica may take to stop: it drains, and waits for writes under way.
const stopTime = 45 * time.Second

// killed is SIGKILL, and another process after a while.
func killed(ctx context.Context, _ *site, on *replica, _ *rand.Rand, hold time.Duration) error {
	if on.current() == nil {
		return errNotNow
	}
	err := on.kill()
	wait(ctx, hold)
	return errors.Join(err, on.start(ctx, 0))
}

// frozen is SIGSTOP until others have surely noticed, and SIGCONT.
func frozen(ctx context.Context, _ *site, on *replica, _ *rand.Rand, hold time.Duration) error {
	p := on.current()
	if p == nil {
		return errNotNow
	}
	err := p.Freeze()
	wait(ctx, leaseDuration+hold)
	err = errors.Join(err, p.Thaw())
	wait(ctx, time.Second)
	return err
}

// terminatedFrozen is a replica that is asked to stop while it stands still, and learns of it when somebody else acts.
func terminatedFrozen(ctx context.Context, _ *site, on *replica, _ *rand.Rand, hold time.Duration) error {
	p := on.current()
	if p == nil {
		return errNotNow
	}
	err := errors.Join(p.Freeze(), p.Terminate())
	wait(ctx, leaseDuration+hold)
	return errors.Join(err, p.Thaw(), restart(ctx, on, 0))
}

// terminated is SIGTERM, and another process afterwards.
func terminated(ctx context.Context, _ *site, on *replica, _ *rand.Rand, hold time.Duration) error {
	if on.current() == nil {
		return errNotNow
	}
	err := restart(ctx, on, 0)
	wait(ctx, hold)
	return err
}

// clockWrong is a replica that is started again with a wrong clock, and stays until it is ended.
func clockWrong(skew time.Duration) func(context.Context, *site, *replica, *rand.Rand, time.Duration) error {
	return func(ctx context.Context, _ *site, on *replica, _ *rand.Rand, hold time.Duration) error {
		if _, err := os.Stat(skewedBinary()); on.current() == nil || err != nil {
			return errNotNow
		}
		err := restart(ctx, on, skew)
		wait(ctx, leaseDuration+hold)
		return err
	}
}

// restart stops a replica in order and starts another process.
func restart(ctx context.Context, on *replica, skew time.Duration) error {
	stopping, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	if err := on.stop(stopping); err != nil {
		return fmt.Errorf("stop %s: %w", on.name, err)
	}
	return on.start(ctx, skew)
}

// skewVariable says to the hub that skewed/build.sh has built by how much its clock is wrong. It does not begin with PLIMSOLL_: the hub
// refuses to start with such variables that are not keys of its configuration.
const skewVariable = "ROBUSTNESS_CLOCK_SKEW"

// skewedBinary is a hub with a clock that can be wrong.
func skewedBinary() string {
	binary, err := fleet.HubBinary()
	if err != nil {
		return ""
	}
	return filepath.Join(filepath.Dir(filepath.Dir(binary)), "robustness", "plimsoll-hub-skewed")
}
