package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	options := Options{Members: []string{"alpha", "beta"}, Log: os.Stderr}
	flag.Uint64Var(&options.Seed, "seed", 0, "seed of faults and load; 0: any, which is printed")
	flag.DurationVar(&options.Duration, "duration", 10*time.Minute, "how long to do faults")
	flag.StringVar(&options.Dir, "dir", filepath.Join("build", "robustness", "last"), "folder for the history and the replicas' logs")
	out := flag.String("out", filepath.Join("build", "bench.json"), "file that the figures are merged into")
	flag.Parse()
	if options.Seed == 0 {
		options.Seed = rand.Uint64N(1e9)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := robustness(ctx, options, *out)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "robustness:", err)
		os.Exit(1)
	}
}

// robustness does a run, prints its outcome, and fails when something was found.
func robustness(ctx context.Context, options Options, out string) error {
	fmt.Printf("seed %d: make robustness SEED=%d DURATION=%s\n", options.Seed, options.Seed, options.Duration)
	if err := os.MkdirAll(options.Dir, 0o755); err != nil {
		return err
	}
	if _, err := os.Stat(skewedBinary()); err != nil {
		fmt.Println("wrong clocks are not tried: build/robustness/plimsoll-hub-skewed is missing, which `make robustness` builds")
	}
	outcome, err := Run(ctx, options)
	if outcome == nil {
		return err
	}
	outcome.print(os.Stdout)
	if err == nil { // what did not come to its end shows nothing
		err = mergeFigures(out, outcome.figures())
	}
	if err == nil {
		err = outcome.enough(options)
	}
	if !outcome.clean() {
		err = errors.Join(err, fmt.Errorf("something was found with seed %d; what happened is in %s", options.Seed, options.Dir))
	}
	return err
}
