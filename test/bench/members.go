package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/simulated"
)

const (
	// manyMembers is what figures are promised for.
	manyMembers = 300
	// manySteady is how long members are watched after all have joined: each is probed at least twice.
	manySteady = 25 * time.Second
	// slowAnswers is how late the slow member answers from the start, slowerAnswers how late it answers later.
	slowAnswers, slowerAnswers = 2 * time.Second, 2500 * time.Millisecond
	// brokenWatches is how many members have watches that end, and brokenFor how long.
	brokenWatches = 10
	brokenFor     = 30 * time.Second
)

// A crowd is a hub process with simulated members.
type crowd struct {
	fleet   *fleet.Fleet
	members []*simulated.Member
	hub     *fleet.Process
}

// manyAtOnce measures what a hub makes of 300 simulated members, or as many as the command line says: joining, its own restart, slow answers, and watches that end.
func (b *bench) manyAtOnce(ctx context.Context) (err error) {
	if b.members <= brokenWatches {
		return fmt.Errorf("members: %d are too few, the watches of %d are broken", b.members, brokenWatches+1)
	}
	simulation, err := simulated.Start("member", b.members)
	if err != nil {
		return err
	}
	defer simulation.Close()
	c := &crowd{members: simulation.Members}
	if c.fleet, err = fleet.Start(ctx, fleet.Options{}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.fleet.Stop()) }()
	for _, step := range []func(context.Context, *crowd) error{b.joinAtOnce, b.restartWithAll, b.slowMember, b.watchesEnd} {
		if err = step(ctx, c); err != nil {
			break
		}
	}
	if c.hub != nil {
		if err != nil {
			b.logf("the hub's log is kept: %s", keepLog(c.hub.LogFile))
		}
		err = errors.Join(err, c.hub.Stop(ctx))
	}
	return err
}

// keepLog copies a hub's log to where logs are kept, and returns where that is.
func keepLog(file string) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	kept, err := os.CreateTemp("", "plimsoll-members-*.log")
	if err != nil {
		return err.Error()
	}
	_, err = kept.Write(content)
	if err = errors.Join(err, kept.Close()); err != nil {
		return err.Error()
	}
	return kept.Name()
}

// start starts a hub process.
func (c *crowd) start(ctx context.Context, name string) error {
	replica, err := c.fleet.NewReplica(name, fleet.Settings{})
	if err != nil {
		return err
	}
	c.hub, err = replica.StartProcess(ctx)
	return err
}

// register makes the registration Secrets of members, many at a time.
func (c *crowd) register(ctx context.Context, members ...*simulated.Member) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(32)
	for _, m := range members {
		group.Go(func() error { return c.fleet.Hub.Client().Create(ctx, fleet.Registration(m.Name, m.Kubeconfig())) })
	}
	return group.Wait()
}

// changes are what the hub has called its members so far.
func (c *crowd) changes() (map[string][]simulated.Change, error) {
	log, err := os.ReadFile(c.hub.LogFile)
	return simulated.Changes(log), err
}

// awaitReady waits until the hub calls members Ready, and returns when the last became so.
func (c *crowd) awaitReady(ctx context.Context, members ...*simulated.Member) (last time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, max(3*time.Minute, time.Duration(len(members))*time.Second))
	defer cancel()
	err = fleet.Await(ctx, fmt.Sprintf("%d simulated members to be ready", len(members)), func(context.Context) (bool, error) {
		changes, err := c.changes()
		if err != nil {
			return false, err
		}
		var waiting []string
		for _, m := range members {
			of := changes[m.Name]
			if len(of) == 0 || of[len(of)-1].State != "Ready" {
				waiting = append(waiting, m.Name)
			} else if at := of[len(of)-1].At; at.After(last) {
				last = at
			}
		}
		if len(waiting) > 0 {
			return false, fmt.Errorf("%d are not, %s is %v", len(waiting), waiting[0], changes[waiting[0]])
		}
		return true, nil
	})
	return last, err
}

// faulted are the members that the hub has ever called anything but joining or ready.
func (b *bench) faulted(c *crowd) (float64, error) {
	changes, err := c.changes()
	if err != nil {
		return 0, err
	}
	wrong := map[string]bool{}
	for member, of := range changes {
		for _, change := range of {
			if !change.Healthy() {
				wrong[member] = true
				b.logf("member %s was reported as %s, %s: %s", member, change.State, change.Reason, change.Message)
			}
		}
	}
	return float64(len(wrong)), nil
}

// joinAtOnce registers all members at the same time.
func (b *bench) joinAtOnce(ctx context.Context, c *crowd) error {
	if err := c.start(ctx, "join"); err != nil {
		return err
	}
	began := time.Now()
	if err := c.register(ctx, c.members...); err != nil {
		return err
	}
	last, err := c.awaitReady(ctx, c.members...)
	if err != nil {
		return err
	}
	return b.countFaulted(ctx, c, "join", last.Sub(began))
}

// restartWithAll restarts the hub while all members are registered.
func (b *bench) restartWithAll(ctx context.Context, c *crowd) error {
	if err := c.hub.Stop(ctx); err != nil {
		return err
	}
	began := time.Now()
	if err := c.start(ctx, "restart"); err != nil {
		return err
	}
	last, err := c.awaitReady(ctx, c.members...)
	if err != nil {
		return err
	}
	return b.countFaulted(ctx, c, "restart", last.Sub(began))
}

// countFaulted records how many members were called ill by and by, some time after all have joined.
func (b *bench) countFaulted(ctx context.Context, c *crowd, what string, took time.Duration) error {
	if err := pause(ctx, manySteady); err != nil {
		return err
	}
	wrong, err := b.faulted(c)
	if err != nil {
		return err
	}
	memory, err := c.hub.RSS()
	if err != nil {
		return err
	}
	asked := map[string]int{}
	for _, m := range c.members {
		for kind, n := range m.Requests() {
			asked[kind] += n
		}
	}
	b.report.Record(what+"-false-unreachable", wrong)
	b.report.Note("%s of %d simulated members: all ready after %.1f s, the hub takes %.0f MB; requests so far: %v",
		what, len(c.members), took.Seconds(), float64(memory)/1e6, asked)
	return nil
}

// slowMember registers one more member, which is slow, and has one of the others become slow.
func (b *bench) slowMember(ctx context.Context, c *crowd) error {
	simulation, err := simulated.Start("slow", 1)
	if err != nil {
		return err
	}
	defer simulation.Close()
	slow, slower := simulation.Members[0], c.members[0]
	slow.Delay(slowAnswers)
	began := time.Now()
	if err := c.register(ctx, slow); err != nil {
		return err
	}
	slower.Delay(slowerAnswers)
	ready, err := c.awaitReady(ctx, slow)
	if err != nil {
		return err
	}
	if err := pause(ctx, manySteady); err != nil {
		return err
	}
	b.report.Record("slow-member-ready-s", ready.Sub(began).Seconds())
	wrong, err := b.faulted(c)
	if err == nil && wrong > 0 {
		err = fmt.Errorf("%g members were called unreachable or degraded that are slow", wrong)
	}
	slower.Delay(0)
	return errors.Join(err, client.IgnoreNotFound(c.fleet.Hub.Client().Delete(ctx, fleet.Registration(slow.Name, nil))))
}

// watchesEnd has the watches of ten members keep ending, each way in some of them, and measures until all are open again.
// Beside them one member says that versions are too old: what it has must be listed again, so it has a figure of its own.
func (b *bench) watchesEnd(ctx context.Context, c *crowd) error {
	ways := slices.DeleteFunc(simulated.Faults(), func(f simulated.Fault) bool { return f == simulated.Expired })
	broken, before := map[*simulated.Member]simulated.Fault{}, map[*simulated.Member][]string{}
	for i, m := range c.members[:brokenWatches+1] {
		broken[m], before[m] = simulated.Expired, m.Watched()
		if i > 0 {
			broken[m] = ways[i%len(ways)]
		}
		m.Break(broken[m])
	}
	if err := pause(ctx, brokenFor); err != nil {
		return err
	}
	over := time.Now()
	for m := range broken {
		m.Break(simulated.None)
	}
	took := map[simulated.Fault]time.Duration{}
	err := fleet.Await(ctx, "all watches to be open again", func(context.Context) (bool, error) {
		closed := 0
		for m, way := range broken {
			if !slices.Equal(m.Watched(), before[m]) {
				took[way] = time.Since(over)
				closed++
			}
		}
		if closed > 0 {
			return false, fmt.Errorf("%d members have fewer watches than before", closed)
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	worst := time.Duration(0)
	for _, way := range ways {
		worst = max(worst, took[way])
	}
	b.report.Record("watch-reopen-s", worst.Seconds())
	b.report.Note("watches were broken for %s in %d members; open again after, by way: %v", brokenFor, len(broken), took)
	return nil
}
