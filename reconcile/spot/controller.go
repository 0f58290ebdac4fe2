package spot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/when"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
)

// Names of the controllers, as the ledger, the metrics and the API show them.
const (
	DeploymentController  = "deployment-spot"
	StatefulSetController = "statefulset-spot"
	ReplicaSetController  = "replicaset-spot"
)

// Schedule is how often, and by how many workers, workloads are looked at.
type Schedule struct {
	// Resync is the time after which a workload is looked at without a change; 0: as the runtime has it, negative: never.
	Resync time.Duration
	// Workers per controller and member; 0: the framework's default.
	Workers int
}

type deploymentReconciler struct{ *Engine }

// Reconcile places the pods of one Deployment.
func (r deploymentReconciler) Reconcile(ctx context.Context, req reconcile.Request[*appsv1.Deployment]) (reconcile.Result, error) {
	sources, err := replicaSetSources(ctx, req.Client, req.Object, r.stillHolds(req.Member))
	if err != nil {
		return reconcile.Done(), err
	}
	d := req.Object
	return r.reconcile(ctx, subject{
		member: req.Member, key: keyOf(KindDeployment, d), meta: &d.ObjectMeta, replicas: replicasOf(d.Spec.Replicas), sources: sources,
		rolling: d.Status.ObservedGeneration < d.Generation || working(sources) > 1, stalled: stalledRollout(d),
		minReady: seconds(d.Spec.MinReadySeconds), client: req.Client, pods: r.podsIn(req.Member), live: req.Live, events: req.Events,
	})
}

// stalledRollout reports whether nothing comes of a rollout of the Deployment: somebody paused it, or its controller has given it up.
func stalledRollout(d *appsv1.Deployment) bool {
	return d.Spec.Paused || slices.ContainsFunc(d.Status.Conditions, gaveUp)
}

// gaveUp recognises what the deployment controller says when progressDeadlineSeconds are over.
func gaveUp(c appsv1.DeploymentCondition) bool {
	return c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse && c.Reason == "ProgressDeadlineExceeded"
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }

// Forget drops what is published of a Deployment that is gone.
func (r deploymentReconciler) Forget(_ context.Context, member string, key types.NamespacedName) {
	r.forget(member, policy.WorkloadKey{Kind: KindDeployment, NamespacedName: key})
}

type statefulSetReconciler struct{ *Engine }

// Reconcile places the pods of one StatefulSet.
func (r statefulSetReconciler) Reconcile(ctx context.Context, req reconcile.Request[*appsv1.StatefulSet]) (reconcile.Result, error) {
	set := req.Object
	return r.reconcile(ctx, subject{
		member: req.Member, key: keyOf(KindStatefulSet, set), meta: &set.ObjectMeta, replicas: replicasOf(set.Spec.Replicas),
		sources: []source{statefulSetSource(set)}, ordinals: true,
		rolling: rollingSet(set), minReady: seconds(set.Spec.MinReadySeconds), client: req.Client, pods: r.podsIn(req.Member), live: req.Live, events: req.Events,
	})
}

// rollingSet reports whether the StatefulSet's controller is at work. With updates on deletion only, two revisions side by side
// are a state of rest; with a partition they are when all ordinals above it are updated.
func rollingSet(set *appsv1.StatefulSet) bool {
	if set.Status.ObservedGeneration < set.Generation {
		return true
	}
	strategy := set.Spec.UpdateStrategy
	if strategy.Type == appsv1.OnDeleteStatefulSetStrategyType || set.Status.CurrentRevision == set.Status.UpdateRevision {
		return false
	}
	if r := strategy.RollingUpdate; r != nil && r.Partition != nil && *r.Partition > 0 {
		return int(set.Status.UpdatedReplicas) < replicasOf(set.Spec.Replicas)-int(*r.Partition)
	}
	return true
}

// Forget drops what is published of a StatefulSet that is gone.
func (r statefulSetReconciler) Forget(_ context.Context, member string, key types.NamespacedName) {
	r.forget(member, policy.WorkloadKey{Kind: KindStatefulSet, NamespacedName: key})
}

// subject is one workload that is reconciled, whatever its kind.
type subject struct {
	member            string
	key               policy.WorkloadKey
	meta              *metav1.ObjectMeta
	replicas          int
	sources           []source
	ordinals, rolling bool
	stalled           bool   // nothing comes of its rollout
	noRelease         string // why its pods cannot be released; empty: nothing is known against it
	minReady          time.Duration
	client            client.Client
	pods              podsOf
	live              client.Reader
	events            reconcile.Recorder
}

// reconcile plans one workload and does what the plan says; see [Engine.act].
func (e *Engine) reconcile(ctx context.Context, s subject) (reconcile.Result, error) {
	defer e.forgetIfGone(s.member)
	dir := e.awaitDirectory(ctx, s.member)
	if dir == nil {
		return reconcile.RequeueAfter(warmingTimeout, "the member's caches are not synced yet"), nil
	}
	pol, enabled, err := e.policy(ctx, &s)
	if err != nil {
		return reconcile.Done(), err
	}
	settings := e.settingsFor(s.member, &pol)
	dir.reportLack(&s)
	if !enabled {
		e.forget(s.member, s.key)
		return e.finish(ctx, dir, &s, settings)
	}
	observed, recheck, err := e.observeSubject(ctx, dir, &s, settings)
	if err != nil {
		return reconcile.Done(), err
	}
	now := time.Now()
	plan := plan.Plan(observed, pol, settings, now)
	e.metrics.ObservePlan(time.Since(now))
	plan.Recheck = when.Earlier(plan.Recheck, recheck)
	dir.noteProblems(&observed, &plan)
	result, err := e.act(ctx, dir, &s, &plan, now)
	err = errors.Join(err, e.removeEnded(ctx, &s, observed.Pods, settings))
	dir.waits.note(s.key, plan.Waits)
	e.publish(dir, &s, &report.Planned{Observed: observed, Policy: pol, Settings: settings, Plan: plan, At: now}) // after acting, for what was refused belongs to the answer
	dir.memos.keep(s.key, s.sources)
	return result, err
}

// policy returns the policy of a subject, which has its modes whether it is enabled or not.
func (e *Engine) policy(ctx context.Context, s *subject) (pol policy.Policy, enabled bool, err error) {
	var ns corev1.Namespace
	if err := s.client.Get(ctx, types.NamespacedName{Name: s.key.Namespace}, &ns); err != nil {
		return policy.Policy{}, false, fmt.Errorf("read namespace %s: %w", s.key.Namespace, err)
	}
	enabled = policy.Enabled(e.options.Keys, s.meta.Labels, ns.Labels) && e.options.Namespaces.Matches(labels.Set(ns.Labels))
	pol = policy.Parse(e.options.Keys, s.meta.Annotations, ns.Annotations, e.options.Defaults)
	return pol.Under(e.splits.of(s.member, s.key), e.options.Keys), enabled, nil
}

// observeSubject reads the pods of a subject, those without a slot included, and what else the plan depends on. It returns when
// to look again although nothing has changed.
func (e *Engine) observeSubject(ctx context.Context, dir *directory, s *subject, settings plan.Settings) (o plan.Observed, recheck time.Time, err error) {
	now := time.Now()
	dir.memos.take(s.key, s.sources)
	if o, err = e.observe(ctx, s.pods, dir, s.key.Namespace, s.sources, e.takenOver(s.member, dir), now); err != nil {
		return o, recheck, err
	}
	o.Ordinals, o.Replicas, o.Rolling, o.Stalled, o.NoRelease, o.MinReady = s.ordinals, s.replicas, s.rolling, s.stalled, s.noRelease, s.minReady
	if recheck, err = e.addUnlabelled(ctx, dir, s, &o, now); err != nil {
		return o, recheck, err
	}
	recheck = when.Earlier(recheck, dir.observeSupply(ctx, s.key, &o, settings, now))
	dir.observeSpreads(s.key.Namespace, &o)
	e.budgets(ctx, s.client, dir, s.key.Namespace, &o)
	interrupted := slices.ContainsFunc(o.Pods, func(p plan.Pod) bool { return p.Interruption != nil }) // the floor is released, whatever the strategy
	if (settings.Strategy == policy.StrategyRelease || interrupted) && !o.Ordinals && o.NoRelease == "" {
		o.NoRelease = cmp.Or(dir.releaseDenied(o.Owners, now), dir.selectors.reason(ctx, s.live, s.key.Namespace, now))
	}
	return o, recheck, nil
}
