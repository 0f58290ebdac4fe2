package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// A Flap scales a workload up and down again, over and over, in a member whose nodes Karpenter makes and takes away.
type Flap struct {
	// Workload that is placed as its policy says for Low replicas, on nodes of the Pool.
	Workload *Workload
	Pool     Pool
	// Low and High are the numbers of replicas between which it goes, Percent and Floor its policy.
	Low, High, Percent, Floor int
	// Rounds is how often it goes up and down.
	Rounds int
}

// A FlapOutcome is what the rounds cost.
type FlapOutcome struct {
	Toll *Toll
	// Made is how many nodes were made in each round.
	Made []int
}

// Run goes through the rounds. Each ends when the replicas are where they belong and the nodes that they left have gone.
func (f *Flap) Run(ctx context.Context) (*FlapOutcome, error) {
	outcome := &FlapOutcome{}
	var err error
	outcome.Toll, err = f.Workload.Endure(ctx, f.Floor, func(ctx context.Context) error {
		for round := range f.Rounds {
			made, err := f.round(ctx)
			if err != nil {
				return fmt.Errorf("round %d: %w", round+1, err)
			}
			outcome.Made = append(outcome.Made, made)
		}
		return nil
	})
	return outcome, err
}

// round goes up and down once, and counts the nodes that were made.
func (f *Flap) round(ctx context.Context) (int, error) {
	mark, err := f.Workload.Member.Cluster.Audit().Mark()
	if err != nil {
		return 0, err
	}
	for _, replicas := range []int{f.High, f.Low} {
		if err := f.Workload.Scale(ctx, replicas); err != nil {
			return 0, err
		}
		spot, onDemand := Want(replicas, f.Percent, f.Floor)
		if err := f.Workload.AwaitMix(ctx, spot, onDemand); err != nil {
			return 0, err
		}
	}
	if err := f.Pool.AwaitNoEmptyNodes(ctx, f.Workload); err != nil {
		return 0, err
	}
	return f.Workload.Member.NodesMade(mark)
}

// Endure follows a workload while something is done, until that returns, and says what it has cost. What could be counted
// is returned with an error as well.
func (w *Workload) Endure(ctx context.Context, floor int, do func(context.Context) error) (*Toll, error) {
	mark, err := w.Member.Cluster.Audit().Mark()
	if err != nil {
		return nil, err
	}
	history, err := w.Follow(ctx)
	if err != nil {
		return nil, err
	}
	defer history.Stop()
	done := do(ctx)
	toll, err := history.Toll(mark, floor)
	return toll, errors.Join(done, err)
}

// AwaitNoEmptyNodes waits until the pool has no nodes but those that the workload's pods are on.
func (p Pool) AwaitNoEmptyNodes(ctx context.Context, w *Workload) error {
	return Await(ctx, "Karpenter to take away the nodes that "+w.String()+" is not on", func(ctx context.Context) (bool, error) {
		claims, err := p.Claims(ctx)
		if err != nil {
			return false, err
		}
		pods, err := w.Pods(ctx)
		if err != nil {
			return false, err
		}
		used := map[string]bool{}
		for i := range pods {
			used[pods[i].Spec.NodeName] = true
		}
		for _, claim := range claims {
			if !used[claim.Node] {
				return false, fmt.Errorf("of %d, that of claim %s is one", len(claims), claim.Name)
			}
		}
		return true, nil
	})
}

// AwaitReplaced waits until none of these NodeClaims is left and all others of the pool are of ready nodes.
func (p Pool) AwaitReplaced(ctx context.Context, old []kube.NodeClaim) error {
	return Await(ctx, fmt.Sprintf("Karpenter to replace %d nodes of pool %s", len(old), p.Name), func(ctx context.Context) (bool, error) {
		claims, err := p.Claims(ctx)
		if err != nil {
			return false, err
		}
		for _, claim := range claims {
			if slices.Contains(ClaimNames(old), claim.Name) {
				return false, fmt.Errorf("that of claim %s is one of %d", claim.Name, len(claims))
			}
			if !claim.Initialized {
				return false, fmt.Errorf("that of claim %s is not ready", claim.Name)
			}
		}
		return true, nil
	})
}

// Fifth is a fifth of the NodeClaims, rounded up: one of a spot node for every so many of on-demand nodes, as far as it goes.
func Fifth(claims []kube.NodeClaim, onDemandForSpot int) []kube.NodeClaim {
	var spot, onDemand, mixed []kube.NodeClaim
	for _, claim := range claims {
		if claim.Capacity == kube.Spot {
			spot = append(spot, claim)
		} else {
			onDemand = append(onDemand, claim)
		}
	}
	for len(spot)+len(onDemand) > 0 {
		n := min(onDemandForSpot, len(onDemand))
		mixed, onDemand = append(mixed, onDemand[:n]...), onDemand[n:]
		n = min(1, len(spot))
		mixed, spot = append(mixed, spot[:n]...), spot[n:]
	}
	return mixed[:(len(claims)+4)/5]
}

// ClaimNames are the names of NodeClaims.
func ClaimNames(claims []kube.NodeClaim) []string {
	names := make([]string, len(claims))
	for i, claim := range claims {
		names[i] = claim.Name
	}
	return names
}
