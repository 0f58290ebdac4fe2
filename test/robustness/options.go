package main

import (
	"fmt"
	"io"
	"time"
)

// Options say what run to do.
type Options struct {
	// Seed of the order of faults and of the load. The same seed gives the same faults in the same order; what they meet is
	// also up to the machine.
	Seed uint64
	// Duration of the faults, without start and judgement.
	Duration time.Duration
	// Faults of each lane instead: one round of so many, however long they take. 0: as many as fit into Duration.
	Faults int
	// Members that the hub has.
	Members []string
	// Dir gets the history and the replicas' logs; it is made.
	Dir string
	// Log receives a line for each step.
	Log io.Writer
}

const (
	// replicas that there are at most; every other round is done with one less.
	replicas = 3
	// roundTime is how long faults go on until all are healed and everything has to come to rest.
	roundTime = 75 * time.Second
	// restTime is how long that may take, on a machine that others use as well.
	restTime = 3 * time.Minute
)

// The Lease of the replicas. It is short, so that much can happen to it.
const (
	leaseDuration = 5 * time.Second
	renewDeadline = 3 * time.Second
	retryPeriod   = time.Second
	// writeTime is how long before its end no write begins any more, and so how long one may be on its way.
	writeTime = leaseDuration / 3
)

func (o *Options) logf(format string, args ...any) {
	_, _ = fmt.Fprintf(o.Log, time.Now().Format(clock)+"  "+format+"\n", args...) // a log that cannot be written changes nothing
}

// clock is how times are written.
const clock = "15:04:05.000"
