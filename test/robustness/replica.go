package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// A replica is a place for one process of the hub after the other.
type replica struct {
	site *site
	name string
	hub  *fleet.Replica
	// peer is the address at which other replicas reach it, and can be held.
	peer *fleet.Balancer

	mu       sync.Mutex
	process  *process // nil: none is wanted
	number   int      // of processes that there were
	problems error    // processes that ended after they had been ready, though nobody asked them to
}

// A process is a running hub.
type process struct {
	*fleet.Process
	name string
	api  *fleet.API
}

func newReplica(s *site, name, hubKubeconfig string) (*replica, error) {
	r := &replica{site: s, name: name}
	var err error
	if r.peer, err = fleet.NewBalancer(); err != nil {
		return nil, err
	}
	r.hub, err = s.fleet.NewReplica(name, fleet.Settings{
		"hub.kubeconfig": hubKubeconfig, "peer.advertise": r.peer.Address(),
		"leaderElection.leaseDuration": leaseDuration.String(), "leaderElection.renewDeadline": renewDeadline.String(),
		"leaderElection.retryPeriod": retryPeriod.String(),
		"controller.resyncPeriod":    "10s", "clusters.probeInterval": "2s", "spot.moveCooldown": "1s", "spot.maxMoves": "30%",
	})
	if err != nil {
		r.peer.Close()
		return nil, err
	}
	r.peer.Add(r.hub.Peer)
	return r, nil
}

// start runs a process whose clock is wrong by skew, and does not wait for it to be ready.
func (r *replica) start(ctx context.Context, skew time.Duration) error {
	binary, err := fleet.HubBinary()
	var environment []string
	if skew != 0 {
		binary, environment = skewedBinary(), []string{skewVariable + "=" + skew.String()}
	}
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process != nil {
		return fmt.Errorf("%s runs already", r.name)
	}
	if err := r.launch(binary, environment); err != nil {
		return err
	}
	r.site.fleet.Balancer.Add(r.hub.Webhook)
	return ctx.Err()
}

// launch starts a process, and others after it as long as they end before they are ready. The caller holds mu.
func (r *replica) launch(binary string, environment []string) error {
	started, err := r.hub.Launch(binary, environment...)
	if err != nil {
		return err
	}
	r.number++
	p := &process{Process: started, name: processName(r.name, r.number)}
	r.site.connections.add(started.Pid(), p.name)
	if p.api, err = r.hub.Connect(); err != nil {
		return errors.Join(err, started.Kill())
	}
	r.process = p
	go r.supervise(p, binary, environment)
	return nil
}

// restartAfter is how long a process that ended before it was ready is not started again.
const restartAfter = time.Second

// supervise waits until a process has ended. One that could not start is started again, as a kubelet does it: a hub ends at
// once when it does not reach its cluster. One that had been ready may not end unasked.
func (r *replica) supervise(p *process, binary string, environment []string) {
	ready := false
	for look := time.NewTicker(100 * time.Millisecond); !p.Ended(); {
		select {
		case <-p.Done():
		case <-look.C:
			if ready = ready || p.Ready(context.Background()); ready {
				look.Stop()
			}
		}
	}
	failure := p.Failure()
	if failure == nil {
		return
	}
	time.Sleep(restartAfter)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process != p { // it was ended meanwhile
		return
	}
	if ready {
		r.problems = errors.Join(r.problems, fmt.Errorf("process %s ended, and nobody had asked it to: %w", p.name, failure))
	}
	p.api.Close()
	r.site.connections.remove(p.Pid())
	if err := r.launch(binary, environment); err != nil {
		r.problems = errors.Join(r.problems, fmt.Errorf("start %s again: %w", r.name, err))
	}
}

// ended are the processes that ended when they should not.
func (r *replica) ended() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.problems
}

// current is the process that runs, or is about to be started again; nil when none is wanted.
func (r *replica) current() *process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.process
}

// kill ends the process without warning.
func (r *replica) kill() error { return r.end(func(p *process) error { return p.Kill() }) }

// stop asks the process to end, and waits until it has.
func (r *replica) stop(ctx context.Context) error {
	return r.end(func(p *process) error { return p.Stop(ctx) })
}

func (r *replica) end(end func(*process) error) error {
	r.mu.Lock()
	p := r.process
	r.process = nil
	r.mu.Unlock()
	if p == nil {
		return nil
	}
	err := end(p)
	r.site.fleet.Balancer.Remove(r.hub.Webhook)
	p.api.Close()
	r.site.connections.remove(p.Pid())
	return err
}

// acts reports whether the process says that it acts.
func (r *replica) acts(ctx context.Context) (bool, error) {
	samples, err := r.hub.Samples(ctx)
	if err != nil {
		return false, err
	}
	if owner := samples["plimsoll_owner"]; len(owner) == 1 {
		return owner[0].Value == 1, nil
	}
	return false, fmt.Errorf("%s does not say whether it acts", r.name)
}

// names reports whether an identity in the Lease is of one of this replica's processes.
func (r *replica) names(identity string) bool {
	return strings.HasSuffix(identity, "/"+r.peer.Address())
}

// keepLog copies what its processes have said.
func (r *replica) keepLog() error {
	content, err := os.ReadFile(r.hub.LogFile)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.site.options.Dir, r.name+".log"), content, 0o600)
}
