package kube

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/plimsoll-dev/plimsoll/test/kube/proc"
)

// launch starts a component's process and notes it, so that it can be found and killed later.
func (c *Cluster) launch(component Component) error {
	// Held throughout: of two callers, and of a caller and Stop, one must see what the other has done.
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return fmt.Errorf("start %s: cluster %s is stopped", component, c.name)
	}
	if p := c.processes[component]; p != nil && !p.Ended() {
		return fmt.Errorf("start %s: it still runs", component)
	}
	p, err := proc.Start(proc.Command{
		Name: string(component), Program: c.binary(component), Args: c.args(component), Env: c.environment(component), Dir: c.dir, Log: c.logFile(component),
	})
	if err != nil {
		return err
	}
	c.processes[component] = p
	go c.reportEnd(p)
	return c.record.add(p.Pid())
}

// binary is a component's program.
func (c *Cluster) binary(component Component) string {
	if component == Karpenter {
		return filepath.Join(karpenterDir(c.bin), "bin", string(component))
	}
	return filepath.Join(c.bin, string(component))
}

// sharedMachine is what the components' runtime is configured with. A member's control plane has machines of its own; here all of them
// share the few processors with what is tested. So they collect garbage less often than Go's default, and each component
// runs on one processor at a time: its threads would only take turns with those of the others.
var sharedMachine = []string{"GOGC=800", "GOMEMLIMIT=2GiB", "GOMAXPROCS=1"}

// environment keeps what the user has set up for other clusters (HOME, KUBECONFIG, proxies) away from the components.
func (c *Cluster) environment(component Component) []string {
	all := append([]string{"HOME=" + c.dir, "TMPDIR=" + c.dir, "PATH=" + os.Getenv("PATH")}, sharedMachine...)
	if component == Karpenter {
		all = append(all, c.karpenter.Load().environment(c)...)
	}
	return all
}

// reportEnd says in the log that a component has ended, unless we ended it.
func (c *Cluster) reportEnd(p *proc.Process) {
	<-p.Done()
	if err := p.Failure(); err != nil {
		c.log.printf("cluster %s: %v", c.name, err)
	}
}

// endedUnasked is an error when a component that should run does not.
func (c *Cluster) endedUnasked() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, component := range c.components() {
		if p := c.processes[component]; p != nil {
			if err := p.Failure(); err != nil {
				return err
			}
		}
	}
	return nil
}
