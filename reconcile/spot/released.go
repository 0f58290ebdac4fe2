package spot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/when"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// releasedIndex finds the pods that were released.
const releasedIndex = "plimsoll.released"

// ownerOf returns the UID of the controller of a pod, also of one that has left it because we released it; empty: it has none. It is
// the pod's word, which counts in its namespace only.
func ownerOf(keys policy.Keys, pod *corev1.Pod) types.UID {
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil {
		return ref.UID
	}
	if r := releasedOf(keys, pod); r != nil {
		return r.Owner
	}
	return ""
}

// releasedOf returns what is written on a pod that was released; nil: it was not.
func releasedOf(keys policy.Keys, pod *corev1.Pod) *plan.Released {
	r, ok := plan.ParseReleased(pod.Annotations[keys.Released()])
	if !ok || pod.Labels[plan.TemplateHash] != plan.ReleasedHash(r.Hash) {
		return nil
	}
	return r
}

// finish ends what was begun with a workload that is not enabled any more, as far as its modes allow it: the pods that it
// released go, for nobody else would take them away.
func (e *Engine) finish(ctx context.Context, dir *directory, s *subject, settings plan.Settings) (reconcile.Result, error) {
	now := time.Now()
	var left corev1.PodList
	err := s.client.List(ctx, &left, client.InNamespace(s.key.Namespace), client.MatchingFields{releasedIndex: "true"}, readOnlyList)
	if err != nil || len(left.Items) == 0 {
		return reconcile.Done(), err
	}
	settings.PendingTimeout = 0 // its droughts are nobody's business any more
	observed, recheck, err := e.observeSubject(ctx, dir, s, settings)
	if err != nil {
		return reconcile.Done(), err
	}
	if !slices.ContainsFunc(observed.Pods, func(p plan.Pod) bool { return p.Released != nil }) {
		return reconcile.Done(), nil
	}
	plan := plan.Finish(observed, settings, now)
	plan.Recheck = when.Earlier(plan.Recheck, recheck)
	result, err := e.act(ctx, dir, s, &plan, now)
	return result, errors.Join(err, e.removeEnded(ctx, s, observed.Pods, settings))
}

// removeEnded removes pods that were released and have ended by themselves, because their time was up for instance; see
// [plan.Released]. Kubernetes keeps thousands of such pods, and these have no owner. To evict one is to delete it, for no
// disruption budget counts it.
func (e *Engine) removeEnded(ctx context.Context, s *subject, pods []plan.Pod, settings plan.Settings) error {
	if settings.ReadOnly || settings.Paused {
		return nil
	}
	var problems errorList
	for i := range pods {
		pod := &pods[i]
		if pod.Released == nil || !pod.Finished || !pod.GoneBy.IsZero() {
			continue
		}
		err := evictPod(ctx, s.client, s.key.Namespace, &plan.Eviction{Pod: pod.UID, Name: pod.Name})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			problems.add(fmt.Errorf("delete finished pod %s/%s: %w", s.key.Namespace, pod.Name, err))
		}
	}
	return problems.join()
}

// inCare reports whether the workload of the ReplicaSet that pods were released from is there and cached: then its own plans end
// the release. A namesake of the workload does not count.
func (d *directory) inCare(key ownerKey) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	o := d.owners[key]
	if o == nil || o.kind == "" {
		return false
	}
	w := d.workloads[o.workload]
	return w != nil && w.readAt.IsZero() && (w.uid == o.controller || w.uid == o.uid)
}
