package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// A site is a fleet whose hub has several replicas, with proxies between each of them and every API server.
type site struct {
	options     Options
	fleet       *fleet.Fleet
	hubProxy    *kube.Proxy
	connections *connections
	links       *links
	tape        *tape
	replicas    []*replica

	store  sync.Mutex   // held while the hub cluster's etcd is stopped
	backup *kube.Backup // the last one; nil: there is none. Guarded by store
}

// startSite starts clusters, members and replicas, and returns when one of them acts. The caller stops it, also after an error.
func startSite(ctx context.Context, options Options) (*site, error) {
	s := &site{options: options, connections: newConnections(), links: newLinks(), tape: &tape{}}
	var err error
	s.fleet, err = fleet.Start(ctx, fleet.Options{Members: options.Members, Proxy: func(member string) kube.ProxyOptions {
		return s.proxy(member, s.tape.evicted(member))
	}})
	if err != nil {
		return s, err
	}
	if s.hubProxy, err = kube.NewProxy(s.fleet.Hub, s.proxy(hubCluster, s.tape.leases)); err != nil {
		return s, err
	}
	if err := s.fleet.Register(ctx, s.fleet.Members...); err != nil {
		return s, err
	}
	kubeconfig := filepath.Join(options.Dir, "hub.kubeconfig")
	if err := os.WriteFile(kubeconfig, s.hubProxy.Kubeconfig(s.fleet.Hub.Kubeconfig()), 0o600); err != nil {
		return s, err
	}
	for number := range replicas {
		r, err := newReplica(s, fmt.Sprintf("r%d", number+1), kubeconfig)
		if err != nil {
			return s, err
		}
		s.replicas = append(s.replicas, r)
		if err := r.start(ctx, 0); err != nil {
			return s, err
		}
	}
	return s, s.awaitActing(ctx)
}

// hubCluster is the hub cluster's name among the links.
const hubCluster = "hub cluster"

func (s *site) proxy(cluster string, record recorder) kube.ProxyOptions {
	return kube.ProxyOptions{Intercept: s.links.intercept(cluster, record), ConnContext: s.connections.context}
}

// stop ends everything.
func (s *site) stop() error {
	problems := make([]error, 0, len(s.replicas)+1)
	for _, r := range s.replicas {
		problems = append(problems, r.kill(), r.keepLog())
		r.peer.Close()
	}
	if s.hubProxy != nil {
		s.hubProxy.Close()
	}
	if s.fleet != nil {
		problems = append(problems, s.fleet.Stop())
	}
	return errors.Join(problems...)
}

// lease reads the Lease; nil when there is none.
func (s *site) lease(ctx context.Context) (*coordinationv1.Lease, error) {
	var lease coordinationv1.Lease
	err := s.fleet.Hub.Client().Get(ctx, client.ObjectKey{Namespace: fleet.Namespace, Name: leaseName}, &lease)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	} else if err != nil {
		return nil, nil
	}
	return &lease, nil
}

// holder is the replica that the Lease names; nil when it names none of them, or cannot be read.
func (s *site) holder(ctx context.Context) *replica {
	lease, err := s.lease(ctx)
	if err != nil || lease == nil {
		return nil
	}
	for _, r := range s.replicas {
		if r.names(ptr.Deref(lease.Spec.HolderIdentity, "")) {
			return r
		}
	}
	return nil
}

// running are the replicas that have a process.
func (s *site) running() []*replica {
	return slices.DeleteFunc(slices.Clone(s.replicas), func(r *replica) bool { return r.current() == nil })
}

// awaitActing waits until exactly one replica says that it acts, and it has all members.
func (s *site) awaitActing(ctx context.Context) error {
	var acting *replica
	err := fleet.Await(ctx, "one replica to act", func(ctx context.Context) (bool, error) {
		acting = nil
		for _, r := range s.running() {
			acts, err := r.acts(ctx)
			switch {
			case err != nil:
				return false, err
			case acts && acting != nil:
				return false, fmt.Errorf("%s and %s say that they do", acting.name, r.name)
			case acts:
				acting = r
			}
		}
		if acting == nil {
			return false, errors.New("none says that it does")
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	process := acting.current()
	if process == nil {
		return fmt.Errorf("%s has ended", acting.name)
	}
	return process.api.AwaitMembers(ctx, s.fleet.Members...)
}

// heal ends all disturbances of links.
func (s *site) heal() {
	for _, r := range s.replicas {
		s.fleet.Balancer.Release(r.hub.Webhook)
		r.peer.Release(r.hub.Peer)
		s.links.set(link{r.name, hubCluster}, disturbance{})
		for _, m := range s.fleet.Members {
			s.links.set(link{r.name, m.Name}, disturbance{})
		}
	}
}
