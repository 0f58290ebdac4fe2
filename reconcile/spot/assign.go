package spot

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// parallelWrites bounds the writes that one reconcile has under way.
const parallelWrites = 8

// assignSlots gives pods their slots, and returns those that did not get theirs. One that fails stops no other. What the API server
// refuses for its policies waits for a while; after many such refusals without a success the rest waits as well.
func (a *action) assignSlots(ctx context.Context, assignments []plan.Assignment) (unchanged map[types.UID]struct{}) {
	unchanged = map[types.UID]struct{}{}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(parallelWrites)
	for _, s := range assignments {
		group.Go(func() error {
			mu.Lock()
			pointless := a.assigned == 0 && a.denials.pods >= maxDenials
			mu.Unlock()
			var what assignOutcome
			if !pointless {
				what = a.assignSlot(ctx, s)
			}
			mu.Lock()
			defer mu.Unlock()
			if what.done {
				a.assigned++
			} else {
				unchanged[s.Pod] = struct{}{}
			}
			if what.denied.message != "" {
				a.denials.add(what.denied.message, what.denied.until)
			}
			a.gone = a.gone || what.gone
			a.errs.add(what.err)
			return nil
		})
	}
	_ = group.Wait() // the errors are collected
	return unchanged
}

// assignOutcome is the result of one assignment: one of its fields is set, or none when it was not tried.
type assignOutcome struct {
	done, gone bool // gone or replaced
	denied     denial
	err        error
}

// assignSlot gives a pod its slot, unless the API server refuses that.
func (a *action) assignSlot(ctx context.Context, s plan.Assignment) assignOutcome {
	if known, stands := a.dir.denials.stands(s.Pod, a.now); stands {
		return assignOutcome{denied: known}
	}
	namespace := a.subject.key.Namespace
	err := writeSlot(ctx, a.subject.client, a.options.Keys, namespace, s)
	message, denied := denialOf(err)
	switch {
	case err == nil:
		a.dir.denials.end(s.Pod)
		return assignOutcome{done: true}
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		return assignOutcome{gone: true}
	case denied:
		message = fmt.Sprintf("pod %s cannot be labelled with its slot: %s", s.Name, message)
		return assignOutcome{denied: denial{message: message, until: a.dir.denials.note(s.Pod, message, a.now)}}
	}
	return assignOutcome{err: fmt.Errorf("label pod %s/%s with slot %d: %w", namespace, s.Name, s.Slot, err)}
}

// writeSlot writes a slot, by a merge patch that names the pod's UID: a namesake that has come since is not touched.
func writeSlot(ctx context.Context, c client.Client, keys policy.Keys, namespace string, s plan.Assignment) error {
	patch, err := slotPatch(keys, s)
	if err != nil {
		return err
	}
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = namespace, s.Name
	return c.Patch(ctx, pod, client.RawPatch(types.MergePatchType, patch))
}

func slotPatch(keys policy.Keys, s plan.Assignment) ([]byte, error) {
	metadata := map[string]any{"uid": s.Pod, "labels": map[string]string{keys.Slot(): fmt.Sprint(s.Slot)}}
	if s.DeletionCost != "" {
		metadata["annotations"] = map[string]string{policy.DeletionCost: s.DeletionCost}
	}
	return json.Marshal(map[string]any{"metadata": metadata})
}
