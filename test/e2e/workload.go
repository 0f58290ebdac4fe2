package e2e

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

const (
	// shop is the namespace of all workloads.
	shop = "shop"
	// web is the workload that is under load in every member. A budget lets one of its replicas be disrupted at a time.
	web = "web"
	// plain is one without a policy of its own: it is moved only by a hub whose configuration has a default.
	plain = "plain"
	// floor of on-demand replicas of web, whatever its size and share.
	floor = 3
)

// A Policy is what a workload is asked to be: how many replicas, and how many percent of them on spot.
type Policy struct{ Replicas, Percent int }

// String is for messages.
func (p Policy) String() string { return fmt.Sprintf("%d replicas, %d %% spot", p.Replicas, p.Percent) }

// want is the mix that follows.
func (p Policy) want() mix {
	spot, onDemand := fleet.Want(p.Replicas, p.Percent, floor)
	return mix{spot: spot, onDemand: onDemand}
}

// A mix counts pods that are alive, by their capacity if they are ready.
type mix struct{ spot, onDemand, notReady int }

// String is for messages.
func (m mix) String() string {
	return fmt.Sprintf("%d spot, %d on-demand, %d not ready", m.spot, m.onDemand, m.notReady)
}

// createWorkloads makes the namespace and what is in it.
func (c *Cluster) createWorkloads(ctx context.Context, policy Policy) error {
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop, Labels: fleet.Enabled()}},
		&policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: web},
			Spec: policyv1.PodDisruptionBudgetSpec{
				Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{fleet.AppLabel: web}},
				MaxUnavailable: ptr.To(intstr.FromInt32(1)),
			},
		},
		deployment(web, policy.Replicas, fleet.Policy(policy.Percent, floor)),
		deployment(plain, 6, nil),
	} {
		if err := c.Create(ctx, object); err != nil {
			return fmt.Errorf("member %s: %w", c.Name, err)
		}
	}
	return nil
}

func deployment(name string, replicas int, annotations map[string]string) *appsv1.Deployment {
	labels := map[string]string{fleet.AppLabel: name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name, Labels: fleet.Enabled(), Annotations: annotations},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(replicas)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: "registry.invalid/" + name}}},
			},
		},
	}
}

// change asks for another size and policy of web, in one write.
func (c *Cluster) change(ctx context.Context, policy Policy) error {
	content, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": fleet.Policy(policy.Percent, floor)},
		"spec":     map[string]any{"replicas": policy.Replicas},
	})
	if err != nil {
		return err
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: web}}
	return c.Patch(ctx, deployment, client.RawPatch(types.MergePatchType, content))
}

// mix counts a workload's pods.
func (c *Cluster) mix(ctx context.Context, workload string) (m mix, err error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(shop), client.MatchingLabels{fleet.AppLabel: workload}); err != nil {
		return m, err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		switch {
		case pod.DeletionTimestamp != nil || fleet.Finished(pod):
		case !fleet.Ready(pod):
			m.notReady++
		case c.capacityOf(pod) == kube.Spot:
			m.spot++
		default:
			m.onDemand++
		}
	}
	return m, nil
}

// awaitMix waits until all replicas of a workload are ready where they belong.
func (c *Cluster) awaitMix(ctx context.Context, workload string, want mix) error {
	return fleet.Await(ctx, fmt.Sprintf("%s of %s in %s", want, workload, c.Name), func(ctx context.Context) (bool, error) {
		is, err := c.mix(ctx, workload)
		if err == nil && is != want {
			err = fmt.Errorf("there are %s", is)
		}
		return err == nil, err
	})
}
