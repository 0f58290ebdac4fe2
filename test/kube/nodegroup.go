package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What Cluster Autoscaler and AWS Node Termination Handler taint nodes with, and who the former is in its Events.
const (
	ToBeDeletedTaint    = "ToBeDeletedByClusterAutoscaler"
	RebalanceTaint      = "aws-node-termination-handler/rebalance-recommendation"
	InterruptionTaint   = "aws-node-termination-handler/spot-itn"
	AutoscalerComponent = "cluster-autoscaler"
)

// A NodeGroupSpec says what a scripted node group is like.
type NodeGroupSpec struct {
	Name     string
	Provider Provider // who labels its nodes
	Capacity string   // Spot or OnDemand
	// Min and Max are how many nodes it has. Min are there, and ready, from the start.
	Min, Max int
	// Node is what a node is like: its size, and labels and taints in addition to the provider's. Node.Start is how long one
	// takes to be ready once it is registered; Node.Capacity plays no part.
	Node NodeSpec
	// Registration is how long an instance takes from being asked for until its node is there. Default 0.
	Registration time.Duration
	// GiveUpAfter is how long an instance may not come until it is given up, and BackOff how long none is asked for then.
	// Defaults 15m and 5m, which are Cluster Autoscaler's.
	GiveUpAfter, BackOff time.Duration
	// IdleFor is how long a node is empty until it is taken away. Default 10m, which is Cluster Autoscaler's.
	IdleFor time.Duration
	// DeleteDelay is how long a node has the taint that it is to be deleted before it is. Default 5s, as there.
	DeleteDelay time.Duration
	// Scan is how often the group looks at the pods. Default 250ms.
	Scan time.Duration
}

// A NodeGroup is a group of nodes that grows and shrinks as Cluster Autoscaler has it do: it asks for instances when pods
// find no node that would fit into it, says so on the pods, and takes away nodes that have been empty for a time. It also
// says what a cloud says of its instances: a rebalance recommendation, an interruption. Its methods may be called from
// several goroutines at once.
type NodeGroup struct {
	cluster  *Cluster
	spec     NodeGroupSpec
	capacity corev1.ResourceList
	cancel   context.CancelFunc
	done     chan struct{}

	mu       sync.Mutex
	dry      bool
	asked    []time.Time            // for instances that have not come
	pausedTo time.Time              // none is asked for before
	nodes    map[string]*groupsNode // by name
	reported map[types.UID]bool     // pods with an Event
}

// groupsNode is what a group remembers of a node.
type groupsNode struct {
	emptySince time.Time // zero: it is not empty
	deleteAt   time.Time // zero: it stays
	goesAt     time.Time // the cloud takes it; zero: it does not
	drained    bool      // it is taken away although it is in use
}

// NewNodeGroup starts a node group for a test, and stops it when the test ends; its nodes stay.
func NewNodeGroup(t testing.TB, c *Cluster, spec NodeGroupSpec) *NodeGroup {
	t.Helper()
	g, err := c.StartNodeGroup(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Stop)
	return g
}

// StartNodeGroup starts a node group with its least number of nodes, all of them ready. Stop it before its cluster.
func (c *Cluster) StartNodeGroup(ctx context.Context, spec NodeGroupSpec) (*NodeGroup, error) {
	spec, err := spec.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c.name, err)
	}
	capacity, err := spec.Node.resources()
	if err != nil {
		return nil, fmt.Errorf("cluster %s: node group %s: %w", c.name, spec.Name, err)
	}
	g := &NodeGroup{
		cluster: c, spec: spec, capacity: capacity, done: make(chan struct{}),
		nodes: map[string]*groupsNode{}, reported: map[types.UID]bool{},
	}
	there := spec.Node
	there.Start = 0
	names, err := c.AddNodes(ctx, spec.Min, there)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		g.nodes[name] = &groupsNode{}
	}
	ctx, g.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go g.run(ctx)
	return g, nil
}

// withDefaults fills in what was left out, and what the provider puts on nodes.
func (s NodeGroupSpec) withDefaults() (NodeGroupSpec, error) {
	given, err := s.Provider.Labels(s.Name, s.Capacity)
	if err != nil {
		return s, fmt.Errorf("node group %s: %w", s.Name, err)
	}
	if s.Min < 0 || s.Max < s.Min {
		return s, fmt.Errorf("node group %s: min %d and max %d: want 0 or more, and max no less than min", s.Name, s.Min, s.Max)
	}
	maps.Copy(given, s.Node.Labels)
	s.Node.Labels, s.Node.Capacity = given, ""
	s.Node.Taints = slices.Concat(s.Provider.Taints(s.Capacity), s.Node.Taints)
	s.GiveUpAfter, s.BackOff = cmp.Or(s.GiveUpAfter, 15*time.Minute), cmp.Or(s.BackOff, 5*time.Minute)
	s.IdleFor, s.DeleteDelay = cmp.Or(s.IdleFor, 10*time.Minute), cmp.Or(s.DeleteDelay, 5*time.Second)
	s.Scan = cmp.Or(s.Scan, 250*time.Millisecond)
	return s, nil
}

// Stop ends what the group does. Its nodes stay. It may be called again.
func (g *NodeGroup) Stop() {
	g.cancel()
	<-g.done
}

// Nodes are the names of the group's nodes, ready or not, in order.
func (g *NodeGroup) Nodes() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Sorted(maps.Keys(g.nodes))
}

// SetDry says whether the cloud has run out: instances are asked for and do not come. Those that were not given up come when
// it has some again.
func (g *NodeGroup) SetDry(dry bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dry = dry
}

// Recommend has AWS Node Termination Handler say that these nodes are at a higher risk of interruption: they may live on.
func (g *NodeGroup) Recommend(ctx context.Context, nodes ...string) error {
	return g.cluster.TaintNodes(ctx, handlersTaint(RebalanceTaint), nodes...)
}

// Interrupt has AWS Node Termination Handler say that the cloud takes these nodes back, which it does after the notice, with
// the pods on them. Real ones get two minutes.
func (g *NodeGroup) Interrupt(ctx context.Context, notice time.Duration, nodes ...string) error {
	if err := g.cluster.TaintNodes(ctx, handlersTaint(InterruptionTaint), nodes...); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, name := range nodes {
		node := g.nodes[name]
		if node == nil {
			return fmt.Errorf("node group %s has no node %s", g.spec.Name, name)
		}
		node.goesAt = time.Now().Add(notice)
	}
	return nil
}

// handlersTaint has the id of the cloud's event for its value.
func handlersTaint(key string) corev1.Taint {
	now := time.Now()
	return corev1.Taint{Key: key, Value: "event-" + strconv.FormatInt(now.UnixNano(), 36), Effect: corev1.TaintEffectNoSchedule}
}

// run looks at the pods until the group is stopped.
func (g *NodeGroup) run(ctx context.Context) {
	defer close(g.done)
	tick := time.NewTicker(g.spec.Scan)
	defer tick.Stop()
	for {
		// What fails is tried again: the API server may be stopped, hung or cut off, as a spec likes.
		if err := g.step(ctx); err != nil && ctx.Err() == nil {
			g.cluster.log.printf("cluster %s: node group %s: %v", g.cluster.name, g.spec.Name, err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// step does what is due.
func (g *NodeGroup) step(ctx context.Context) error {
	var pods corev1.PodList
	var nodes corev1.NodeList
	if err := errors.Join(g.cluster.client.List(ctx, &nodes), g.cluster.client.List(ctx, &pods)); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	seen := g.look(nodes.Items, pods.Items)
	return errors.Join(g.takeBack(ctx, now), g.register(ctx, now), g.grow(ctx, seen, now), g.drain(ctx, pods.Items), g.shrink(ctx, seen, now))
}
