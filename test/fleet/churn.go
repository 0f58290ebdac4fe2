package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// Churn is a bad time for a workload: pods are evicted at random, and while that goes on a quota and another webhook
// refuse creations.
type Churn struct {
	// Workload whose replicas are all ready, in a namespace of its own.
	Workload *Workload
	// Replicas that it wants, and how many of them must be on-demand.
	Replicas, Floor int
	// Evictions is how many pods are evicted, and AtOnce how many of them at most in one go.
	Evictions, AtOnce int
	// RejectOneIn is which share of the pods the other webhook refuses: one in so many.
	RejectOneIn int64
	// Seed of the choice of pods.
	Seed uint64
}

// Begin starts to remember what happens, for Judge. Stop the history in the end.
func (c *Churn) Begin(ctx context.Context) (*Ordeal, error) {
	history, err := c.Workload.Follow(ctx)
	if err != nil {
		return nil, err
	}
	mark, err := c.Workload.Member.Cluster.Audit().Mark()
	if err != nil {
		history.Stop()
		return nil, err
	}
	return &Ordeal{Churn: *c, History: history, mark: mark}, nil
}

// An Ordeal is a churn that has begun.
type Ordeal struct {
	Churn
	History *History

	mark kube.Mark
}

// Run evicts while creations are refused now and then, and lets all pass again before it returns.
func (o *Ordeal) Run(ctx context.Context) error {
	w, member := o.Workload, o.Workload.Member
	var asked atomic.Int64
	hook, err := member.NewHook(ctx, HookOptions{Name: w.Namespace, Namespace: w.Namespace, Decide: func([]byte) string {
		if asked.Add(1)%o.RejectOneIn == 0 {
			return "this is the one pod in so many that is refused"
		}
		return ""
	}})
	if err != nil {
		return err
	}
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "pods"},
		// A pod counts until it is gone, and for a moment longer: replacements that come quickly are refused.
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(int64(o.Replicas), resource.DecimalSI)}},
	}
	err = member.Client().Create(ctx, quota)
	if err == nil {
		err = o.evictAtRandom(ctx)
	}
	return errors.Join(err, client.IgnoreNotFound(member.Client().Delete(ctx, quota)), hook.Remove(ctx))
}

// evictAtRandom evicts pods in small groups, and between them gives the workload the time to be nearly whole again: only
// then the floor can be seen.
func (o *Ordeal) evictAtRandom(ctx context.Context) error {
	random := rand.New(rand.NewPCG(o.Seed, uint64(o.Floor)))
	for evicted := 0; evicted < o.Evictions; {
		err := Await(ctx, "most pods of "+o.Workload.String()+" to be back", func(context.Context) (bool, error) {
			return o.History.Now().All() >= o.Replicas-o.AtOnce, nil
		})
		if err != nil {
			return err
		}
		pods, err := o.Workload.Pods(ctx)
		if err != nil {
			return err
		}
		random.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
		for i := range pods[:min(len(pods), 1+random.IntN(o.AtOnce))] {
			done, err := o.Workload.Member.Evict(ctx, &pods[i])
			if err != nil {
				return err
			}
			if done {
				evicted++
			}
		}
	}
	return nil
}

// Evict asks for an eviction; it is not done when the pod is on its way out already.
func (m *Member) Evict(ctx context.Context, pod *corev1.Pod) (done bool, err error) {
	if pod.DeletionTimestamp != nil {
		return false, nil
	}
	eviction := &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}}
	err = m.Client().SubResource("eviction").Create(ctx, pod, eviction)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return false, nil
	}
	return err == nil, err
}

// An Outcome says what came of a churn.
type Outcome struct {
	// Breaks of the floor by the hub, a sentence each.
	Breaks []string
	// ByHub is how many pods the hub evicted meanwhile, and Refused how many creations were refused.
	ByHub, Refused int
	// Whole is at how many moments all replicas existed, were alive and none was leaving; Lowest how many of them were
	// on-demand at the worst of these moments.
	Whole, Lowest int
	// Unplaced is how many pods without a slot there were at most at a time.
	Unplaced int
}

// Judge counts the breaks of the floor in the true order of events: moments at which all wanted replicas exist and are
// alive, none is leaving, and fewer than the floor are on-demand; and evictions by the hub of an on-demand pod when no more
// than the floor were alive. An error says that nothing was tried: nobody was refused, or the floor was never to be seen.
func (o *Ordeal) Judge() (*Outcome, error) {
	audit, namespace := o.Workload.Member.Cluster.Audit(), kube.InNamespace(o.Workload.Namespace)
	byHub, err := audit.Since(o.mark, kube.Evictions, namespace, ByHub)
	if err != nil {
		return nil, err
	}
	refused, err := audit.Since(o.mark, kube.OnResource("pods"), kube.ByVerb("create"), namespace, kube.Not(kube.Succeeded))
	if err != nil {
		return nil, err
	}
	moments, err := o.History.Moments()
	if err != nil {
		return nil, err
	}
	moved := map[string]bool{}
	for _, eviction := range byHub {
		moved[eviction.Name] = true
	}
	v := &Outcome{ByHub: len(byHub), Refused: len(refused), Lowest: o.Replicas}
	for i := range moments {
		v.see(&moments[i], o.Replicas, o.Floor, moved[moments[i].Pod])
	}
	switch {
	case v.Whole == 0:
		return nil, fmt.Errorf("%s was never whole: nothing was tried", o.Workload)
	case v.Refused == 0:
		return nil, fmt.Errorf("no pod of %s was refused: nothing was tried", o.Workload)
	}
	return v, nil
}

// see takes one moment into account; moved says that its pod was evicted by the hub.
func (v *Outcome) see(m *Moment, replicas, floor int, moved bool) {
	v.Unplaced = max(v.Unplaced, m.Unplaced)
	if m.Mix.All() >= replicas && m.Mix.Leaving == 0 {
		v.Whole++
		v.Lowest = min(v.Lowest, m.Mix.OnDemand)
		if m.Mix.OnDemand < floor {
			v.Breaks = append(v.Breaks, fmt.Sprintf("after a change of pod %s there are %s", m.Pod, m.Mix))
		}
	}
	if moved && m.Left && m.Capacity == kube.OnDemand && m.OnDemandBefore <= floor {
		v.Breaks = append(v.Breaks, fmt.Sprintf("the hub evicted on-demand pod %s when there were %d", m.Pod, m.OnDemandBefore))
	}
}
