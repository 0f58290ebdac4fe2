package main

import (
	"context"
	"errors"
	"net/url"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/plimsoll-dev/plimsoll/test/bench/internal/bare"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// hostileSite is a hub with three good members and a hostile one, and beside it a hub that has no good members. In two of the good
// ones workloads with a floor are scaled; in the third no controllers run, and admission and reconciles are measured there.
type hostileSite struct {
	bench       *bench
	here, apart *seat
	member      *fleet.Hostile

	workloads []*fleet.Workload
	quiet     *fleet.Member
	wake      func(context.Context) error // ends the quiet
	targets   []*target
	watch     *bare.Watch   // of the targets
	handler   *bare.Handler // to compare the webhook with

	recorded *recording
	owners   []*appsv1.ReplicaSet
	target   *url.URL
	bundle   []byte
	sent     int // number of the first call of the window

	windows []window
}

func (b *bench) newHostileSite(ctx context.Context) (_ *hostileSite, err error) {
	s := &hostileSite{bench: b, quiet: b.fleet.Members[2]}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close(context.WithoutCancel(ctx)))
		}
	}()
	if s.recorded, err = recordCall(ctx, b.fleet.Members[0]); err != nil {
		return nil, err
	}
	if err := b.registerDirectly(ctx); err != nil {
		return nil, err
	}
	// A resync in between would be taken for the reconcile of a write. The caches of these members take 1 MB each, and as the
	// documentation advises they may take no more than some times that.
	settings := fleet.Settings{"controller.resyncPeriod": "1h", "spot.moveCooldown": "1s", "clusters.maxCacheMiB": 16}
	s.here = &seat{fleet: b.fleet, registrations: fleet.Registrations}
	if s.here.hub, s.here.api, err = b.startReplica(ctx, settings); err != nil {
		return nil, err
	}
	if s.apart, err = b.newApart(ctx, settings); err != nil {
		return nil, err
	}
	if err := s.here.api.AwaitMembers(ctx, b.fleet.Members...); err != nil {
		return nil, err
	}
	for _, m := range b.fleet.Members[:2] {
		w, err := s.workload(ctx, m)
		if err != nil {
			return nil, err
		}
		s.workloads = append(s.workloads, w)
	}
	if err := s.prepareQuiet(ctx); err != nil {
		return nil, err
	}
	s.member, err = b.fleet.StartHostile(ctx, fleet.HostileOptions{Name: "mallory", Seed: hostileSeed, Victim: b.fleet.Members[0]})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (s *hostileSite) workload(ctx context.Context, m *fleet.Member) (*fleet.Workload, error) {
	namespace, err := m.NewNamespace(ctx, "hostile", fleet.Enabled())
	if err != nil {
		return nil, err
	}
	w, err := m.Create(ctx, fleet.Deployment(namespace, "web", hostileNarrow, fleet.Policy(hostileShare, hostileFloor)))
	if err != nil {
		return nil, err
	}
	return w, s.here.api.Settle(ctx, w, hostileNarrow)
}

// prepareQuiet makes what is measured in the third member, and stops its controllers.
func (s *hostileSite) prepareQuiet(ctx context.Context) error {
	var err error
	if s.targets, err = eventTargets(ctx, s.here.api, []*fleet.Member{s.quiet}); err != nil {
		return err
	}
	if err = s.startBare(ctx); err != nil {
		return err
	}
	beside := []kube.Component{kube.ControllerManager, kube.Scheduler, kube.Kwok}
	for _, component := range beside {
		err = errors.Join(err, s.quiet.Cluster.Kill(component))
	}
	s.wake = func(ctx context.Context) (err error) {
		for _, component := range beside {
			err = errors.Join(err, s.quiet.Cluster.Revive(ctx, component))
		}
		return err
	}
	if err != nil {
		return err
	}
	if s.owners, err = makeOwners(ctx, s.quiet); err != nil {
		return err
	}
	if s.target, s.bundle, err = webhookOf(ctx, s.quiet); err != nil {
		return err
	}
	s.target.Host = s.here.hub.Webhook // past the balancer, which is part of the testbed
	return nil
}

// close ends the site, and leaves the good members as they were.
func (s *hostileSite) close(ctx context.Context) (err error) {
	if s.member != nil {
		for _, at := range []*seat{s.here, s.apart} {
			err = errors.Join(err, at.unregister(ctx, s.member.Member))
		}
		err = errors.Join(err, s.member.Stop())
	}
	s.endBare()
	if s.apart != nil {
		err = errors.Join(err, s.apart.close(ctx))
	}
	if s.here != nil && s.here.api != nil {
		err = errors.Join(err, s.bench.stopReplica(ctx, s.here.hub, s.here.api))
	}
	for _, w := range s.workloads {
		err = errors.Join(err, w.Member.DeleteNamespace(ctx, w.Namespace))
	}
	if len(s.owners) > 0 { // before their controllers see them
		err = errors.Join(err, s.deleteOwners(ctx))
	}
	if s.wake != nil {
		err = errors.Join(err, s.wake(ctx))
	}
	return err
}

// deleteOwners deletes Deployments and ReplicaSets whose pods were never made.
func (s *hostileSite) deleteOwners(ctx context.Context) (err error) {
	for _, owner := range s.owners {
		deployment := &appsv1.Deployment{}
		deployment.Namespace, deployment.Name = owner.Namespace, owner.OwnerReferences[0].Name
		err = errors.Join(err, s.quiet.Client().Delete(ctx, owner), s.quiet.Client().Delete(ctx, deployment))
	}
	return err
}
