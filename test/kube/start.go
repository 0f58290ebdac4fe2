package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/kube/proc"
)

const (
	// startTimeout bounds a start whose context has no deadline. It takes seconds; four at once on a busy machine of
	// two cores take longer.
	startTimeout = 3 * time.Minute
	// pollInterval is how often we look whether something has come true.
	pollInterval = 20 * time.Millisecond
)

// Start starts one control plane on loopback ports of its own and waits until it is ready: the API server answers
// and, unless it is minimal, the controllers work. ctx bounds the start only; the cluster runs until Stop, or until
// this process ends in whatever way. An error names the component that failed and ends with the last lines of its log.
func Start(ctx context.Context, opts Options) (*Cluster, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	bin, err := BinDir()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	c, err := prepare(opts, bin)
	if err != nil {
		return nil, fmt.Errorf("start cluster %s: %w", opts.Name, err)
	}
	if err := c.run(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start cluster %s: %w", opts.Name, err), c.Stop())
	}
	return c, nil
}

// StartFleet starts a cluster for each name, all at once. When one fails, none is left running. Options.Dir, when
// given, gets a folder for each cluster.
func StartFleet(ctx context.Context, names []string, opts Options) ([]*Cluster, error) {
	fleet := make([]*Cluster, len(names))
	group, groupCtx := errgroup.WithContext(ctx)
	for i, name := range names {
		one := opts
		one.Name = name
		if opts.Dir != "" {
			one.Dir = filepath.Join(opts.Dir, name)
		}
		group.Go(func() (err error) {
			fleet[i], err = Start(groupCtx, one)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		problems := []error{err}
		for _, c := range fleet {
			if c != nil {
				problems = append(problems, c.Stop())
			}
		}
		return nil, errors.Join(problems...)
	}
	return fleet, nil
}

// prepare makes everything that the processes need: a folder that will be cleaned up whatever happens, ports,
// certificates and configuration. What it made is gone again when it fails.
func prepare(opts Options, bin string) (_ *Cluster, err error) {
	sweepLeftovers()
	c := &Cluster{
		name: opts.Name, opts: opts, bin: bin, dir: opts.Dir,
		log:       &lineWriter{out: opts.Log},
		processes: map[Component]*proc.Process{},
	}
	if c.dir == "" {
		c.owned = true
		if c.dir, err = os.MkdirTemp("", "plimsoll-"+opts.Name+"-"); err != nil {
			return nil, fmt.Errorf("make a folder: %w", err)
		}
	}
	if c.dir, err = filepath.Abs(c.dir); err != nil {
		return nil, err
	}
	if _, err := os.Stat(c.file("etcd")); err == nil {
		return nil, fmt.Errorf("folder %s already holds a cluster's state: name another one, or remove it", c.dir)
	}
	if c.record, err = newRecord(c.dir, c.owned); err != nil {
		if c.owned {
			_ = os.RemoveAll(c.dir)
		}
		return nil, err
	}
	if err := c.furnish(); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// furnish holds the ports and writes the files that the components read.
func (c *Cluster) furnish() (err error) {
	for _, port := range []**heldPort{&c.etcdPort, &c.peerPort, &c.apiPort} {
		if *port, err = holdPort(); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(c.file("logs"), 0o700); err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	if err := c.writeCredentials(); err != nil {
		return err
	}
	if err := c.writeConfiguration(); err != nil {
		return err
	}
	c.client, err = c.newClient()
	return err
}

// run starts the components and waits until they work.
func (c *Cluster) run(ctx context.Context) error {
	begun := time.Now()
	// One after the other: whoever finds the part that it needs missing waits for a second before it looks again.
	if err := c.launch(Etcd); err != nil {
		return err
	}
	if err := c.awaitEtcd(ctx); err != nil {
		return err
	}
	if err := c.launch(APIServer); err != nil {
		return err
	}
	if err := c.awaitAPIServer(ctx); err != nil {
		return err
	}
	c.log.printf("cluster %s: API server ready after %s", c.name, time.Since(begun).Round(time.Millisecond))
	if c.opts.Minimal {
		return nil
	}
	if err := errors.Join(c.launch(ControllerManager), c.launch(Scheduler), c.launch(Kwok)); err != nil {
		return err
	}
	if err := c.awaitControllers(ctx); err != nil {
		return err
	}
	c.log.printf("cluster %s: ready after %s", c.name, time.Since(begun).Round(time.Millisecond))
	return nil
}

// awaitEtcd waits until etcd accepts connections.
func (c *Cluster) awaitEtcd(ctx context.Context) error {
	return c.await(ctx, "etcd to listen", func(ctx context.Context) (bool, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", c.etcdPort.address())
		if err != nil {
			return false, nil
		}
		return true, conn.Close()
	})
}

// awaitAPIServer waits until the API server says that it is ready.
func (c *Cluster) awaitAPIServer(ctx context.Context) error {
	transport, err := rest.HTTPClientFor(c.Config())
	if err != nil {
		return err
	}
	ready := proc.OK(transport, c.URL()+"/readyz")
	return c.await(ctx, "the API server to be ready", func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		return ready(ctx) == nil, nil
	})
}

// awaitControllers waits for the first thing that the controllers do and pods cannot be made without.
func (c *Cluster) awaitControllers(ctx context.Context) error {
	return c.await(ctx, "the controllers to make the default service account", func(ctx context.Context) (bool, error) {
		err := c.client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "default"}, &corev1.ServiceAccount{})
		return err == nil, nil
	})
}

// await polls until the condition holds, and stops at once when a component has ended, with the end of its log.
func (c *Cluster) await(ctx context.Context, what string, condition wait.ConditionWithContextFunc) error {
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		if err := c.endedUnasked(); err != nil {
			return false, err
		}
		return condition(ctx)
	})
	if err != nil {
		return fmt.Errorf("wait for %s: %w", what, err)
	}
	return nil
}
