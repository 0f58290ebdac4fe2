package kube

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What Karpenter consolidates, for NodePool.Consolidation.
const (
	WhenEmptyOrUnderutilized = "WhenEmptyOrUnderutilized"
	WhenEmpty                = "WhenEmpty"
)

// PoolLabel is the label of a node with the name of its NodePool. Pods can ask for it.
const PoolLabel = "karpenter.sh/nodepool"

// Never is a time that does not come, for NodePool.ConsolidateAfter.
const Never time.Duration = -1

// A NodePool says which nodes Karpenter makes and when it takes them away. Times are in whole seconds.
type NodePool struct {
	Name string
	// Capacity types of its nodes. Default both.
	Capacity []string
	// Instances are the names of the types that its nodes can be of. Default all of KarpenterOptions.
	Instances []string
	// Labels and Taints of its nodes. A change of either has all nodes of the pool drift.
	Labels map[string]string
	Taints []corev1.Taint
	// NodeStart is how long a node takes to be ready once it is registered. Default 0.
	NodeStart time.Duration
	// Consolidation is WhenEmptyOrUnderutilized, the default, or WhenEmpty; ConsolidateAfter how long a node must have been
	// left alone before: default at once, or Never.
	Consolidation    string
	ConsolidateAfter time.Duration
	// ExpireAfter is how old a node gets. Default: any age.
	ExpireAfter time.Duration
	// Grace is how long a node's drain may take before what is left is ended. Default: as long as it takes.
	Grace time.Duration
	// Budgets limit how many nodes are disrupted at once. Default one of 10 %, which is Karpenter's.
	Budgets []DisruptionBudget
	// CPULimit is how many CPUs the pool's nodes have together at most: a pool that has run dry has its limit reached.
	// Default: no limit.
	CPULimit int
	// Weight: of two pools that fit, the one with more is used. Default 0.
	Weight int
}

// A DisruptionBudget is how many nodes of a pool may be disrupted at once.
type DisruptionBudget struct {
	Nodes   string   // a number, or a percentage
	Reasons []string // Underutilized, Empty, Drifted; default all
}

// Unlimited are budgets with which Karpenter may disrupt all nodes of a pool at once.
var Unlimited = []DisruptionBudget{{Nodes: "100%"}}

// SetNodePool makes a NodePool, or changes the one with that name, and waits until Karpenter finds it ready.
func (c *Cluster) SetNodePool(ctx context.Context, pool NodePool) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	made := object(nodePoolKind, pool.Name, pool.spec())
	err := c.client.Create(ctx, made)
	if apierrors.IsAlreadyExists(err) {
		err = c.replaceSpec(ctx, made)
	}
	if err == nil {
		err = c.awaitTrue(ctx, made, "Ready")
	}
	if err != nil {
		return fmt.Errorf("cluster %s: node pool %s: %w", c.name, pool.Name, err)
	}
	return nil
}

// AddNodePool makes a NodePool in a cluster where Karpenter need not run, so that nobody finds it ready.
func (c *Cluster) AddNodePool(ctx context.Context, pool NodePool) error {
	// A definition that is established may take a moment longer to be served.
	return c.await(ctx, "node pool "+pool.Name+" to be accepted", func(ctx context.Context) (bool, error) {
		err := c.client.Create(ctx, object(nodePoolKind, pool.Name, pool.spec()))
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return false, nil
		}
		return err == nil, err
	})
}

// RemoveNodePool deletes a NodePool; that it is not there is no error.
func (c *Cluster) RemoveNodePool(ctx context.Context, name string) error {
	if err := c.client.Delete(ctx, object(nodePoolKind, name, nil)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cluster %s: remove node pool %s: %w", c.name, name, err)
	}
	return nil
}

// replaceSpec gives the object that is there the spec of this one.
func (c *Cluster) replaceSpec(ctx context.Context, wanted *unstructured.Unstructured) error {
	there := &unstructured.Unstructured{}
	there.SetGroupVersionKind(wanted.GroupVersionKind())
	if err := c.client.Get(ctx, client.ObjectKeyFromObject(wanted), there); err != nil {
		return err
	}
	there.Object["spec"] = wanted.Object["spec"]
	return c.client.Update(ctx, there)
}

// spec is the NodePool's.
func (p *NodePool) spec() map[string]any {
	after := "Never"
	if p.ConsolidateAfter != Never {
		after = wholeSeconds(p.ConsolidateAfter)
	}
	disruption := map[string]any{
		"consolidationPolicy": cmp.Or(p.Consolidation, WhenEmptyOrUnderutilized), "consolidateAfter": after,
	}
	if len(p.Budgets) > 0 {
		disruption["budgets"] = p.budgets()
	}
	spec := map[string]any{"disruption": disruption, "template": p.template()}
	if p.CPULimit > 0 {
		spec["limits"] = map[string]any{"cpu": fmt.Sprint(p.CPULimit)}
	}
	if p.Weight > 0 {
		spec["weight"] = int64(p.Weight)
	}
	return spec
}

func (p *NodePool) budgets() []any {
	var list []any
	for _, budget := range p.Budgets {
		one := map[string]any{"nodes": budget.Nodes}
		if len(budget.Reasons) > 0 {
			one["reasons"] = anys(budget.Reasons)
		}
		list = append(list, one)
	}
	return list
}

// template is what the pool's NodeClaims are made from.
func (p *NodePool) template() map[string]any {
	capacity := p.Capacity
	if len(capacity) == 0 {
		capacity = []string{Spot, OnDemand}
	}
	requirements := []any{map[string]any{"key": CapacityLabel, "operator": "In", "values": anys(capacity)}}
	if len(p.Instances) > 0 {
		requirements = append(requirements, map[string]any{
			"key": corev1.LabelInstanceTypeStable, "operator": "In", "values": anys(p.Instances),
		})
	}
	spec := map[string]any{
		"nodeClassRef": map[string]any{"group": nodeClassKind.Group, "kind": nodeClassKind.Kind, "name": nodeClassName},
		"requirements": requirements, "expireAfter": "Never",
	}
	if p.ExpireAfter > 0 {
		spec["expireAfter"] = wholeSeconds(p.ExpireAfter)
	}
	if p.Grace > 0 {
		spec["terminationGracePeriod"] = wholeSeconds(p.Grace)
	}
	if taints := p.taints(); len(taints) > 0 {
		spec["taints"] = taints
	}
	meta := map[string]any{"annotations": map[string]any{NodeStart: seconds(p.NodeStart)}}
	if len(p.Labels) > 0 {
		labels := map[string]any{}
		for key, value := range p.Labels {
			labels[key] = value
		}
		meta["labels"] = labels
	}
	return map[string]any{"metadata": meta, "spec": spec}
}

func (p *NodePool) taints() []any {
	var list []any
	for _, taint := range p.Taints {
		one, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&taint)
		if err != nil {
			panic(fmt.Sprintf("encode a taint: %v", err)) // it consists of strings and a time
		}
		list = append(list, one)
	}
	return list
}

func anys(values []string) []any {
	list := make([]any, len(values))
	for i, value := range values {
		list[i] = value
	}
	return list
}

// A NodeClaim is what Karpenter has asked its provider for.
type NodeClaim struct {
	Name, Pool, Capacity string
	Node                 string // empty: not registered yet
	Initialized          bool   // the node is ready and takes pods
	Leaving              bool   // it is being deleted
}

// NodeClaims are all there are, by name.
func (c *Cluster) NodeClaims(ctx context.Context) ([]NodeClaim, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(nodeClaimKind)
	if err := c.client.List(ctx, list); err != nil {
		return nil, fmt.Errorf("cluster %s: list node claims: %w", c.name, err)
	}
	claims := make([]NodeClaim, 0, len(list.Items))
	for i := range list.Items {
		claims = append(claims, readClaim(&list.Items[i]))
	}
	slices.SortFunc(claims, func(a, b NodeClaim) int { return strings.Compare(a.Name, b.Name) })
	return claims, nil
}

func readClaim(from *unstructured.Unstructured) NodeClaim {
	node, _, _ := unstructured.NestedString(from.Object, "status", "nodeName")
	labels := from.GetLabels()
	return NodeClaim{
		Name: from.GetName(), Pool: labels[PoolLabel], Capacity: labels[CapacityLabel], Node: node,
		Initialized: isTrue(from, "Initialized"), Leaving: from.GetDeletionTimestamp() != nil,
	}
}

// DeleteNodeClaims has Karpenter drain the nodes of these claims and end them, as it does on a spot interruption, an expiry
// or a person's word: no budget of the pool holds it up. One that is not there is no error.
func (c *Cluster) DeleteNodeClaims(ctx context.Context, names ...string) error {
	return c.eachNode(ctx, names, func(ctx context.Context, name string) error {
		return client.IgnoreNotFound(c.client.Delete(ctx, object(nodeClaimKind, name, nil)))
	})
}
