package spot

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile"
)

// releasedIndex finds the pods that were released.
const releasedIndex = "plimsoll.released"

// strayPatience is how long after its release a pod is left alone whose workload is not known: the cache may lag.
const strayPatience = 30 * time.Second

// ownerOf returns the controller of a pod and its kind, also of one that has left it because we released it; empty: it has
// none.
func ownerOf(keys Keys, pod *corev1.Pod) (types.UID, string) {
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil {
		if !isApps(ref.APIVersion) {
			return ref.UID, "" // a StatefulSet of another group, for example
		}
		return ref.UID, ref.Kind
	}
	if r := releasedOf(keys, pod); r != nil {
		return r.Owner, kindReplicaSet
	}
	return "", ""
}

// releasedOf returns what is written on a pod that was released; nil: it was not.
func releasedOf(keys Keys, pod *corev1.Pod) *Released {
	r, ok := ParseReleased(pod.Annotations[keys.Released()])
	if !ok || pod.Labels[templateHash] != ReleasedHash(r.Hash) {
		return nil
	}
	return r
}

// finish ends what was begun with a workload that is not enabled any more: the pods that it released go, for nobody else
// would take them away.
func (e *Engine) finish(ctx context.Context, dir *directory, s *subject) (reconcile.Result, error) {
	now := time.Now()
	var left corev1.PodList
	err := s.client.List(ctx, &left, client.InNamespace(s.key.Namespace), client.MatchingFields{releasedIndex: "true"}, readOnlyList)
	if err != nil || len(left.Items) == 0 {
		return reconcile.Done(), err
	}
	settings := e.Settings
	settings.PendingTimeout = 0 // its droughts are nobody's business any more
	observed, recheck, err := e.observeSubject(ctx, dir, s, settings)
	if err != nil {
		return reconcile.Done(), err
	}
	if !slices.ContainsFunc(observed.Pods, func(p Pod) bool { return p.Released != nil }) {
		return reconcile.Done(), nil
	}
	plan := Finish(observed, settings, now)
	plan.Recheck = earlier(plan.Recheck, recheck)
	return e.act(ctx, dir, s, &plan, now)
}

// finishStrays takes the pods away that were released by workloads that are gone, as far as the disruption budgets allow it.
func (m *member) finishStrays(ctx context.Context, dir *directory, now time.Time) error {
	e, c := m.engine, m.cluster.GetClient()
	var list corev1.PodList
	if err := c.List(ctx, &list, client.MatchingFields{releasedIndex: "true"}, readOnlyList); err != nil || len(list.Items) == 0 {
		return err
	}
	strays := map[string]*Observed{}
	for i := range list.Items {
		pod := &list.Items[i]
		r := releasedOf(e.Keys, pod)
		if r == nil || now.Sub(r.At) < strayPatience || dir.hasWorkload(pod.Namespace, r) {
			continue
		}
		if strays[pod.Namespace] == nil {
			strays[pod.Namespace] = &Observed{}
		}
		strays[pod.Namespace].Pods = append(strays[pod.Namespace].Pods, e.podFacts(dir, pod))
	}
	var problems []error
	for namespace, observed := range strays {
		plan := Finish(*observed, e.Settings, now)
		_, _, err := e.evict(ctx, c, dir, namespace, plan.Evictions)
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// hasWorkload tells whether the workload that released a pod is there: then it is its own business to finish that.
func (d *directory) hasWorkload(namespace string, r *Released) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if r.Workload == "" {
		o := d.owners[r.Owner]
		return o != nil && o.kind != ""
	}
	for key := range d.workloads {
		if key.Namespace == namespace && key.Name == r.Workload && key.Kind == KindDeployment {
			return true
		}
	}
	return false
}
