package inprocess

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"time"

	plan "github.com/plimsoll-dev/plimsoll/reconcile/fleet"
)

// FleetPlan measures planning over the fleet, in time of one core, whoever else uses it: a thousand placements on two hundred members in one go, and the
// placement of one workload on a hundred members. It needs no cluster: a plan is a function.
func FleetPlan(_ context.Context, b Bench) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	now := time.Unix(1_700_000_000, 0)
	big, tier := planFleet(200, now)
	placements := make([]plan.Placement, 1000)
	for i := range placements {
		placements[i] = planPlacement(fmt.Sprintf("shop/service-%04d", i), 3+i%40, tier[:100], tier[100:])
	}
	all := median(5, func() error { return everythingPlaced(plan.PlanAll(big, placements, now)) })
	if all.err != nil {
		return all.err
	}
	b.Report.Record("fleet-plan-s", all.took.Seconds())

	small, tier := planFleet(100, now)
	one := planPlacement("shop/service", 60, tier)
	single := median(101, func() error { return everythingPlaced([]plan.Result{plan.Plan(small, &one, now)}) })
	if single.err != nil {
		return single.err
	}
	b.Report.Record("fleet-plan-100-ms", single.took.Seconds()*1000)
	return nil
}

// planFleet has members of ten domains that differ as members do; every seventh has no spot capacity, and may be tried.
func planFleet(members int, now time.Time) (*plan.Fleet, plan.Tier) {
	f, tier := &plan.Fleet{}, plan.Tier{}
	for i := range members {
		m := plan.Member{
			Name: fmt.Sprintf("member-%03d", i), Domain: fmt.Sprintf("region-%d", i%10),
			Spot: plan.Supply{
				Room: plan.Unbounded, Price: 1 + float64(i%5)/10, Start: 4 * time.Minute, Life: time.Duration(1+i%20) * time.Hour, Notice: 30 * time.Second,
			},
			OnDemand: plan.Supply{Room: plan.Unbounded, Price: 3, Start: 4 * time.Minute},
		}
		if i%7 == 0 {
			m.Spot.DrySince, m.Spot.TryAt = now, now
		}
		f.Members = append(f.Members, m)
		tier = append(tier, plan.Choice{Member: m.Name, Weight: 1 + i%3})
	}
	return f, tier
}

// planPlacement is a placement with a floor and insurance; half of what it wants runs where it was placed first.
func planPlacement(name string, replicas int, tiers ...plan.Tier) plan.Placement {
	p := plan.Placement{Name: name, Policy: plan.Policy{Replicas: replicas, SpotPercentage: 80, MinOnDemand: 1, ExtraSpot: 2, Tiers: tiers}}
	for i := range replicas / 2 {
		at := (len(name)*31 + i*7) % len(tiers[0])
		p.Running = append(p.Running, plan.Running{Member: tiers[0][at].Member, Spot: plan.Count{Ready: 1}})
	}
	return p
}

func everythingPlaced(results []plan.Result) error {
	for i := range results {
		if r := &results[i]; r.Unplaced > 0 || len(r.Moves) == 0 {
			return fmt.Errorf("the plan of %s leaves out %d replicas and makes %d moves", r.Name, r.Unplaced, len(r.Moves))
		}
	}
	return nil
}

// timing is how much time of a core something took.
type timing struct {
	took time.Duration
	err  error
}

// median runs something several times: garbage is collected in some of them.
func median(times int, run func() error) timing {
	took := make([]time.Duration, times)
	for i := range took {
		begun, err := used()
		if err == nil {
			err = run()
		}
		if err != nil {
			return timing{err: err}
		}
		ended, err := used()
		if err != nil {
			return timing{err: err}
		}
		took[i] = ended - begun
	}
	slices.Sort(took)
	return timing{took: took[times/2]}
}

// used is how much time of cores this process has used.
func used() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("read the CPU time used: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}
