package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-dev/plimsoll/test/kube"
	"github.com/plimsoll-dev/plimsoll/test/kube/proc"
)

// demo is everything that runs.
type demo struct {
	screen *screen
	begun  time.Time
	place  *place
	// fail ends everything with a reason.
	fail context.CancelCauseFunc

	hubCluster *kube.Cluster   // holds the hub's state; the hub itself is a process on this machine
	members    []*kube.Cluster // in the order of memberNames
	hub        *proc.Process
	ports      ports
	api        *api

	untouched []string // what was in the member that leaves, before it joined
}

func main() {
	check := flag.Bool("check", false, "check what the demo shows, and exit")
	flag.Parse()
	os.Exit(start(*check))
}

// start runs the demo and returns the exit status.
func start(check bool) int {
	// The first signal ends things in order. The second one ends this process, and its children die with it.
	ctx, restore := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer restore()
	context.AfterFunc(ctx, restore)

	d := &demo{screen: newScreen(os.Stdout), begun: time.Now()}
	failed, err := d.run(ctx, check)
	switch {
	case err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled):
		d.screen.printf("\n  interrupted")
		return 130
	case err != nil:
		fmt.Fprintf(os.Stderr, "\ndemo: %v\n", err)
		return 1
	case failed > 0:
		return 1
	}
	return 0
}

// run does everything, and cleans up whatever happens. It returns how many checks have failed.
func (d *demo) run(ctx context.Context, check bool) (failed int, err error) {
	if err := enterRepository(); err != nil {
		return 0, err
	}
	if d.place, err = takePlace(); err != nil {
		return 0, err
	}
	ctx, d.fail = context.WithCancelCause(ctx)
	defer d.fail(nil)
	d.screen.title("Plimsoll: one hub and three clusters, on real Kubernetes API servers with simulated nodes")
	err = d.setup(ctx)
	switch {
	case err != nil:
	case check:
		failed, err = d.check(ctx)
	default:
		err = d.show(ctx)
	}
	if err != nil && !errors.Is(context.Cause(ctx), context.Canceled) {
		d.keepLogs()
	}
	return failed, errors.Join(err, d.stop())
}

// stop ends the hub and the clusters and removes what they left. It may be called again.
func (d *demo) stop() error {
	if d.place == nil {
		return nil
	}
	return d.screen.step("stopping hub and clusters", func() (string, error) {
		var problems []error
		done := "everything is stopped and removed"
		if d.api != nil {
			d.api.close()
		}
		if d.hub != nil {
			done += ", except " + hubLog
			problems = append(problems, stopHub(d.hub)) // before its clusters: it hands over and says goodbye
		}
		var group errgroup.Group
		for _, c := range d.clusters() {
			group.Go(c.Stop)
		}
		problems = append(problems, group.Wait(), d.place.leave())
		d.api, d.hub, d.hubCluster, d.members, d.place = nil, nil, nil, nil, nil
		return done, errors.Join(problems...)
	})
}

// keepLogs keeps the clusters' logs for whoever looks into a failure.
func (d *demo) keepLogs() {
	for _, c := range d.clusters() {
		if where, err := c.KeepLogs("demo"); err == nil {
			d.screen.printf("    the logs of cluster %s are in %s", c.Name(), where)
		}
	}
}
