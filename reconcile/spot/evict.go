package spot

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// budgetRetry is when an eviction that a disruption budget refused is tried again: the API server gives no other sign.
const budgetRetry = 5 * time.Second

// errBudget is wrapped by errors of evictions that a disruption budget does not allow now.
var errBudget = errors.New("a disruption budget does not allow it now")

// evict moves the pods of one batch, through the API that honours disruption budgets and only the pods with these UIDs. The
// slot of each is free before the call, for its replacement may be admitted before the call returns. It returns how many
// were evicted; an error that wraps errBudget means that the rest has to wait.
func (e *Engine) evict(ctx context.Context, c client.Client, dir *directory, namespace string, batch []Eviction, ownerOf map[types.UID]types.UID) (int, error) {
	evicted := 0
	for _, move := range batch {
		o := dir.owner(ownerOf[move.Pod])
		if o == nil {
			continue // the owner is gone, and its pods are going
		}
		o.mu.Lock()
		held := o.slots.Free(move.Pod, time.Now())
		o.mu.Unlock()
		if !held {
			continue // gone already
		}
		err := evictPod(ctx, c, namespace, move)
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			evicted++ // or it was gone before us
			continue
		}
		o.mu.Lock()
		o.slots.Restore(move.Pod)
		o.mu.Unlock()
		if apierrors.IsTooManyRequests(err) {
			return evicted, fmt.Errorf("pod %s should move; %w: %s", move.Name, errBudget, refusal(err))
		}
		return evicted, fmt.Errorf("evict pod %s/%s: %w", namespace, move.Name, err)
	}
	return evicted, nil
}

// refusal is what the API server says of a refused eviction: the cause names the disruption budget and what it needs.
func refusal(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			if cause.Type == policyv1.DisruptionBudgetCause {
				return cause.Message
			}
		}
	}
	return err.Error()
}

func evictPod(ctx context.Context, c client.Client, namespace string, move Eviction) error {
	uid := move.Pod
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: move.Name}}
	return c.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: namespace, Name: move.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}},
	})
}
