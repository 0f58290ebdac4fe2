package main

import (
	"context"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// leaseFaults are what people do to the Lease.
var leaseFaults = []fault{
	{"Lease deleted", leaseDeleted}, {"Lease emptied", edited(func(*site, *replica, *rand.Rand) string { return "" })},
	{"Lease given to a stranger", edited(func(*site, *replica, *rand.Rand) string { return "somebody_else/127.0.0.1:1" })},
	{"Lease given to another", edited(anotherIdentity)},
}

// storeFaults are what happens to all that the hub cluster knows.
var storeFaults = []fault{{"hub restarted", hubRestarted}, {"hub restored", hubRestored}}

func leaseDeleted(ctx context.Context, s *site, _ *replica, _ *rand.Rand, hold time.Duration) error {
	lease, err := s.lease(ctx)
	if err != nil || lease == nil {
		return errNotNow
	}
	if s.fleet.Hub.Client().Delete(ctx, lease) != nil {
		return errNotNow
	}
	wait(ctx, hold)
	return nil
}

// edited writes another holder over that of the Lease, as of now and for as long as before.
func edited(holder func(s *site, on *replica, random *rand.Rand) string) func(context.Context, *site, *replica, *rand.Rand, time.Duration) error {
	return func(ctx context.Context, s *site, on *replica, random *rand.Rand, hold time.Duration) error {
		lease, err := s.lease(ctx)
		if err != nil || lease == nil {
			return errNotNow
		}
		before, now := ptr.Deref(lease.Spec.HolderIdentity, ""), v1.NowMicro()
		lease.Spec.HolderIdentity = ptr.To(holder(s, on, random))
		if *lease.Spec.HolderIdentity == before {
			return errNotNow
		}
		lease.Spec.RenewTime, lease.Spec.AcquireTime = &now, &now
		lease.Spec.LeaseDurationSeconds = ptr.To(int32(leaseDuration / time.Second))
		if s.fleet.Hub.Client().Update(ctx, lease) != nil {
			return errNotNow // its holder was quicker
		}
		wait(ctx, hold)
		return nil
	}
}

// anotherIdentity is that of a process that has held the Lease before and still runs, if there is one, and of a process that
// has ended if not.
func anotherIdentity(s *site, on *replica, random *rand.Rand) string {
	for _, i := range random.Perm(len(s.replicas)) {
		if p := s.replicas[i].current(); p != nil && s.replicas[i] != on {
			if identity := s.tape.identity(p.name); identity != "" {
				return identity
			}
		}
	}
	return s.tape.identity(processName(on.name, 1))
}

// hubRestarted stops the hub cluster's API server and etcd, backs etcd up and starts both again.
func hubRestarted(ctx context.Context, s *site, _ *replica, _ *rand.Rand, _ time.Duration) error {
	s.store.Lock()
	defer s.store.Unlock()
	backup, err := s.fleet.Hub.Backup(ctx)
	if err == nil {
		s.backup = backup
	}
	return err
}

// hubRestored puts the hub cluster's etcd back to what it was at the last restart.
func hubRestored(ctx context.Context, s *site, _ *replica, _ *rand.Rand, hold time.Duration) error {
	s.store.Lock()
	defer s.store.Unlock()
	if s.backup == nil {
		return errNotNow
	}
	if err := s.fleet.Hub.Restore(ctx, s.backup); err != nil {
		return err
	}
	wait(ctx, hold)
	return nil
}
