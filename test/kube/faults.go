package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/kube/proc"
)

// stopGrace is how long the API server gets to end in order. With watches open it would take up to a minute.
const stopGrace = 5 * time.Second

// StopAPIServer ends the API server and returns when its process has gone. The port stays ours, and connections to it
// are refused. Stopping it again is no error.
func (c *Cluster) StopAPIServer() error {
	p, err := c.process(APIServer)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	// One that takes longer is killed, which is as good.
	if err := p.Stop(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("cluster %s: %w", c.name, err)
	}
	return nil
}

// StartAPIServer starts the API server again, at the same address and with the same data, and waits until it is ready.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	if err := c.launch(APIServer); err != nil {
		return fmt.Errorf("cluster %s: %w", c.name, err)
	}
	if err := c.awaitAPIServer(ctx); err != nil {
		return fmt.Errorf("cluster %s: %w", c.name, err)
	}
	return nil
}

// HangAPIServer freezes the API server: connections are accepted by the kernel, and nothing is ever answered. Frozen
// for longer than a node's lease (40 s), it finds all nodes lost when it wakes up.
func (c *Cluster) HangAPIServer() error { return c.do(APIServer, (*proc.Process).Freeze) }

// ResumeAPIServer lets a frozen API server go on.
func (c *Cluster) ResumeAPIServer() error { return c.do(APIServer, (*proc.Process).Thaw) }

// Kill ends a component without warning and returns when it has gone. Revive starts it again.
func (c *Cluster) Kill(component Component) error {
	p, err := c.process(component)
	if err != nil {
		return err
	}
	if err := p.Kill(); err != nil {
		return fmt.Errorf("cluster %s: %w", c.name, err)
	}
	return nil
}

// Revive starts a component that was killed. It waits for the API server to be ready, and for nothing else.
func (c *Cluster) Revive(ctx context.Context, component Component) error {
	if component == APIServer {
		return c.StartAPIServer(ctx)
	}
	if _, err := c.process(component); err != nil {
		return err
	}
	if err := c.launch(component); err != nil {
		return fmt.Errorf("cluster %s: %w", c.name, err)
	}
	return nil
}

// Pids are the process ids of the components that run now.
func (c *Cluster) Pids() map[Component]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	pids := map[Component]int{}
	for component, p := range c.processes {
		if !p.Ended() {
			pids[component] = p.Pid()
		}
	}
	return pids
}

// do does something with the process of a component that runs.
func (c *Cluster) do(component Component, what func(*proc.Process) error) error {
	p, err := c.process(component)
	if err != nil {
		return err
	}
	if p.Ended() {
		return fmt.Errorf("cluster %s: %s does not run", c.name, component)
	}
	if err := what(p); err != nil {
		return fmt.Errorf("cluster %s: %w", c.name, err)
	}
	return nil
}
