package spot

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/nodes"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
)

// podFacts reads a pod, with what its node shows.
func (e *Engine) podFacts(dir *directory, pod *corev1.Pod) plan.Pod {
	return e.podReader(dir).Facts(pod)
}

// podReader makes a reader for one pass over pods.
func (e *Engine) podReader(dir *directory) *nodes.PodReader {
	return dir.nodes.Pods(e.options.Keys, e.options.Capacity)
}

// nodeSeen takes in a node as the cache shows it. Whoever hears of a further node first, its capacity has grown.
func (e *Engine) nodeSeen(dir *directory, node *corev1.Node, now time.Time) {
	before := dir.nodes.Set(node, &e.options.Interruptions, now)
	capacity := e.options.Capacity.OfNode(node.Labels)
	if before == nil || e.options.Capacity.OfNode(before) != capacity {
		dir.droughts.NodeJoined(capacity, now)
	}
}

// workloadsOfNode wakes the workloads of a node's pods when the node is about to go or has gone, and when it stays after all.
func (e *Engine) workloadsOfNode(kind string) reconcile.Mapper {
	ofPod := e.workloadsOfPod(kind)
	return func(ctx context.Context, m *reconcile.Member, obj client.Object) []types.NamespacedName {
		dir := e.directory(m.Name)
		if dir == nil || !e.nodeChanged(ctx, dir, m.Reader, obj) {
			return nil
		}
		var pods corev1.PodList
		if err := m.Reader.List(ctx, &pods, client.MatchingFields{nodeNameIndex: obj.GetName()}, readOnlyList); err != nil {
			return nil // pods are not cached: there is nothing to wake
		}
		woken := map[types.NamespacedName]struct{}{}
		for i := range pods.Items {
			for _, key := range ofPod(ctx, m, &pods.Items[i]) {
				woken[key] = struct{}{}
			}
		}
		return slices.Collect(maps.Keys(woken))
	}
}

// nodeChanged brings the table up to date with the cache, for the directory may hear of the change later than who is woken
// here, and reports whether the node goes, or was to go before the change.
func (e *Engine) nodeChanged(ctx context.Context, dir *directory, cache client.Reader, event client.Object) bool {
	now := time.Now()
	var node corev1.Node
	err := cache.Get(ctx, client.ObjectKeyFromObject(event), &node, &client.GetOptions{UnsafeDisableDeepCopy: new(true)})
	switch {
	case apierrors.IsNotFound(err):
		dir.nodes.Remove(event.GetName(), now)
		return true
	case err != nil:
		return false
	}
	e.nodeSeen(dir, &node, now)
	before, ok := event.(*corev1.Node)
	return dir.nodes.InterruptionOf(node.Name) != nil || (ok && e.options.Interruptions.Of(before, now) != nil)
}

// nodeComing reports whether anything says that a node is on its way for a pod.
func (d *directory) nodeComing(ctx context.Context, pod *nodes.Awaited, now time.Time) bool {
	limit := d.droughts.NodeStart()
	return d.nodes.Starting(pod, d.capacity, now, limit) || (d.signs != nil && d.signs.Coming(ctx, d.nodes, pod, d.capacity, now, limit))
}

// spotFits reports whether a spot node is what an owner's pods ask for.
func (d *directory) spotFits(o *owner) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if o.template == nil {
		return false
	}
	return d.nodes.Fits(o.template.needs(), d.capacity, capacity.Spot)
}

// poolsEvery is how often a member's NodePools are read. There are few, and they rarely change.
const poolsEvery = time.Minute

// followPools reads the member's NodePools until ctx ends. They say which capacity types nodes can have that do not exist yet.
func (m *member) followPools(ctx context.Context, dir *directory) {
	problem := ""
	for ctx.Err() == nil {
		values, err := dir.signs.PoolValues(ctx)
		switch {
		case err == nil:
			problem = ""
			dir.nodes.Census.Expect(values)
		case err.Error() != problem && ctx.Err() == nil: // what was read before stays
			problem = err.Error()
			m.engine.options.Log.InfoContext(ctx, "NodePools cannot be read: reserved capacity is used once it has a node", "member", m.name, "error", err)
		}
		pause(ctx, poolsEvery)
	}
}
