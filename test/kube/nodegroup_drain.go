package kube

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ScaleDown has Cluster Autoscaler take nodes away that are in use, because it thinks that their pods have room elsewhere: it taints
// them, evicts their pods as disruption budgets allow, again and again, and deletes each node once it is empty.
func (g *NodeGroup) ScaleDown(ctx context.Context, nodes ...string) error {
	if err := g.cluster.TaintNodes(ctx, toBeDeleted(time.Now()), nodes...); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, name := range nodes {
		node := g.nodes[name]
		if node == nil {
			return fmt.Errorf("node group %s has no node %s", g.spec.Name, name)
		}
		node.drained = true
	}
	return nil
}

// drain goes on with the nodes that are taken away while they are in use.
func (g *NodeGroup) drain(ctx context.Context, pods []corev1.Pod) error {
	var problems []error
	left := map[string]int{}
	for i := range pods {
		pod := &pods[i]
		if node := g.nodes[pod.Spec.NodeName]; node == nil || !node.drained || finished(pod) || onlyThere(pod) {
			continue
		}
		left[pod.Spec.NodeName]++
		if pod.DeletionTimestamp == nil {
			problems = append(problems, g.evict(ctx, pod))
		}
	}
	for name, node := range g.nodes {
		if !node.drained || left[name] > 0 {
			continue
		}
		err := g.cluster.RemoveNodes(ctx, name)
		if err == nil {
			delete(g.nodes, name)
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// evict evicts a pod, unless it has changed or a disruption budget refuses it for now.
func (g *NodeGroup) evict(ctx context.Context, pod *corev1.Pod) error {
	eviction := &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}}
	err := g.cluster.client.SubResource("eviction").Create(ctx, pod, eviction)
	if apierrors.IsTooManyRequests(err) || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// toBeDeleted is the taint by which Cluster Autoscaler says that it deletes a node.
func toBeDeleted(now time.Time) corev1.Taint {
	return corev1.Taint{Key: ToBeDeletedTaint, Value: strconv.FormatInt(now.Unix(), 10), Effect: corev1.TaintEffectNoSchedule}
}
