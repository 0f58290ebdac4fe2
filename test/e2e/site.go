package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// A Site is two replicas of the hub and three members, all in containers, with a workload in each member that is under load.
type Site struct {
	Hub     *Cluster
	Members []*Cluster

	yard     *yard
	files    string // what replicas mount
	caller   *caller
	recorder *recorder
	load     *load
	started  int // replicas that were ever made, for their names

	mu       sync.Mutex
	replicas []*Replica
}

// Start starts everything, with the workloads where their policies want them, and then the load. dir is a folder for files that
// the caller removes. What killed runs have left is removed first.
func Start(ctx context.Context, dir string) (_ *Site, err error) {
	if err := EngineReady(ctx); err != nil {
		return nil, err
	}
	s := &Site{}
	if s.yard, err = newYard(ctx); err != nil {
		return nil, err
	}
	if err := s.start(ctx, dir); err != nil {
		return nil, errors.Join(err, errors.New(s.Logs()), s.Stop())
	}
	return s, nil
}

func (s *Site) start(ctx context.Context, dir string) (err error) {
	if err := s.startClusters(ctx, dir); err != nil {
		return err
	}
	if err := s.installHub(ctx, dir); err != nil {
		return err
	}
	for _, m := range s.Members {
		if err := errors.Join(m.apply(ctx, "member"), s.register(ctx, m)); err != nil {
			return err
		}
	}
	s.recorder = record(s.Hub, s.Members)
	install, err := release(Install)
	if err != nil {
		return err
	}
	for range 2 {
		if _, err := s.startReplica(ctx, install); err != nil {
			return err
		}
	}
	if err := s.caller.trust(ctx, s.Hub); err != nil {
		return err
	}
	begin := Policy{Replicas: 20, Percent: 70}
	for _, m := range s.Members {
		if err := m.createWorkloads(ctx, begin); err != nil {
			return err
		}
	}
	for _, m := range s.Members {
		if err := m.awaitMix(ctx, web, begin.want()); err != nil {
			return err
		}
	}
	s.load = startLoad(s)
	return nil
}

func (s *Site) startClusters(ctx context.Context, dir string) error {
	names := []string{"hub", "prod-eu", "prod-us", "staging"}
	all := make([]*Cluster, len(names))
	group, starting := errgroup.WithContext(ctx)
	for i, name := range names {
		group.Go(func() (err error) {
			all[i], err = startCluster(starting, s.yard, dir, name, i == 0)
			return err
		})
	}
	err := group.Wait()
	s.Hub, s.Members = all[0], all[1:]
	return err
}

// installHub brings what the chart has beside the Deployment, and somebody who may use the API.
func (s *Site) installHub(ctx context.Context, dir string) (err error) {
	if err := s.Hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fleet.Namespace}}); err != nil {
		return err
	}
	if err := s.Hub.apply(ctx, "kustomize", "base"); err != nil {
		return err
	}
	if s.caller, err = newCaller(ctx, s.Hub); err != nil {
		return err
	}
	return s.hubFiles(ctx, dir)
}

// register makes the registration Secret of a member, in whose network the hub finds it by its name.
func (s *Site) register(ctx context.Context, m *Cluster) error {
	token, err := m.token(ctx, "plimsoll-hub")
	if err != nil {
		return err
	}
	kubeconfig, err := m.kubeconfigFor(token)
	if err != nil {
		return err
	}
	return s.Hub.Create(ctx, fleet.Registration(m.Name, kubeconfig))
}

// Replicas are those that were started and not taken away, running or not.
func (s *Site) Replicas() []*Replica {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.replicas)
}

// Logs are the last lines of every replica.
func (s *Site) Logs() (all string) {
	for _, r := range s.Replicas() {
		all += r.Name + ":\n" + s.yard.logs(r.Name, 40) + "\n"
	}
	return all
}

// Stop ends the load and removes everything.
func (s *Site) Stop() error {
	if s.load != nil {
		s.load.close()
	}
	if s.recorder != nil {
		s.recorder.close()
	}
	for _, r := range s.Replicas() {
		r.close()
	}
	return s.yard.clear()
}

// Kill ends a replica without warning.
func (s *Site) Kill(ctx context.Context, r *Replica) error { return s.yard.kill(ctx, r.Name, "KILL") }

// cut takes a replica out of all its networks. This machine still reaches it.
func (s *Site) cut(ctx context.Context, r *Replica) error {
	for network := range s.networksOf(r) {
		if err := s.yard.disconnect(ctx, network, r.Name); err != nil {
			return err
		}
	}
	return nil
}

// reconnect puts a replica that was cut off back.
func (s *Site) reconnect(ctx context.Context, r *Replica) error {
	for network, alias := range s.networksOf(r) {
		if err := s.yard.connect(ctx, network, r.Name, alias); err != nil {
			return err
		}
	}
	return nil
}

// roll replaces all replicas by those of another release as a Deployment does that may have one more and none less: each goes
// when its successor is ready.
func (s *Site) roll(ctx context.Context, name string) error {
	next, err := release(name)
	if err != nil {
		return err
	}
	for _, old := range s.Replicas() {
		if _, err := s.startReplica(ctx, next); err != nil {
			return err
		}
		s.mu.Lock()
		s.replicas = slices.DeleteFunc(s.replicas, func(r *Replica) bool { return r == old })
		s.mu.Unlock()
		grace := time.Duration(*old.release.pod.TerminationGracePeriodSeconds) * time.Second
		if err := s.yard.remove(ctx, old.Name, grace); err != nil {
			return err
		}
		old.close()
	}
	return nil
}

// converge holds the load on some members still, and waits until the workload is where the last change that was acknowledged
// wants it. The load stays still.
func (s *Site) converge(ctx context.Context, members ...*Cluster) error {
	var group errgroup.Group
	for _, m := range members {
		group.Go(func() error {
			policy, err := s.load.members[m.Name].freeze(ctx)
			if err != nil {
				return err
			}
			if err := m.awaitMix(ctx, web, policy.want()); err != nil {
				return fmt.Errorf("%s: the last change acknowledged was %s: %w", m.Name, policy, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// goOn lets the load on some members go on.
func (s *Site) goOn(members ...*Cluster) {
	for _, m := range members {
		s.load.members[m.Name].thaw()
	}
}

// Settle holds the load still, waits until all members have converged, follows all orders to their end, and judges everything
// since the start. converged is how long the members took. The load goes on when it returns.
func (s *Site) Settle(ctx context.Context) (outcome *Outcome, converged time.Duration, err error) {
	begun := time.Now()
	defer s.goOn(s.Members...)
	if err := s.converge(ctx, s.Members...); err != nil {
		return nil, 0, err
	}
	converged = time.Since(begun)
	outcome, err = s.judge(ctx)
	return outcome, converged, err
}

// judge looks at everything since the start.
func (s *Site) judge(ctx context.Context) (*Outcome, error) {
	v := &Outcome{}
	tenures := s.recorder.tenures.list()
	for _, m := range s.Members {
		p := s.load.members[m.Name]
		ever, unfinished, lost, err := s.load.settle(ctx, p, tenures)
		if err != nil {
			return nil, err
		}
		p.mu.Lock()
		v.Changes += p.changes
		p.mu.Unlock()
		v.Orders += ever
		v.TakenUp += unfinished
		v.Lost = append(v.Lost, lost...)
	}
	for _, m := range s.Members {
		log, err := m.audit(ctx)
		if err != nil {
			return nil, err
		}
		events, err := kube.ReadAudit(bytes.NewReader(log))
		if err != nil {
			return nil, fmt.Errorf("audit log of %s: %w", m.Name, err)
		}
		asked, err := evictionsIn(log)
		if err != nil {
			return nil, fmt.Errorf("audit log of %s: %w", m.Name, err)
		}
		// What the log holds was written under a Lease that we have been notified of by then, or soon.
		writes := writesIn(m.Name, events, s.yard.whoHad)
		v.Writes += len(writes)
		if err := s.seen(ctx, writes); err != nil {
			return nil, err
		}
		v.DoubleWrites = append(v.DoubleWrites, doubleWrites(s.recorder.tenures.list(), writes)...)
		s.recorder.pods[m.Name].judgePods(m.Name, events, v)
		s.recorder.pods[m.Name].judgeNames(m.Name, asked, v)
	}
	v.Tenures = len(s.recorder.tenures.list())
	return v, nil
}

// seen waits until the record of the Lease reaches beyond the last of some writes, or the Lease has nobody to renew it: what
// is notified of a renewal is notified a moment after it.
func (s *Site) seen(ctx context.Context, writes []write) error {
	if len(writes) == 0 {
		return nil
	}
	latest := slices.MaxFunc(writes, func(a, b write) int { return a.at.Compare(b.at) }).at
	return fleet.Await(ctx, "the record of the Lease", func(context.Context) (bool, error) {
		all := s.recorder.tenures.list()
		return len(all) > 0 && !all[len(all)-1].Until.Before(latest), nil
	})
}
