package kube

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
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
	c.expectEnd(p)
	if err := errors.Join(p.signal(syscall.SIGTERM), p.signal(syscall.SIGCONT)); err != nil {
		return fmt.Errorf("cluster %s: %w", c.name, err)
	}
	timeout := time.NewTimer(stopGrace)
	defer timeout.Stop()
	select {
	case <-p.done:
		return nil
	case <-timeout.C:
		return p.kill()
	}
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
func (c *Cluster) HangAPIServer() error { return c.freeze(APIServer, true) }

// ResumeAPIServer lets a frozen API server go on.
func (c *Cluster) ResumeAPIServer() error { return c.freeze(APIServer, false) }

// Kill ends a component without warning and returns when it has gone. Revive starts it again.
func (c *Cluster) Kill(component Component) error {
	p, err := c.process(component)
	if err != nil {
		return err
	}
	c.expectEnd(p)
	if err := p.kill(); err != nil {
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
		if !p.ended() {
			pids[component] = p.pid()
		}
	}
	return pids
}

// freeze stops a process where it is, or lets it go on.
func (c *Cluster) freeze(component Component, frozen bool) error {
	p, err := c.process(component)
	if err != nil {
		return err
	}
	if p.ended() {
		return fmt.Errorf("cluster %s: %s does not run", c.name, component)
	}
	s := syscall.SIGCONT
	if frozen {
		s = syscall.SIGSTOP
	}
	p.frozen.Store(frozen)
	if err := p.signal(s); err != nil {
		return fmt.Errorf("cluster %s: %w", c.name, err)
	}
	return nil
}
