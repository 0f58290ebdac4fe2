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

	mu      sync.Mutex
	process *process // nil: none runs
	number  int      // of processes that there were
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
	r.site.fleet.Balancer.Add(r.hub.Webhook)
	return ctx.Err()
}

// current is the process that runs; nil when none does. One that ended unasked counts as running until it is killed.
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
	p := r.current()
	if p == nil {
		return nil
	}
	var err error
	if p.Ended() {
		err = fmt.Errorf("process %s has ended unasked", p.name)
	}
	err = errors.Join(err, end(p))
	r.site.fleet.Balancer.Remove(r.hub.Webhook)
	r.mu.Lock()
	defer r.mu.Unlock()
	p.api.Close()
	r.site.connections.remove(p.Pid())
	r.process = nil
	return err
}

// acts tells whether the process says that it acts.
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

// names tells whether an identity in the Lease is of one of this replica's processes.
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
