package spot

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/singleflight"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters/paging"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

const (
	// liveReadTimeout bounds the one live read that an admission may wait for.
	liveReadTimeout = 500 * time.Millisecond
	// liveReadTTL is how long what was read live is believed while the cache does not show it: a workload that is not
	// enabled never appears there.
	liveReadTTL = 30 * time.Second
)

// liveReads reads owners that the cache does not know yet, one read for all admissions that wait for the same owner.
type liveReads struct{ flights singleflight.Group }

// ownerRef names the controller of a pod.
type ownerRef struct {
	ownerKey
	kind string // as the table of kinds names it
	name string
}

// read fills the directory with an owner, its workload and its namespace, from the API server.
func (r *liveReads) read(ctx context.Context, live client.Reader, dir *directory, ref ownerRef) error {
	result := r.flights.DoChan(ref.String(), func() (any, error) {
		if _, known := dir.lookup(ref.ownerKey, time.Now()); known {
			return nil, nil // a read for another admission ended after this one had looked
		}
		// Not the context of the admission that came first: others wait for the same answer.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), liveReadTimeout)
		defer cancel()
		return nil, readOwner(ctx, live, dir, ref)
	})
	select {
	case done := <-result:
		return done.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func readOwner(ctx context.Context, live client.Reader, dir *directory, ref ownerRef) error {
	if dir.only != nil && !slices.Contains(dir.only, ref.namespace) {
		return nil // it is another tenant's
	}
	if !dir.knowsNamespace(ref.namespace) {
		var ns corev1.Namespace
		if err := live.Get(ctx, types.NamespacedName{Name: ref.namespace}, &ns); err != nil {
			return fmt.Errorf("read namespace %s: %w", ref.namespace, err)
		}
		dir.setNamespace(&ns, true)
		if _, known := dir.lookup(ref.ownerKey, time.Now()); known {
			return nil // only the namespace was missing
		}
	}
	key := types.NamespacedName{Namespace: ref.namespace, Name: ref.name}
	if ref.kind != kindReplicaSet {
		return readWorkload(ctx, live, dir, policy.WorkloadKey{Kind: ref.kind, NamespacedName: key})
	}
	var set appsv1.ReplicaSet
	if err := live.Get(ctx, key, &set); err != nil {
		return fmt.Errorf("read ReplicaSet %s: %w", key, err)
	}
	keepTemplate(&set, &set.Spec.Template, &set.Spec.Template, dir.capacity)
	workload, ok := dir.setReplicaSet(&set, true, time.Now())
	if !ok || workload.Kind == KindReplicaSet {
		return nil
	}
	return readWorkload(ctx, live, dir, workload)
}

func readWorkload(ctx context.Context, live client.Reader, dir *directory, key policy.WorkloadKey) error {
	switch key.Kind {
	case KindDeployment:
		var deployment appsv1.Deployment
		if err := live.Get(ctx, key.NamespacedName, &deployment); err != nil {
			return fmt.Errorf("read Deployment %s: %w", key.NamespacedName, err)
		}
		dir.setWorkload(key, &deployment.ObjectMeta, replicasOf(deployment.Spec.Replicas), true, time.Now())
	case KindStatefulSet:
		var set appsv1.StatefulSet
		if err := live.Get(ctx, key.NamespacedName, &set); err != nil {
			return fmt.Errorf("read StatefulSet %s: %w", key.NamespacedName, err)
		}
		now := time.Now()
		keepTemplate(&set, &set.Spec.Template, &set.Spec.Template, dir.capacity)
		dir.setWorkload(key, &set.ObjectMeta, replicasOf(set.Spec.Replicas), true, now)
		dir.setStatefulSet(&set, true, now)
	default:
		kind, _ := dir.kinds.find(key.Kind)
		obj := kind.object()
		if err := live.Get(ctx, key.NamespacedName, obj); err != nil {
			return fmt.Errorf("read %s %s: %w", key.Kind, key.NamespacedName, err)
		}
		kind.keepTemplate(obj, obj, dir.capacity)
		dir.setConfigured(kind, obj, true, time.Now())
	}
	return nil
}

// ownedPods lists the pods that an owner controls, page by page, and calls each with them until it has enough. After restart was
// called they come again. The selector only narrows the list: what belongs to an owner is said by the controller reference alone.
func ownedPods(ctx context.Context, live client.Reader, owner types.UID, namespace string, selector labels.Selector, each func(*corev1.Pod) (more bool), restart func()) error {
	page := &corev1.PodList{}
	return paging.Pages(ctx, live, page, func() bool {
		for i := range page.Items {
			if ref := metav1.GetControllerOfNoCopy(&page.Items[i]); ref != nil && ref.UID == owner && !each(&page.Items[i]) {
				return false
			}
		}
		return true
	}, restart, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector})
}

func (d *directory) knowsNamespace(name string) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.namespaces[name] != nil
}
