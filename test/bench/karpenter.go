package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// karpenterPace is by what the times of nodes and those of the hub, which are its defaults, are divided. Karpenter's own rounds, of 10 s
// and more, are not scaled.
const karpenterPace = 5

// karpenterBench is a hub with one member in which Karpenter makes the nodes.
type karpenterBench struct {
	*bench
	member *fleet.Member
	pool   fleet.Pool
	api    *fleet.API
}

// karpenterRun is done with nodes of one type of instance, in a namespace.
type karpenterRun struct {
	instance kube.Instance
	do       func(k *karpenterBench, ctx context.Context, namespace string) error
}

// karpenterPool is the name of the one NodePool.
const karpenterPool = "general"

// The types of instances. Karpenter keeps a tenth of a CPU to itself, so that 3 and 15 pods with a request of one fit.
var (
	small = kube.Instance{Name: "small", CPU: 4}
	large = kube.Instance{Name: "large", CPU: 16}
)

func (b *bench) karpenterFlap(ctx context.Context) error {
	return b.karpenter(ctx, karpenterRun{small, (*karpenterBench).flap})
}

func (b *bench) karpenterConsolidation(ctx context.Context) error {
	return b.karpenter(ctx, karpenterRun{large, (*karpenterBench).consolidation})
}

func (b *bench) karpenterInterruption(ctx context.Context) error {
	return b.karpenter(ctx, karpenterRun{small, (*karpenterBench).interruption})
}

// karpenter measures what the hub evicts while the real Karpenter makes nodes, which take 90 s scaled, consolidates them, or
// takes some of them at once.
func (b *bench) karpenter(ctx context.Context, run karpenterRun) (err error) {
	if _, err := fleet.HubBinary(); err != nil {
		return err
	}
	f, err := fleet.Start(ctx, fleet.Options{Members: []string{"one"}, Nodes: fleet.NoNodes})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Stop()) }()
	k := &karpenterBench{bench: b, member: f.Members[0], pool: fleet.Pool{Member: f.Members[0], Name: karpenterPool}}
	stop, err := k.start(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop(context.WithoutCancel(ctx))) }()
	if err := k.member.Cluster.SetNodePool(ctx, nodePool(run.instance)); err != nil {
		return err
	}
	namespace, err := k.member.NewNamespace(ctx, "karpenter", fleet.Enabled())
	if err != nil {
		return err
	}
	return run.do(k, ctx, namespace)
}

// start starts Karpenter and a hub process; what it returns ends the hub.
func (k *karpenterBench) start(ctx context.Context, f *fleet.Fleet) (func(context.Context) error, error) {
	options := fleet.ScaledKarpenter(karpenterPace)
	options.Instances = []kube.Instance{small, large}
	if err := k.member.Cluster.StartKarpenter(ctx, options); err != nil {
		return nil, err
	}
	if err := f.Register(ctx, k.member); err != nil {
		return nil, err
	}
	replica, err := f.NewReplica("hub", fleet.Scaled(karpenterPace))
	if err != nil {
		return nil, err
	}
	process, err := replica.StartProcess(ctx)
	if err != nil {
		return nil, err
	}
	stop := func(ctx context.Context) error { return process.Stop(ctx) }
	if k.api, err = replica.Connect(); err != nil {
		return nil, errors.Join(err, stop(ctx))
	}
	f.Balancer.Add(replica.Webhook)
	if err := k.api.AwaitMembers(ctx, k.member); err != nil {
		return nil, errors.Join(err, stop(ctx))
	}
	return func(ctx context.Context) error { k.api.Close(); return stop(ctx) }, nil
}

// nodePool has nodes of one type of instance and both capacity types; those that are empty go.
func nodePool(of kube.Instance) kube.NodePool {
	return kube.NodePool{
		Name: karpenterPool, Instances: []string{of.Name}, NodeStart: fleet.NodeTime / karpenterPace, Budgets: kube.Unlimited,
		Consolidation: kube.WhenEmpty, ConsolidateAfter: 30 * time.Second / karpenterPace,
	}
}

// placed makes a workload and waits until it is where its policy wants it.
func (k *karpenterBench) placed(ctx context.Context, namespace string, replicas, percent, floor int) (*fleet.Workload, error) {
	w, err := k.member.Create(ctx, fleet.Requesting(fleet.Deployment(namespace, "web", replicas, fleet.Policy(percent, floor)), "1"))
	if err != nil {
		return nil, err
	}
	return w, k.settled(ctx, w, replicas, percent, floor)
}

func (k *karpenterBench) settled(ctx context.Context, w *fleet.Workload, replicas, percent, floor int) error {
	spot, onDemand := fleet.Want(replicas, percent, floor)
	if err := w.AwaitMix(ctx, spot, onDemand); err != nil {
		return err
	}
	return k.api.Settle(ctx, w, replicas)
}

// flap scales up and down four times over.
func (k *karpenterBench) flap(ctx context.Context, namespace string) error {
	const low, percent, floor = 10, 100, 1
	w, err := k.placed(ctx, namespace, low, percent, floor)
	if err != nil {
		return err
	}
	flap := fleet.Flap{Workload: w, Pool: k.pool, Low: low, High: 40, Percent: percent, Floor: floor, Rounds: 4}
	outcome, err := flap.Run(ctx)
	if err != nil {
		return fmt.Errorf("nodes made in the rounds before: %v: %w", outcome.Made, err)
	}
	extra := 0
	for _, made := range outcome.Made {
		extra = max(extra, made-outcome.Made[0])
	}
	k.report.Record("karpenter-flap-evictions", float64(outcome.Toll.ByHub))
	k.report.Record("karpenter-flap-extra-nodes", float64(extra))
	k.report.Note("karpenter, flap: nodes made by round %v; %d pods evicted by the hub, %d of them ready", outcome.Made, outcome.Toll.ByHub, outcome.Toll.ReadyByHub)
	return nil
}

const (
	karpenterReplicas = 100
	karpenterPercent  = 80
	karpenterFloor    = 20
	// karpenterUnavailable is how many replicas a disruption budget lets be away. Without one Karpenter drains a node at once, and leaves
	// the hub no choice of who goes next.
	karpenterUnavailable = 5
)

// protect makes the disruption budget of a workload.
func (k *karpenterBench) protect(ctx context.Context, w *fleet.Workload) error {
	return k.member.Client().Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(karpenterUnavailable)),
			Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{fleet.AppLabel: w.Name}},
		},
	})
}

// consolidation has each replica of the floor on a node of its own, and the others four to a node, beside other pods, which go. So
// Karpenter drains every on-demand node but one or two, and all that is there of the floor has to move.
func (k *karpenterBench) consolidation(ctx context.Context, namespace string) error {
	filler, err := k.pool.Fill(ctx, namespace,
		fleet.Filling{Capacity: kube.Spot, Pods: (karpenterReplicas - karpenterFloor) / 4, CPU: "11"},
		fleet.Filling{Capacity: kube.OnDemand, Pods: karpenterFloor, CPU: "14"})
	if err != nil {
		return err
	}
	w, err := k.placed(ctx, namespace, karpenterReplicas, karpenterPercent, karpenterFloor)
	if err != nil {
		return err
	}
	return k.endure(ctx, w, "karpenter-consolidation-floor-breaks", func(ctx context.Context) error {
		under := nodePool(large)
		under.Consolidation = kube.WhenEmptyOrUnderutilized
		if err := errors.Join(k.member.Cluster.SetNodePool(ctx, under), filler.Delete(ctx)); err != nil {
			return err
		}
		// 100 replicas fit on eight nodes, each type on its own. Karpenter leaves a node more than that as a rule.
		return k.pool.AwaitConsolidated(ctx, 10)
	})
}

// interruption takes a fifth of the nodes of 100 replicas at once: most of those that carry the floor, and some spot nodes.
func (k *karpenterBench) interruption(ctx context.Context, namespace string) error {
	w, err := k.placed(ctx, namespace, karpenterReplicas, karpenterPercent, karpenterFloor)
	if err != nil {
		return err
	}
	return k.endure(ctx, w, "karpenter-interruption-floor-breaks", func(ctx context.Context) error {
		claims, err := k.pool.Staying(ctx)
		if err != nil {
			return err
		}
		interrupted := fleet.Fifth(claims, 3)
		if err := k.member.Cluster.DeleteNodeClaims(ctx, fleet.ClaimNames(interrupted)...); err != nil {
			return err
		}
		return k.pool.AwaitReplaced(ctx, interrupted)
	})
}

// endure counts how often the hub breaks the floor while something is done, until the workload is placed again.
func (k *karpenterBench) endure(ctx context.Context, w *fleet.Workload, entry string, do func(context.Context) error) error {
	if err := k.protect(ctx, w); err != nil {
		return err
	}
	begun := time.Now()
	before, err := k.pool.Staying(ctx)
	if err != nil {
		return err
	}
	mark, err := k.member.Cluster.Audit().Mark()
	if err != nil {
		return err
	}
	toll, err := w.Endure(ctx, karpenterFloor, func(ctx context.Context) error {
		if err := do(ctx); err != nil {
			return err
		}
		return k.settled(ctx, w, karpenterReplicas, karpenterPercent, karpenterFloor)
	})
	if err != nil {
		return err
	}
	for _, sentence := range toll.Breaks {
		k.logf("%s: %s", w, sentence)
	}
	made, err := k.member.NodesMade(mark)
	if err != nil {
		return err
	}
	after, err := k.pool.Staying(ctx)
	if err != nil {
		return err
	}
	k.report.Record(entry, float64(len(toll.Breaks)))
	k.report.Note("%s: done in %.0f s; %d nodes made and %d removed; %d pods evicted by the hub, %d of them ready; by others %v, whom budgets refused %d times; "+
		"at least %d on-demand replicas ready of a floor of %d, including evictions by others", entry, time.Since(begun).Seconds(), made, len(before)+made-len(after),
		toll.ByHub, toll.ReadyByHub, toll.ByOthers, toll.RefusedToOthers, toll.Lowest, karpenterFloor)
	return nil
}
