package spot

import (
	"context"
	"encoding/json"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// parallelWrites bounds the writes that one reconcile has under way.
const parallelWrites = 8

// stamp gives pods their slots, by a merge patch that names the pod's UID: a namesake that has come since is not touched.
// A pod that is gone, or was replaced, is no error: its event leads to another plan.
func (e *Engine) stamp(ctx context.Context, c client.Client, namespace string, stamps []Stamp) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelWrites)
	for _, s := range stamps {
		group.Go(func() error {
			patch, err := stampPatch(e.Keys, s)
			if err != nil {
				return err
			}
			pod := &corev1.Pod{}
			pod.Namespace, pod.Name = namespace, s.Name
			err = c.Patch(ctx, pod, client.RawPatch(types.MergePatchType, patch))
			if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("stamp pod %s/%s with slot %d: %w", namespace, s.Name, s.Slot, err)
			}
			return nil
		})
	}
	return group.Wait()
}

func stampPatch(keys Keys, s Stamp) ([]byte, error) {
	metadata := map[string]any{"uid": s.Pod, "labels": map[string]string{keys.Slot(): fmt.Sprint(s.Slot)}}
	if s.DeletionCost != "" {
		metadata["annotations"] = map[string]string{DeletionCost: s.DeletionCost}
	}
	return json.Marshal(map[string]any{"metadata": metadata})
}
