package spot

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// release takes pods out of their ReplicaSets, which make replacements while the pods go on serving. It returns how many left for
// each purpose.
func (e *Engine) release(ctx context.Context, c client.Client, dir *directory, s *subject, list []Release) (map[Purpose]int, error) {
	released := map[Purpose]int{}
	for i := range list {
		r := &list[i]
		r.Released.Workload = s.key.Name
		o := dir.owner(r.Released.Owner)
		if o == nil {
			continue
		}
		kept := r.Released
		o.mu.Lock()
		let := o.slots.LetGo(r.Pod, &kept, time.Now())
		o.mu.Unlock()
		if !let {
			continue // gone already
		}
		err := releasePod(ctx, c, e.Keys, s.key.Namespace, r)
		if err == nil {
			released[kept.For]++
			dir.noteMove(o, r.move(time.Now()))
			continue
		}
		o.failed(r.Pod, kept.For, unanswered(err))
		if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return released, fmt.Errorf("release pod %s/%s: %w", s.key.Namespace, r.Name, err)
		}
	}
	return released, nil
}

// releasePod relabels a pod, by a merge patch that names its UID: a namesake is not touched.
func releasePod(ctx context.Context, c client.Client, keys Keys, namespace string, r *Release) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         r.Pod,
		"labels":      map[string]string{templateHash: ReleasedHash(r.Released.Hash)},
		"annotations": map[string]string{keys.Released(): r.Released.String()},
	}})
	if err != nil {
		return err
	}
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = namespace, r.Name
	return c.Patch(ctx, pod, client.RawPatch(types.MergePatchType, patch))
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

func selectsHash(ctx context.Context, live client.Reader, namespace string) string {
	var list corev1.ServiceList
	if err := live.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return fmt.Sprintf("the Services of namespace %s cannot be read (%s)", namespace, apierrors.ReasonForError(err))
	}
	for i := range list.Items {
		if _, selected := list.Items[i].Spec.Selector[templateHash]; selected {
			return fmt.Sprintf("Service %s/%s selects %s", namespace, list.Items[i].Name, templateHash)
		}
	}
	return ""
}
