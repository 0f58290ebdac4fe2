package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// hostileSite is a hub with three good members and a hostile one. In two of the good ones workloads with a floor are scaled;
// in the third no controllers run, and admission and reconciles are measured there.
type hostileSite struct {
	bench  *bench
	hub    *fleet.Process
	api    *fleet.API
	member *fleet.Hostile

	workloads []*fleet.Workload
	quiet     *fleet.Member
	wake      func(context.Context) error // ends the quiet
	targets   []*target

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
	if s.hub, s.api, err = b.startReplica(ctx, settings); err != nil {
		return nil, err
	}
	if err := s.api.AwaitMembers(ctx, b.fleet.Members...); err != nil {
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
	return s, s.member.InstallWebApps(ctx)
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
	return w, s.api.Settle(ctx, w, hostileNarrow)
}

// prepareQuiet makes what is measured in the third member, and stops its controllers.
func (s *hostileSite) prepareQuiet(ctx context.Context) error {
	var err error
	if s.targets, err = eventTargets(ctx, s.api, []*fleet.Member{s.quiet}); err != nil {
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
	s.target.Host = s.hub.Webhook // past the balancer, which is part of the testbed
	return nil
}

// close ends the site, and leaves the good members as they were.
func (s *hostileSite) close(ctx context.Context) (err error) {
	if s.member != nil {
		err = errors.Join(s.bench.fleet.Unregister(ctx, s.member.Member), s.member.Stop())
	}
	if s.hub != nil {
		err = errors.Join(err, s.bench.stopReplica(ctx, s.hub, s.api))
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

// ratios are how a hostility compares with good behaviour, each the median of its windows.
type ratios struct{ admission, events, rss float64 }

// compare returns the ratios by hostility. Latencies are compared with the median of all windows in which the member behaved
// well, memory with the most of the first of them: what the hub had before anything was hostile.
func (s *hostileSite) compare() map[fleet.Hostility]ratios {
	var calm ratios
	by := map[fleet.Hostility][]window{}
	for _, w := range s.windows {
		by[w.hostility] = append(by[w.hostility], w)
	}
	well := by[fleet.WellBehaved]
	calm = ratios{admission: medianOf(well, func(w window) float64 { return float64(w.admission) }),
		events: medianOf(well, func(w window) float64 { return float64(w.events) }), rss: float64(well[0].rss)}
	delete(by, fleet.WellBehaved)
	result := map[fleet.Hostility]ratios{}
	for hostility, windows := range by {
		result[hostility] = ratios{
			admission: medianOf(windows, func(w window) float64 { return float64(w.admission) }) / calm.admission,
			events:    medianOf(windows, func(w window) float64 { return float64(w.events) }) / calm.events,
			rss:       medianOf(windows, func(w window) float64 { return float64(w.rss) }) / calm.rss,
		}
	}
	return result
}

// suspicious are the hostilities with the worst ratios of latency that are not allowed, the worst first.
func (s *hostileSite) suspicious() (found []fleet.Hostility) {
	compared := s.compare()
	worst := func(hostility fleet.Hostility) float64 {
		return max(compared[hostility].admission, compared[hostility].events)
	}
	for _, hostility := range slices.Sorted(maps.Keys(compared)) {
		if worst(hostility) > ratioAllowed {
			found = append(found, hostility)
		}
	}
	slices.SortStableFunc(found, func(a, b fleet.Hostility) int { return cmp.Compare(worst(b), worst(a)) })
	return found[:min(len(found), hostileSuspects)]
}

// judge records the worst ratios, and notes all of them.
func (s *hostileSite) judge() {
	var worst ratios
	compared := s.compare()
	for _, hostility := range slices.Sorted(maps.Keys(compared)) {
		is := compared[hostility]
		worst = ratios{max(worst.admission, is.admission), max(worst.events, is.events), max(worst.rss, is.rss)}
		s.bench.report.note("hostile, %s: admission p99 times %.2f, event to reconcile p99 times %.2f, memory times %.2f", hostility, is.admission, is.events, is.rss)
	}
	s.bench.report.record("hostile-rss-ratio", worst.rss)
	s.bench.report.record("hostile-admission-ratio", worst.admission)
	s.bench.report.record("hostile-event-ratio", worst.events)
	s.bench.report.note("%s", fmt.Sprintf("hostile: %d windows of %s; the hostile member's own load runs on the same machine", len(s.windows), hostileWindow))
}

func medianOf(windows []window, value func(window) float64) float64 {
	values := make([]float64, len(windows))
	for i, w := range windows {
		values[i] = value(w)
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}
