package kube

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CapacityLabel is the node label that distinguishes spot from on-demand capacity; Spot and OnDemand are its values.
const (
	CapacityLabel = "karpenter.sh/capacity-type"
	Spot          = "spot"
	OnDemand      = "on-demand"
)

// nodeParallelism is how many nodes are made, changed or removed at once.
const nodeParallelism = 8

// A NodeSpec says what a node is like.
type NodeSpec struct {
	Capacity string            // Spot, OnDemand, or empty for a node without the label
	Labels   map[string]string // in addition to our own, which they override
	Taints   []corev1.Taint    // default none
	Pods     int               // how many pods fit; default 110
	CPU      string            // default "32"
	Memory   string            // default "128Gi"
	Start    time.Duration     // from when the node is made until it is ready, in whole seconds; default at once
}

// AddNodes adds n nodes of a kind and returns their names when all of them are ready.
func (c *Cluster) AddNodes(ctx context.Context, n int, spec NodeSpec) ([]string, error) {
	capacity, err := spec.resources()
	if err != nil {
		return nil, fmt.Errorf("cluster %s: add nodes: %w", c.name, err)
	}
	names := make([]string, n)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(nodeParallelism)
	for i := range n {
		node := c.node(spec, capacity)
		names[i] = node.Name
		group.Go(func() error {
			if err := c.client.Create(groupCtx, node); err != nil {
				return fmt.Errorf("cluster %s: add node %s: %w", c.name, node.Name, err)
			}
			return c.awaitNode(groupCtx, node.Name, spec.Taints)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return names, nil
}

// resources are what the node has to give, or what is wrong with them.
func (s NodeSpec) resources() (corev1.ResourceList, error) {
	if s.Pods == 0 {
		s.Pods = 110
	}
	if s.CPU == "" {
		s.CPU = "32"
	}
	if s.Memory == "" {
		s.Memory = "128Gi"
	}
	list := corev1.ResourceList{}
	for name, value := range map[corev1.ResourceName]string{
		corev1.ResourcePods: strconv.Itoa(s.Pods), corev1.ResourceCPU: s.CPU, corev1.ResourceMemory: s.Memory,
	} {
		quantity, err := resource.ParseQuantity(value)
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", name, value, err)
		}
		list[name] = quantity
	}
	return list, nil
}

// node is the object of the next node.
func (c *Cluster) node(spec NodeSpec, capacity corev1.ResourceList) *corev1.Node {
	kind := spec.Capacity
	if kind == "" {
		kind = "node"
	}
	name := fmt.Sprintf("%s-%d", kind, c.nodes.Add(1))
	labels := map[string]string{
		corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
	}
	if spec.Capacity != "" {
		labels[CapacityLabel] = spec.Capacity
	}
	for key, value := range spec.Labels {
		labels[key] = value
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: labels, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		},
		Spec:   corev1.NodeSpec{Taints: spec.Taints, ProviderID: "kwok://" + c.name + "/" + name},
		Status: corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	}
	if spec.Start > 0 {
		node.Annotations[NodeStart] = seconds(spec.Start)
		// From the first moment: a node that says nothing of itself loses the taint that keeps pods away.
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: kubeletNotReady}}
	}
	if c.opts.Minimal { // kwok is not there to say it
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Testbed"}}
	}
	return node
}

// seconds is a time as the annotation NodeStart has it, rounded up.
func seconds(d time.Duration) string {
	return strconv.Itoa(int((d + time.Second - 1) / time.Second))
}

// awaitNode waits until a node is ready and has lost the taint that every new node gets.
func (c *Cluster) awaitNode(ctx context.Context, name string, taints []corev1.Taint) error {
	if c.opts.Minimal {
		// The controller that takes the taint away is not there either.
		return c.updateNode(ctx, name, func(node *corev1.Node) { node.Spec.Taints = taints })
	}
	var node corev1.Node
	err := c.await(ctx, "node "+name+" to be ready", func(ctx context.Context) (bool, error) {
		if err := c.client.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
			return false, err
		}
		return nodeReady(&node), nil
	})
	if err != nil {
		return fmt.Errorf("cluster %s: %w", c.name, err)
	}
	return nil
}

func nodeReady(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady {
			return false
		}
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// TaintNodes puts a taint on nodes, in place of one with the same key and effect. With the effect NoExecute the pods
// that do not tolerate it are deleted by Kubernetes at once.
func (c *Cluster) TaintNodes(ctx context.Context, taint corev1.Taint, names ...string) error {
	return c.eachNode(ctx, names, func(ctx context.Context, name string) error {
		return c.updateNode(ctx, name, func(node *corev1.Node) {
			node.Spec.Taints = append(without(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }), taint)
		})
	})
}

// UntaintNodes takes every taint with this key from nodes.
func (c *Cluster) UntaintNodes(ctx context.Context, key string, names ...string) error {
	return c.eachNode(ctx, names, func(ctx context.Context, name string) error {
		return c.updateNode(ctx, name, func(node *corev1.Node) {
			node.Spec.Taints = without(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
		})
	})
}

// RemoveNodes takes nodes away, as a cloud takes spot capacity back, and the pods on them with them. (Kubernetes itself
// deletes such pods too, but only after a minute.) Other pods are not touched. A node that is not there is no error.
func (c *Cluster) RemoveNodes(ctx context.Context, names ...string) error {
	err := c.eachNode(ctx, names, func(ctx context.Context, name string) error {
		// The node first: a replacement must not be put on it.
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := client.IgnoreNotFound(c.client.Delete(ctx, node)); err != nil {
			return err
		}
		_, err := c.deletePodsOn(ctx, name)
		return err
	})
	if err != nil {
		return err
	}
	// A scheduler that has not seen yet that a node is gone may have put a pod on it meanwhile, which would look ready.
	var late atomic.Int64
	for {
		late.Store(0)
		err := c.eachNode(ctx, names, func(ctx context.Context, name string) error {
			n, err := c.deletePodsOn(ctx, name)
			late.Add(int64(n))
			return err
		})
		if err != nil || late.Load() == 0 {
			return err
		}
	}
}

// deletePodsOn deletes the pods of a node at once, and returns how many there were.
func (c *Cluster) deletePodsOn(ctx context.Context, node string) (int, error) {
	var pods corev1.PodList
	if err := c.client.List(ctx, &pods, client.MatchingFields{"spec.nodeName": node}); err != nil {
		return 0, err
	}
	var problems []error
	for i := range pods.Items {
		err := c.client.Delete(ctx, &pods.Items[i], client.GracePeriodSeconds(0), client.Preconditions{UID: &pods.Items[i].UID})
		if !apierrors.IsConflict(err) {
			problems = append(problems, client.IgnoreNotFound(err))
		}
	}
	return len(pods.Items), errors.Join(problems...)
}

// eachNode does something to several nodes at once.
func (c *Cluster) eachNode(ctx context.Context, names []string, do func(context.Context, string) error) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(nodeParallelism)
	for _, name := range names {
		group.Go(func() error {
			if err := do(groupCtx, name); err != nil {
				return fmt.Errorf("cluster %s: node %s: %w", c.name, name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// updateNode changes a node, again if somebody else has changed it meanwhile.
func (c *Cluster) updateNode(ctx context.Context, name string, change func(*corev1.Node)) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var node corev1.Node
		if err := c.client.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
			return err
		}
		change(&node)
		return c.client.Update(ctx, &node)
	})
}

// without is the taints that do not match.
func without(taints []corev1.Taint, match func(corev1.Taint) bool) []corev1.Taint {
	var kept []corev1.Taint
	for _, taint := range taints {
		if !match(taint) {
			kept = append(kept, taint)
		}
	}
	return kept
}
