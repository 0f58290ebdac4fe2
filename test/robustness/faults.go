package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// A fault is something bad that is done and ends.
type fault struct {
	name string
	// do does it to a replica, and returns when it is over. hold is how long it lasts where that is not up to the fault.
	do func(ctx context.Context, s *site, on *replica, random *rand.Rand, hold time.Duration) error
}

// A lane is a list of faults of which one goes on at a time. Lanes go on beside each other, so each fault of one meets those of
// the other.
type lane struct {
	name   string
	faults []fault
}

// lanes are the faults of processes, and those of what is between and beneath them.
var lanes = []lane{{"processes", processFaults}, {"surroundings", append(append(linkFaults, leaseFaults...), storeFaults...)}}

// Injection is a fault that was done.
type Injection struct {
	Fault, Replica string
	From, To       time.Time
	// Error that it ended with; empty: it was done as it should.
	Error string
}

// blinds reports whether a replica may have seen nothing of members meanwhile: not what others did, and not what was asked for.
func (i *Injection) blinds() bool { return blinding[i.Fault] }

// A schedule chooses faults: every fault of a lane once in an order of its own, and then again in another.
type schedule struct {
	random *rand.Rand
	faults []fault
	left   []fault
}

func newSchedule(seed uint64, number int, faults []fault) *schedule {
	return &schedule{random: rand.New(rand.NewPCG(seed, uint64(number))), faults: faults}
}

// next is the next fault, and how long it is to last.
func (s *schedule) next() (fault, time.Duration) {
	if len(s.left) == 0 {
		s.left = slices.Clone(s.faults)
		s.random.Shuffle(len(s.left), func(i, j int) { s.left[i], s.left[j] = s.left[j], s.left[i] })
	}
	chosen := s.left[0]
	s.left = s.left[1:]
	return chosen, time.Second + time.Duration(s.random.Int64N(int64(leaseDuration)))
}

// A campaign does faults and remembers them.
type campaign struct {
	site      *site
	schedules []*schedule

	mu   sync.Mutex
	done []Injection
}

func newCampaign(s *site, seed uint64) *campaign {
	c := &campaign{site: s}
	for number, lane := range lanes {
		c.schedules = append(c.schedules, newSchedule(seed, number, lane.faults))
	}
	return c
}

// run does faults in all lanes until a lane has tried enough; those that have begun are brought to their end.
func (c *campaign) run(ctx context.Context, enough func(tried int) bool) {
	var all sync.WaitGroup
	for _, s := range c.schedules {
		all.Go(func() {
			for tried := 0; !enough(tried) && ctx.Err() == nil; tried++ {
				c.inject(ctx, s)
			}
		})
	}
	all.Wait()
}

func (c *campaign) inject(ctx context.Context, s *schedule) {
	chosen, hold := s.next()
	on := c.target(ctx, s.random)
	done := Injection{Fault: chosen.name, Replica: on.name, From: time.Now()}
	err := chosen.do(ctx, c.site, on, s.random, hold)
	if errors.Is(err, errNotNow) {
		return
	}
	if done.To = time.Now(); err != nil {
		done.Error = err.Error()
	}
	c.site.options.logf("%-28s %s for %.1f s %s", done.Fault, done.Replica, done.To.Sub(done.From).Seconds(), done.Error)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = append(c.done, done)
}

// errNotNow says that a fault makes no sense now, and that nothing was done.
var errNotNow = errors.New("it makes no sense now")

// target chooses the replica that the Lease names, mostly, for nobody would notice what happens to the others.
func (c *campaign) target(ctx context.Context, random *rand.Rand) *replica {
	chance, any := random.Float64(), random.IntN(replicas)
	running := c.site.running()
	reading, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if holder := c.site.holder(reading); holder != nil && chance < 0.7 {
		return holder
	}
	if len(running) == 0 {
		return c.site.replicas[any]
	}
	return running[any%len(running)]
}

// injections are all faults so far, and an error when one could not be done.
func (c *campaign) injections() ([]Injection, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var problems []error
	for _, done := range c.done {
		if done.Error != "" {
			problems = append(problems, fmt.Errorf("fault %s of %s: %s", done.Fault, done.Replica, done.Error))
		}
	}
	return slices.Clone(c.done), errors.Join(problems...)
}

// wait waits for a time, or for the end of ctx.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
