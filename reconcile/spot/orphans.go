package spot

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// orphanPatience is how long after its release a pod is left alone whose workload is not known: the cache may lag.
const orphanPatience = 30 * time.Second

// orphanGroups is how many groups of orphans are looked after in one round: each costs up to two reads of the API server, and the
// member's probes wait meanwhile.
const orphanGroups = 32

// orphans are pods that were released from one ReplicaSet and are in no workload's care: the ReplicaSet is gone, or its workload
// is, or the workload has lost its label and with it its place in the cache.
type orphans struct {
	namespace string
	released  *plan.Released // of the first
	pods      []plan.Pod
}

// orphanTurns says whose orphans were looked after last: of which namespace, and of which ReplicaSet in each.
type orphanTurns struct {
	namespace string
	owners    map[string]types.UID
}

// next returns those whose turn it is, at most so many: one of each namespace, then another one of each, and so on.
func (t *orphanTurns) next(all map[ownerKey]*orphans, most int) []*orphans {
	owners := map[string][]types.UID{}
	for key := range all {
		owners[key.namespace] = append(owners[key.namespace], key.uid)
	}
	last := make(map[string]types.UID, len(owners))
	for namespace, of := range owners {
		slices.Sort(of)
		last[namespace] = t.owners[namespace]
		owners[namespace] = behind(of, t.owners[namespace])
	}
	t.owners = last
	namespaces := behind(slices.Sorted(maps.Keys(owners)), t.namespace)
	most = min(most, len(all))
	next := make([]*orphans, 0, most)
	for turn := 0; len(next) < most; turn++ {
		for _, namespace := range namespaces {
			if turn < len(owners[namespace]) && len(next) < most {
				owner := owners[namespace][turn]
				next = append(next, all[ownerKey{namespace, owner}])
				t.namespace, t.owners[namespace] = namespace, owner
			}
		}
	}
	return next
}

// behind returns what is in order as a round that begins behind an item.
func behind[T cmp.Ordered](sorted []T, last T) []T {
	i, found := slices.BinarySearch(sorted, last)
	if found {
		i++
	}
	return slices.Concat(sorted[i:], sorted[:i])
}

// finishOrphans takes pods away that were released and are in no workload's care, as far as modes and disruption budgets allow it
// and once their replacements are ready, if there is anybody to make some. Where there are many, it goes on with the others in the
// next round.
func (m *member) finishOrphans(ctx context.Context, dir *directory, now time.Time) error {
	all, err := m.findOrphans(ctx, dir, now)
	if err != nil {
		return err
	}
	m.mu.Lock()
	turn := m.orphanTurns.next(all, orphanGroups)
	m.mu.Unlock()
	var problems errorList
	for _, group := range turn {
		problems.add(m.finishGroup(ctx, dir, group, now))
	}
	return problems.join()
}

// noteOrphans logs why orphans cannot be taken away, when that is news: it is no reason not to look after the probes.
func (m *member) noteOrphans(ctx context.Context, err error) {
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if news := problem != m.orphanProblem; news && err != nil && ctx.Err() == nil {
		m.engine.options.Log.WarnContext(ctx, "cannot evict released pods without a workload", "member", m.name, "error", err)
	}
	m.orphanProblem = problem
}

// findOrphans returns the orphans by the ReplicaSet that they come from. Those that are going need nothing more, however long a
// finalizer holds them.
func (m *member) findOrphans(ctx context.Context, dir *directory, now time.Time) (map[ownerKey]*orphans, error) {
	var list corev1.PodList
	if err := m.cluster.GetClient().List(ctx, &list, client.MatchingFields{releasedIndex: "true"}, readOnlyList); err != nil {
		return nil, err
	}
	found := map[ownerKey]*orphans{}
	for i := range list.Items {
		pod := &list.Items[i]
		if pod.DeletionTimestamp != nil {
			continue
		}
		r := releasedOf(m.engine.options.Keys, pod)
		if r == nil || now.Sub(r.At) < orphanPatience {
			continue
		}
		key := ownerKey{pod.Namespace, r.Owner}
		if dir.inCare(key) {
			continue
		}
		if found[key] == nil {
			found[key] = &orphans{namespace: pod.Namespace, released: r}
		}
		found[key].pods = append(found[key].pods, m.engine.podFacts(dir, pod))
	}
	return found, nil
}

// finishGroup takes the orphans of one ReplicaSet away.
func (m *member) finishGroup(ctx context.Context, dir *directory, group *orphans, now time.Time) error {
	e := m.engine
	origin, err := m.originOf(ctx, group)
	if err != nil || origin.inCare {
		return err
	}
	pol := policy.Parse(e.options.Keys, origin.annotations, dir.namespaceAnnotations(group.namespace), policy.Defaults{})
	settings := e.settingsFor(m.name, &pol)
	settings.PendingTimeout = 0
	s := &subject{member: m.name, client: m.cluster.GetClient(), pods: e.podsIn(m.name), live: m.cluster.Live(),
		key: policy.WorkloadKey{Kind: KindDeployment, NamespacedName: types.NamespacedName{Namespace: group.namespace, Name: group.released.Workload}}}
	observed := plan.Observed{Pods: group.pods}
	if origin.set != nil {
		s.sources, s.replicas = []source{replicaSetSource(origin.set)}, replicasOf(origin.set.Spec.Replicas)
		if observed, _, err = e.observeSubject(ctx, dir, s, settings); err != nil {
			return err
		}
	}
	plan := plan.Finish(observed, settings, now)
	var problems errorList
	_, _, err = e.evict(ctx, s.client, dir, group.namespace, plan.Evictions)
	problems.add(err)
	problems.add(e.removeEnded(ctx, s, observed.Pods, settings))
	return problems.join()
}

// origin is where orphans come from, as the API server knows it: what is not cached may be there all the same.
type origin struct {
	set         *appsv1.ReplicaSet // nil: it is gone
	annotations map[string]string  // of its Deployment, with the modes
	inCare      bool               // the Deployment has the enabled label, and is looked after as soon as the cache shows it
}

// originOf reads where orphans come from.
func (m *member) originOf(ctx context.Context, group *orphans) (origin, error) {
	var set appsv1.ReplicaSet
	found, err := m.readLive(ctx, group.namespace, group.released.OwnerName, group.released.Owner, &set)
	if err != nil || !found || set.DeletionTimestamp != nil {
		return origin{}, err
	}
	o := origin{set: &set}
	ref := metav1.GetControllerOfNoCopy(&set)
	if ref == nil || m.engine.kinds.workload(ref.APIVersion, ref.Kind) != KindDeployment {
		return o, nil
	}
	var deployment appsv1.Deployment
	found, err = m.readLive(ctx, group.namespace, ref.Name, ref.UID, &deployment)
	if err != nil || !found {
		return o, err
	}
	o.annotations = deployment.Annotations
	_, o.inCare = deployment.Labels[m.engine.options.Keys.Enabled()]
	return o, nil
}

// readLive reads an object from the API server; false when it is not there, or is another one of the same name.
func (m *member) readLive(ctx context.Context, namespace, name string, uid types.UID, into client.Object) (bool, error) {
	err := m.cluster.Live().Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, into)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read %T %s/%s: %w", into, namespace, name, err)
	}
	return into.GetUID() == uid, nil
}

// namespaceAnnotations returns those of a namespace that are ours.
func (d *directory) namespaceAnnotations(name string) map[string]string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if ns := d.namespaces[name]; ns != nil {
		return ns.annotations
	}
	return nil
}
