package spot

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters/paging"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
)

// release takes pods out of their ReplicaSets, which make replacements while the pods go on serving. One that fails stops no
// other.
func (a *action) release(ctx context.Context, list []plan.Release) {
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(parallelWrites)
	for i := range list {
		group.Go(func() error {
			done, problem, err := a.releaseOne(ctx, list[i])
			mu.Lock()
			defer mu.Unlock()
			if done {
				a.released[list[i].Released.For]++
			}
			if problem.message != "" {
				a.denials.add(problem.message, problem.until)
			}
			a.errs.add(err)
			return nil
		})
	}
	_ = group.Wait() // the errors are collected
}

// releaseOne releases a pod, and reports whether it did. That the API server refuses it holds for the pods of the owner: they are
// evicted for a while; see [plan.Observed.NoRelease].
func (a *action) releaseOne(ctx context.Context, r plan.Release) (done bool, _ denial, _ error) {
	namespace := a.subject.key.Namespace
	r.Released.Workload = a.subject.key.Name
	o := a.dir.owner(ownerKey{namespace, r.Released.Owner})
	if o == nil || !o.release(r.Pod, &r.Released) {
		return false, denial{}, nil // gone already
	}
	err := releasePod(ctx, a.subject.client, a.options.Keys, namespace, &r)
	if err == nil {
		a.dir.denials.end(o.uid)
		a.dir.noteMove(o, report.MoveOfRelease(&r, time.Now()))
		return true, denial{}, nil
	}
	o.failed(r.Pod, r.Released.For, unanswered(err))
	message, denied := denialOf(err)
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		return false, denial{}, nil
	case denied:
		message = fmt.Sprintf("pod %s cannot be released: %s", r.Name, message)
		return false, denial{message: message, until: a.dir.denials.note(o.uid, message, a.now)}, nil
	}
	return false, denial{}, fmt.Errorf("release pod %s/%s: %w", namespace, r.Name, err)
}

// release says that a pod is about to be released; false when it is going already.
func (o *owner) release(pod types.UID, r *plan.Released) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.slots.LetGo(pod, r, time.Now())
}

// releasePod relabels a pod and gives it a time to end without us, in one merge patch that names its UID: a namesake is not
// touched. A pod that the cache has no more is not released, for it is not known whether it would ever end.
func releasePod(ctx context.Context, c client.Client, keys policy.Keys, namespace string, r *plan.Release) error {
	pod := &corev1.Pod{}
	err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: r.Name}, pod, &client.GetOptions{UnsafeDisableDeepCopy: new(true)})
	switch {
	case err != nil:
		return err
	case pod.UID != r.Pod:
		return apierrors.NewNotFound(corev1.Resource("pods"), r.Name)
	}
	change := map[string]any{"metadata": map[string]any{
		"uid":         r.Pod,
		"labels":      map[string]string{plan.TemplateHash: plan.ReleasedHash(r.Released.Hash)},
		"annotations": map[string]string{keys.Released(): r.Released.String()},
	}}
	if seconds, ok := plan.ActiveDeadline(pod, r.Released.Until); ok {
		change["spec"] = map[string]any{"activeDeadlineSeconds": seconds}
	} // else it ends earlier
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	target := &corev1.Pod{}
	target.Namespace, target.Name = namespace, r.Name
	return c.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch))
}

// releaseDenied says why the API server lately refused to release a pod of one of the owners; empty: it did not.
func (d *directory) releaseDenied(owners []plan.Owner, now time.Time) string {
	for i := range owners {
		if known, stands := d.denials.stands(owners[i].UID, now); stands {
			return known.message
		}
	}
	return ""
}

// serviceReads is how long the answer is believed whether a Service selects the label that a release changes.
const serviceReads = 30 * time.Second

// hashSelectors knows of each namespace whether something selects pods by their pod-template-hash: such pods cannot be
// released, for they would stop serving at once. Services are read live, where somebody releases, for caching those of whole
// members would cost more than these few reads. It is safe for concurrent use.
type hashSelectors struct {
	mu   sync.Mutex
	read map[string]hashAnswer
}

type hashAnswer struct {
	at     time.Time
	reason string
}

func newHashSelectors() *hashSelectors { return &hashSelectors{read: map[string]hashAnswer{}} }

// reason says what selects the label in a namespace, or why that is not known; empty: nothing does.
func (h *hashSelectors) reason(ctx context.Context, live client.Reader, namespace string, now time.Time) string {
	h.mu.Lock()
	answer, ok := h.read[namespace]
	h.mu.Unlock()
	if ok && now.Sub(answer.at) < serviceReads {
		return answer.reason
	}
	answer = hashAnswer{at: now, reason: selectsHash(ctx, live, namespace)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.read[namespace] = answer
	return answer.reason
}

// forget drops the answer for a namespace that is gone.
func (h *hashSelectors) forget(namespace string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.read, namespace)
}

func selectsHash(ctx context.Context, live client.Reader, namespace string) string {
	found, page := "", &corev1.ServiceList{}
	err := paging.Pages(ctx, live, page, func() bool {
		for i := range page.Items {
			if _, selected := page.Items[i].Spec.Selector[plan.TemplateHash]; selected {
				found = fmt.Sprintf("Service %s/%s selects %s", namespace, page.Items[i].Name, plan.TemplateHash)
				return false
			}
		}
		return true
	}, func() {}, client.InNamespace(namespace))
	if err != nil {
		return fmt.Sprintf("the Services of namespace %s cannot be read (%s)", namespace, apierrors.ReasonForError(err))
	}
	return found
}
